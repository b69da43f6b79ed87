package main

import (
	"fmt"
	"os"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// watch waits for moments in which no other program runs: a neighbour on one of
// two cores slows a side by any factor, most of all one that cuts its work
// equally and spins at the end.
type watch struct {
	runnable  func() (int, error) // threads of the machine that run, ours included
	patience  time.Duration       // how long it will still wait in all
	turns     int
	disturbed int // turns that began beside another program
}

// newWatch is the watch of a table on this machine.
func newWatch() *watch { return &watch{runnable: runnable, patience: time.Minute} }

// runnable reads the number of running threads, where the system tells: the
// fourth word of /proc/loadavg begins with it.
func runnable() (int, error) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	return parseRunnable(string(data))
}

func parseRunnable(s string) (int, error) {
	var a, b, c float64
	var n int
	_, err := fmt.Sscanf(s, "%f %f %f %d/", &a, &b, &c, &n)
	return n, err
}

// turn lets the threads of the side before come to rest, and waits for others.
func (w *watch) turn() {
	time.Sleep(rest)
	w.turns++
	for {
		n, err := w.runnable()
		if err != nil || n <= 1 {
			return
		}
		if w.patience <= 0 {
			w.disturbed++
			return
		}
		w.patience -= rest
		time.Sleep(rest)
	}
}

// String tells how often a neighbour ran.
func (w *watch) String() string {
	if _, err := w.runnable(); err != nil {
		return "This system does not tell whether other programs ran meanwhile."
	}
	return fmt.Sprintf("Of %d turns, %d began while another program ran.", w.turns, w.disturbed)
}

// load is the load of the minute before, where the system tells.
func load() string {
	if minute := gauge.Load(); minute != "" {
		return fmt.Sprintf("- load average of the minute before: %s\n", minute)
	}
	return ""
}

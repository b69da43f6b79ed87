package turns

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// rest lets the threads of the side before come to rest: OpenMP's spin a while
// after their work.
const rest = 20 * time.Millisecond

// Watch tells what programs other than the sides of a comparison have of the
// machine. On a system that does not tell, they have nothing.
type Watch struct {
	pids     []int         // the sides' processes
	patience time.Duration // how long it will still wait for others in all
}

// NewWatch watches for a comparison of this process with its peers, by their numbers.
func NewWatch(peers ...int) *Watch {
	return &Watch{pids: append([]int{os.Getpid()}, peers...), patience: time.Minute}
}

// settle rests, and waits until others rest too.
func (w *Watch) settle() {
	const glance = 100 * time.Millisecond
	time.Sleep(rest)
	for w.patience > 0 {
		before := w.usage()
		time.Sleep(glance)
		if before.others(w.usage()) <= quiet {
			return
		}
		w.patience -= glance
	}
}

// usage is that of this moment.
func (w *Watch) usage() usage {
	u, err := readUsage(w.pids...)
	if err != nil {
		return usage{}
	}
	return u
}

// usage is processor time, in the system's ticks.
type usage struct {
	all  int64 // of all processors, idle or not
	busy int64
	ours int64 // of that, of our processes
}

// readUsage reads the usage so far, and that of the processes given.
func readUsage(pids ...int) (u usage, err error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, err
	}
	if u.all, u.busy, err = parseProcessors(string(data)); err != nil {
		return u, err
	}
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return u, err
		}
		ticks, err := parseProcess(string(data))
		if err != nil {
			return u, err
		}
		u.ours += ticks
	}
	return u, nil
}

// parseProcessors reads the first line of /proc/stat: user, nice, system, idle,
// waiting, two kinds of interrupts, stolen.
func parseProcessors(s string) (all, busy int64, err error) {
	var t [8]int64
	if _, err := fmt.Sscanf(s, "cpu %d %d %d %d %d %d %d %d", &t[0], &t[1], &t[2], &t[3], &t[4],
		&t[5], &t[6], &t[7]); err != nil {
		return 0, 0, fmt.Errorf("/proc/stat: %w", err)
	}
	for _, n := range t {
		all += n
	}
	return all, all - t[3] - t[4], nil
}

// parseProcess reads a process's user and system time, the 14th and 15th words
// of its stat; the second is a name in brackets that may have blanks.
func parseProcess(s string) (int64, error) {
	var state string
	var skip, user, system int64
	_, rest, _ := strings.Cut(s[strings.LastIndexByte(s, ')')+1:], " ")
	_, err := fmt.Sscan(rest, &state, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip,
		&skip, &user, &system)
	if err != nil {
		return 0, fmt.Errorf("a process's stat: %w", err)
	}
	return user + system, nil
}

// others is the share of the machine that other programs had from u to v.
func (u usage) others(v usage) float64 {
	return max(0, float64(v.busy-u.busy-(v.ours-u.ours))/float64(max(1, v.all-u.all)))
}

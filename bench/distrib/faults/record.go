//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gomem/gomem/train"
)

// record is what a job shows.
type record struct {
	mu    sync.Mutex
	step  int   // that was shown last
	sizes []int // how many workers made a step
	twice int   // that were shown, and then made again
	began time.Time
	last  time.Time // that a step was shown
	pause time.Duration
	named time.Duration
	back  int
	lines []line // of standard error, and of views
}

// line is something that was said.
type line struct {
	at   time.Time
	text string
}

// begin is when harm is done.
func (r *record) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.last, r.twice, r.pause, r.named = time.Now(), time.Now(), 0, 0, 0
}

func (r *record) at() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.step
}

// said is all that was, with times since the harm.
func (r *record) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, l := range r.lines {
		fmt.Fprintf(&b, "%+7.2f s  %s\n", l.at.Sub(r.began).Seconds(), l.text)
	}
	return b.String()
}

var shown = regexp.MustCompile(`"type":"step","step":(\d+).*"workers":(\d+)`)

// note takes a line of output.
func (r *record) note(text string) {
	if strings.Contains(text, `"type":"view"`) {
		r.hear(text)
		return
	}
	m := shown.FindStringSubmatch(text)
	if m == nil {
		return
	}
	step, _ := strconv.Atoi(m[1])
	workers, _ := strconv.Atoi(m[2])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sizes = append(r.sizes, make([]int, max(0, step+1-len(r.sizes)))...)
	r.sizes[step] = workers
	r.twice += max(0, r.step+1-step)
	r.step = step
	r.pause = max(r.pause, time.Since(r.last))
	r.last = time.Now()
}

var naming = regexp.MustCompile(`\b(worker|rank|process) \d`)

// hear takes a line of standard error.
func (r *record) hear(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line{time.Now(), text})
	if r.named == 0 && !r.began.IsZero() && naming.MatchString(text) {
		r.named = time.Since(r.began)
	}
}

// outcome is what there is of one by now.
func (r *record) outcome(end string) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := outcome{end: end, pause: max(r.pause, time.Since(r.last)), named: r.named, twice: r.twice,
		back: r.back}
	for _, l := range r.lines {
		if !strings.HasPrefix(l.text, "{") { // a view's
			o.said, _, _ = strings.Cut(strings.TrimPrefix(l.text, "gomem: "), "; saved")
		}
	}
	return o
}

// watch looks whether the newest checkpoint becomes an older one, until it is stopped.
func (r *record) watch(dir string) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for newest := 0; ; {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
			c, err := train.Inspect(dir)
			if err != nil {
				continue // it is being written
			}
			if c.Step < newest {
				r.mu.Lock()
				r.back++
				r.mu.Unlock()
			}
			newest = c.Step
		}
	}()
	return func() { close(end); <-ended }
}

// process is one of a job.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

// start starts it and records what it shows.
func (p *process) start(r *record) error {
	out, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	said, err := p.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	go func() {
		defer close(p.ended)
		var both sync.WaitGroup
		both.Go(func() { each(out, r.note) })
		both.Go(func() { each(said, r.hear) })
		both.Wait()
		_ = p.Wait() // whose status is asked for where it matters
	}()
	return nil
}

func each(of io.Reader, do func(string)) {
	lines := bufio.NewScanner(of)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		do(lines.Text())
	}
}

// finish asks a process to end, and after a while kills it.
func (p *process) finish() {
	if p.Process == nil {
		return
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	_ = p.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.Process.Kill()
		<-p.ended
	}
}

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gomem/gomem/train"
)

// job is gomem-cluster with three workers.
type job struct {
	*exec.Cmd
	dir    string
	stderr lines
	ended  chan struct{}

	mu    sync.Mutex
	views []said // lines of output about who takes part
	step  int    // that was shown last
	lost  int    // that were shown, and then made again
}

// said is a line, and when it was written.
type said struct {
	at   time.Time
	text string
}

// lines are what is written, line by line.
type lines struct {
	mu  sync.Mutex
	all []said
}

// Write takes lines. A worker writes each at once.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for text := range strings.Lines(string(p)) {
		l.all = append(l.all, said{time.Now(), strings.TrimSpace(text)})
	}
	return len(p), nil
}

// String is all lines.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, s := range l.all {
		b.WriteString(s.text + "\n")
	}
	return b.String()
}

// since are the lines of a job with their times after one.
func (j *job) since(began time.Time) string {
	j.stderr.mu.Lock()
	all := slices.Clone(j.stderr.all)
	j.stderr.mu.Unlock()
	j.mu.Lock()
	all = append(all, j.views...)
	j.mu.Unlock()
	slices.SortStableFunc(all, func(a, b said) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%+7.2f s  %s\n", s.at.Sub(began).Seconds(), s.text)
	}
	return b.String()
}

// outcome is what became of a job.
type outcome struct {
	end   string
	after time.Duration
	lost  int // steps that were shown, and are made again or are in no checkpoint
	said  string
	lines string // all that was said, with times
}

// Times that a job has for something, at most.
const (
	startWithin = time.Minute
	endWithin   = 2 * time.Minute
	between     = 20 // steps from checkpoint to checkpoint
)

// suffer starts a job, does harm to it once it has saved, and waits for what comes of it.
func suffer(ctx context.Context, program, dir string, k kind, scheme string, f fault) (outcome,
	error) {
	e, err := beside(ctx, dir, k.etcd)
	defer e.end()
	if err != nil {
		return outcome{}, err
	}
	save := filepath.Join(dir, "run")
	if err := os.RemoveAll(save); err != nil {
		return outcome{}, err
	}
	j, err := start(ctx, program, save, scheme, append(k.args(e.urls), "--local", "3"))
	if err != nil {
		return outcome{}, err
	}
	defer j.Process.Kill()
	if err := j.reach(2*between, startWithin); err != nil {
		return outcome{}, err
	}
	if k.within {
		if err := j.spread(ctx, startWithin); err != nil {
			return outcome{}, err
		}
	}
	pids, err := j.victims(e, f.rank)
	if err != nil {
		return outcome{}, err
	}
	began := time.Now()
	if err := signalled(pids, f.signal); err != nil {
		return outcome{}, err
	}
	if f.undo != 0 {
		time.Sleep(f.after)
		if err := signalled(pids, f.undo); err != nil {
			return outcome{}, err
		}
	}
	o, err := j.outcome(began)
	o.lines = j.since(began)
	return o, err
}

// victims are the processes of a fault.
func (j *job) victims(e *etcd, rank int) (pids []int, err error) {
	if rank >= 0 || rank == leaders {
		pid, err := j.worker(max(rank, 0))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	if rank < 0 {
		pid, err := e.leader()
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// signalled sends a signal to processes.
func signalled(pids []int, s syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			return err
		}
	}
	return nil
}

// command is the command line of a worker, or of all.
func command(dir, scheme string, more []string) []string {
	return append([]string{"train", "--model", "resnet", "--size", "s512", "--steps", "1000000",
		"--sync", scheme, "--save", dir, "--save-every", strconv.Itoa(between),
		"--eval-batches", "1", "--json"}, more...)
}

func start(ctx context.Context, program, dir, scheme string, more []string) (*job, error) {
	j := &job{dir: dir, ended: make(chan struct{}),
		Cmd: exec.CommandContext(ctx, program, command(dir, scheme, more)...)}
	j.Stderr = &j.stderr
	out, err := j.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := j.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(j.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			j.note(lines.Text())
		}
		_ = j.Wait() // whose status is asked for where it matters
	}()
	return j, nil
}

var shown = regexp.MustCompile(`"type":"step","step":(\d+)`)

// note takes a line of output.
func (j *job) note(line string) {
	if strings.Contains(line, `"type":"view"`) {
		j.mu.Lock()
		j.views = append(j.views, said{time.Now(), line})
		j.mu.Unlock()
	}
	if m := shown.FindStringSubmatch(line); m != nil {
		step, _ := strconv.Atoi(m[1])
		j.mu.Lock()
		j.lost += max(0, j.step+1-step)
		j.step = step
		j.mu.Unlock()
	}
}

func (j *job) at() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.step
}

// reach waits until a step is shown and a checkpoint is there.
func (j *job) reach(step int, within time.Duration) error {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		select {
		case <-j.ended:
			return fmt.Errorf("it ended at step %d: %s", j.at(), j.stderr.String())
		default:
		}
		if _, err := train.Inspect(j.dir); err == nil && j.at() >= step {
			return nil
		}
	}
	return fmt.Errorf("step %d was not reached within %v: %s", step, within, j.stderr.String())
}

// spread waits until etcd is in three workers, which all vote.
func (j *job) spread(ctx context.Context, within time.Duration) error {
	pid, err := j.worker(0)
	if err != nil {
		return err
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(string(env), "\x00MASTER_PORT=")
	port, _, _ = strings.Cut(port, "\x00")
	return spread(ctx, "http://127.0.0.1:"+port, within)
}

// worker is the process of a rank.
func (j *job) worker(rank int) (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", j.Process.Pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			env, _ := os.ReadFile("/proc/" + word + "/environ")
			if bytes.Contains(env, fmt.Appendf(nil, "\x00RANK=%d\x00", rank)) {
				return strconv.Atoi(word)
			}
		}
	}
	return 0, errors.Join(err, fmt.Errorf("there is no worker %d", rank))
}

// outcome waits for the end of a job, or until it has gone on for as many steps as no worker
// makes that waits for another.
func (j *job) outcome(began time.Time) (outcome, error) {
	until := j.at() + 2*between
	for time.Since(began) < endWithin {
		select {
		case <-j.ended:
			return j.ending(began)
		case <-time.After(10 * time.Millisecond):
		}
		if j.at() < until {
			continue
		}
		o := outcome{end: "goes on", after: time.Since(began), lost: j.lost}
		if err := j.Process.Signal(os.Interrupt); err != nil {
			return o, err
		}
		<-j.ended
		return o, nil
	}
	return outcome{}, fmt.Errorf("it hangs: %s", j.stderr.String())
}

// ending is how a job has ended.
func (j *job) ending(began time.Time) (outcome, error) {
	o := outcome{after: time.Since(began),
		end: fmt.Sprintf("ends with status %d", j.ProcessState.ExitCode())}
	c, err := train.Inspect(j.dir)
	o.lost = j.lost + max(0, j.at()-c.Step)
	lines := strings.Split(strings.TrimSpace(j.stderr.String()), "\n")
	o.said, _, _ = strings.Cut(strings.TrimPrefix(lines[len(lines)-1], "gomem: "), "; saved")
	return o, err
}

//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gomem/gomem/bench/internal/lab"
	"github.com/gomem/gomem/train"
)

// Times that a job has for something, at most.
const (
	startWithin = time.Minute
	endWithin   = 2 * time.Minute
	wholeWithin = 20 * time.Second
	between     = 20      // steps from checkpoint to checkpoint
	smallDisk   = 4 << 20 // bytes
)

// stage is a job to which harm is done.
type stage struct {
	ctx          context.Context
	program, dir string
	kind         kind
	scheme       string
	at           string // rank 0's address

	lab       *lab.Lab
	etcd      *etcd
	processes []*process // the launcher, or workers by rank
	record    record
}

func (g *stage) save() string  { return filepath.Join(g.dir, "disk", "run") }
func (g *stage) token() string { return filepath.Join(g.dir, "token") }

// suffer starts a job, does harm to it once it has saved, and waits for what comes of it.
func (g *stage) suffer(s scenario) (o outcome, err error) {
	defer func() { err = errors.Join(err, g.end()) }()
	if err := g.set(); err != nil {
		return o, err
	}
	if err := g.reach(2*between, startWithin); err != nil {
		return o, err
	}
	if g.kind.within {
		if err := g.spread(startWithin); err != nil {
			return o, err
		}
	}
	stop := g.record.watch(g.save())
	defer stop()
	g.record.begin()
	if err := s.harm(g); err != nil {
		return o, err
	}
	o = g.outcome()
	o.lines = g.record.said()
	return o, nil
}

// set makes the stage and starts the job.
func (g *stage) set() (err error) {
	if err := errors.Join(os.RemoveAll(g.dir), os.MkdirAll(filepath.Join(g.dir, "disk"),
		0o755)); err != nil {
		return err
	}
	if g.kind.small {
		err = syscall.Mount("tmpfs", filepath.Join(g.dir, "disk"), "tmpfs", 0,
			fmt.Sprint("size=", smallDisk))
	}
	if g.kind.apart && err == nil {
		g.lab, err = lab.Lossy(g.ctx, 3)
	}
	if err == nil {
		g.etcd, err = beside(g.ctx, g.dir, g.kind.beside)
	}
	if err == nil && g.at == "" {
		g.at, err = free()
	}
	switch {
	case err != nil:
		return err
	case g.lab != nil:
		g.at = g.lab.Addr(0) + ":29400"
	case !g.kind.single:
		return g.launch()
	}
	for rank := range 2 {
		if err := g.start(rank, g.token()); err != nil {
			return err
		}
	}
	if g.lab != nil {
		return g.start(2, g.token())
	}
	return nil
}

// launch starts all three by the launcher.
func (g *stage) launch() error {
	n := cmp.Or(g.kind.local, 3)
	return g.run(exec.CommandContext(g.ctx, g.program, g.command("--local", fmt.Sprint(n))...))
}

// start starts a worker.
func (g *stage) start(rank int, token string) error {
	args := g.command("--workers", "3", "--rank", fmt.Sprint(rank), "--master", g.at, "--tls",
		"auto", "--token-file", token)
	if g.lab != nil {
		return g.run(g.lab.Exec(g.ctx, rank, g.program, args...))
	}
	return g.run(exec.CommandContext(g.ctx, g.program, args...))
}

// command is the command line of a worker, or of all.
func (g *stage) command(more ...string) []string {
	args := append(training(g.scheme), "--steps", "1000000", "--save", g.save(), "--save-every",
		strconv.Itoa(between))
	return append(append(args, g.kind.args(g.etcd.urls)...), more...)
}

// training is what all jobs do.
func training(scheme string) []string {
	return []string{"train", "--model", "resnet", "--size", "s512", "--sync", scheme,
		"--eval-batches", "1", "--json"}
}

// run starts a process of the job.
func (g *stage) run(c *exec.Cmd) error {
	p := &process{Cmd: c, ended: make(chan struct{})}
	g.processes = append(g.processes, p)
	return p.start(&g.record)
}

// reach waits until a step is shown and a checkpoint is there.
func (g *stage) reach(step int, within time.Duration) error {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if g.over() {
			return fmt.Errorf("it ended at step %d: %s", g.record.at(), g.record.said())
		}
		if _, err := train.Inspect(g.save()); err == nil && g.record.at() >= step {
			return nil
		}
	}
	return fmt.Errorf("step %d was not reached within %v: %s", step, within, g.record.said())
}

// over reports whether all processes have ended.
func (g *stage) over() bool {
	for _, p := range g.processes {
		select {
		case <-p.ended:
		default:
			return false
		}
	}
	return true
}

// worker is the process of a rank.
func (g *stage) worker(rank int) (int, error) {
	if g.kind.single {
		return g.processes[rank].Process.Pid, nil
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", g.processes[0].Process.Pid))
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

// outcome waits until all of a job has ended, or it has gone on for as many steps as no worker
// makes that waits for another, and then a while for all three to be in it.
func (g *stage) outcome() outcome {
	until := g.record.at() + 2*between
	for end := time.Now().Add(endWithin); g.record.at() < until; time.Sleep(10 * time.Millisecond) {
		if g.over() {
			return g.ending()
		}
		if time.Now().After(end) {
			return g.record.outcome("hangs")
		}
	}
	o := g.record.outcome("goes on")
	for end := time.Now().Add(wholeWithin); g.kind.min > 0 && !o.whole && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		c, err := train.Inspect(g.save())
		o.whole = err == nil && c.Workers == 3
	}
	o.back = g.record.outcome("").back
	return o
}

// ending is how a job has ended.
func (g *stage) ending() outcome {
	o := g.record.outcome(fmt.Sprintf("ends with status %d",
		g.processes[0].ProcessState.ExitCode()))
	if c, err := train.Inspect(g.save()); err == nil {
		o.twice += max(0, g.record.at()-c.Step)
	}
	return o
}

// end ends what was started. A job that goes on is asked to.
func (g *stage) end() error {
	for _, p := range g.processes {
		p.finish()
	}
	g.etcd.end()
	var errs []error
	if g.lab != nil {
		errs = append(errs, g.lab.Close())
	}
	if g.kind.small {
		errs = append(errs, syscall.Unmount(filepath.Join(g.dir, "disk"), 0))
	}
	return errors.Join(errs...)
}

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gomem/gomem/train"
)

// Workers are killed after a time between these.
const (
	killAfter  = 5 * time.Second
	killBefore = 20 * time.Second
	killWithin = time.Minute // there is a worker to kill
	four       = 4
)

// killed kills workers of one job, again and again, and compares what it has come to with a job
// whose workers come and go at the same steps, but end as they are asked to.
func killed(ctx context.Context, w io.Writer, program, dir string, kills int) error {
	g := &stage{ctx: ctx, program: program, dir: filepath.Join(dir, "killed"), scheme: "ring",
		kind: kind{local: four, again: true, min: 2, beside: 1}}
	began := time.Now()
	c, err := g.bear(kills)
	if err = errors.Join(err, g.end()); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d kills in %v: the job goes on until it is asked to end, after step %d\n",
		kills, time.Since(began).Round(time.Second), c.Step)
	fmt.Fprintf(w, "%d steps were made twice, %d times a checkpoint was set back\n",
		g.record.twice, g.record.back)
	all := stretches(g.record.sizes[:c.Step+1])
	again := filepath.Join(dir, "again")
	for i, s := range all {
		if err := replay(ctx, program, again, s, i > 0); err != nil {
			return fmt.Errorf("%d workers to step %d: %w", s.workers, s.end, err)
		}
	}
	same, err := equal(g.save(), again)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "without a fault, in %d stretches of 2 to %d workers: the same bits: %t\n",
		len(all), four, same)
	if !same {
		return errors.New("the weights differ")
	}
	return nil
}

// bear is a job whose workers are killed. It returns its last checkpoint.
func (g *stage) bear(kills int) (c train.Checkpoint, err error) {
	if err := g.set(); err != nil {
		return c, err
	}
	if err := g.reach(2*between, startWithin); err != nil {
		return c, err
	}
	stop := g.record.watch(g.save())
	defer stop()
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range kills {
		wait := killAfter + time.Duration(chance.Int64N(int64(killBefore-killAfter)))
		select {
		case <-g.processes[0].ended:
			return c, fmt.Errorf("the job ends after %d kills: %s", i, g.record.said())
		case <-g.ctx.Done():
			return c, g.ctx.Err()
		case <-time.After(wait):
		}
		if err := g.killOne(chance); err != nil {
			return c, err
		}
	}
	before := g.record.at()
	if err := g.reach(before+2*between, endWithin); err != nil {
		return c, err
	}
	g.processes[0].finish()
	if status := g.processes[0].ProcessState.ExitCode(); status != 0 {
		return c, fmt.Errorf("the job ends with status %d: %s", status, g.record.said())
	}
	return train.Inspect(g.save())
}

// killOne kills a worker that is there.
func (g *stage) killOne(chance *rand.Rand) error {
	for end := time.Now().Add(killWithin); time.Now().Before(end); {
		pid, err := g.worker(chance.IntN(four))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("there is nobody to kill: %s", g.record.said())
}

// stretch is steps that as many workers make.
type stretch struct {
	workers int
	end     int // the last step
}

// stretches are those of a list of how many workers have made each step; there is no step 0.
func stretches(sizes []int) (all []stretch) {
	for step := 1; step < len(sizes); step++ {
		n := len(all)
		switch {
		case sizes[step] == 0 && n > 0: // it was made, but who was to show it was killed
			all[n-1].end = step
		case n > 0 && all[n-1].workers == sizes[step]:
			all[n-1].end = step
		default:
			all = append(all, stretch{sizes[step], step})
		}
	}
	return all
}

// replay goes on to the end of a stretch.
func replay(ctx context.Context, program, dir string, s stretch, resume bool) error {
	args := append(training("ring"), "--steps", strconv.Itoa(s.end), "--local",
		strconv.Itoa(s.workers))
	if resume {
		args = append(args, "--resume", dir)
	} else {
		args = append(args, "--save", dir)
	}
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// equal reports whether the tensors of two directories' checkpoints are the same, bit by bit.
func equal(a, b string) (bool, error) {
	x, err := tensors(a)
	if err != nil {
		return false, err
	}
	y, err := tensors(b)
	return bytes.Equal(x, y), err
}

// tensors are the bytes of a checkpoint's tensors: those after the header, which tells more of a
// run than its state.
func tensors(dir string) ([]byte, error) {
	c, err := train.Inspect(dir)
	if err != nil {
		return nil, err
	}
	all, err := os.ReadFile(c.Path)
	if err != nil {
		return nil, err
	}
	return all[8+binary.LittleEndian.Uint64(all):], nil
}

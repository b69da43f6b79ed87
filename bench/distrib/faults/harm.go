//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// victims are the processes of a fault.
type victims func(*stage) (pids []int, err error)

// ranks is a worker.
func ranks(rank int) victims {
	return func(g *stage) ([]int, error) {
		pid, err := g.worker(rank)
		return []int{pid}, err
	}
}

// leader is the process of the etcd beside a job that leads it.
func leader(g *stage) ([]int, error) {
	pid, err := g.etcd.leader()
	return []int{pid}, err
}

func both(a, b victims) victims {
	return func(g *stage) ([]int, error) {
		first, err := a(g)
		second, and := b(g)
		return append(first, second...), errors.Join(err, and)
	}
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

// kill sends a signal.
func kill(who victims, s syscall.Signal) func(*stage) error {
	return func(g *stage) error {
		pids, err := who(g)
		if err != nil {
			return err
		}
		return signalled(pids, s)
	}
}

// stop stops processes, and lets them go on.
func stop(who victims, d time.Duration) func(*stage) error {
	return func(g *stage) error {
		pids, err := who(g)
		if err != nil {
			return err
		}
		if err := signalled(pids, syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(d)
		err = signalled(pids, syscall.SIGCONT)
		if errors.Is(err, syscall.ESRCH) { // somebody has killed it meanwhile
			return nil
		}
		return err
	}
}

// away ends the one process of an etcd beside a job, and starts another with its data.
func away(d time.Duration) func(*stage) error {
	return func(g *stage) error {
		p := g.etcd.processes[0]
		_ = p.Process.Kill()
		_ = p.Wait()
		time.Sleep(d)
		if err := g.etcd.start(g.ctx, p.text); err != nil {
			return err
		}
		return g.etcd.here()
	}
}

// lose has a worker's link lose parts of what leaves the node and of what comes.
func lose(rank int, leaving, coming float64) func(*stage) error {
	return func(g *stage) error {
		g.lab.Lose(rank, leaving, coming)
		time.Sleep(cutFor)
		g.lab.Lose(rank, 0, 0)
		return nil
	}
}

// slow has a worker's link carry so many bits a second.
func slow(rank int, bps float64) func(*stage) error {
	return func(g *stage) error {
		if err := g.lab.Rate(g.ctx, rank, bps); err != nil {
			return err
		}
		time.Sleep(cutFor)
		return g.lab.Rate(g.ctx, rank, 0)
	}
}

// fill fills the disk, and makes room again.
func fill(d time.Duration) func(*stage) error {
	return func(g *stage) error {
		name := filepath.Join(g.dir, "disk", "full")
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
			return errors.Join(errors.New("the disk does not fill"), err)
		}
		time.Sleep(d)
		return errors.Join(f.Close(), os.Remove(name))
	}
}

// zeros reads as zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// late starts the third worker when the others train.
func late(g *stage) error { return g.start(2, g.token()) }

// hostile starts the third worker with another token than the others', and waits until it has
// ended.
func hostile(g *stage) error {
	wrong, err := forged(g.token())
	if err != nil {
		return err
	}
	if err := g.start(2, wrong); err != nil {
		return err
	}
	<-g.processes[len(g.processes)-1].ended
	return nil
}

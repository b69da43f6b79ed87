//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestRestarts: a run of which a worker is killed begins again from its latest checkpoint, and ends
// with the weights of one that nobody was lost from; not more often than was said.
func TestRestarts(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	args := []string{"--local", "2", "--steps", "60", "--json"}
	want := start(t, t.TempDir(), args...).weights(t)
	dir := t.TempDir()
	j := start(t, dir, append(args, "--save", "run", "--save-every", "3", "--restarts", "1")...)
	saved(t, j, filepath.Join(dir, "run"))
	if err := syscall.Kill(j.worker(t, 1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if have := j.weights(t); have != want {
		t.Errorf("weights %s, want %s", have, want)
	}
	said := j.stderr.String()
	if !strings.Contains(said, "all begin again from step ") ||
		!strings.Contains(said, "restart 1 of 1") {
		t.Error(said)
	}
	j = start(t, t.TempDir(), "--local", "2", "--steps", "100000", "--save", "run",
		"--restarts", "1")
	for range 2 {
		pid := j.worker(t, 1)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for syscall.Kill(pid, 0) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if status := j.end(); status != 1 ||
		strings.Count(j.stderr.String(), "all begin again from the start") != 1 {
		t.Errorf("status %d: %s", status, j.stderr.String())
	}
	j = start(t, t.TempDir(), "--local", "2", "--device-memory", "1KiB", "--save", "run",
		"--restarts", "3")
	if status := j.end(); status != 1 || strings.Contains(j.stderr.String(), "again") {
		t.Errorf("in vain: status %d: %s", status, j.stderr.String())
	}
}

// TestRestartOfOne: where workers come and go one that is killed is started again and joins the
// others.
func TestRestartOfOne(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := start(t, dir, "--local", "3", "--min", "2", "--steps", "100000", "--save", "run",
		"--save-every", "2", "--restarts", "2")
	workers := func(want int) {
		t.Helper()
		for range 3000 {
			if c, err := train.Inspect(filepath.Join(dir, "run")); err == nil && c.Workers == want {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		_ = j.Process.Kill()
		t.Fatalf("%d workers never are there: %s\n%s", want, j.stderr.String(), j.stdout.String())
	}
	for restarts := 0; restarts < 2; {
		workers(3)
		if err := syscall.Kill(j.worker(t, 1), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		restarts++
		for began := time.Now(); strings.Count(j.stderr.String(), "is started again") < restarts; {
			if time.Sleep(20 * time.Millisecond); time.Since(began) > time.Minute {
				t.Fatalf("nobody is started again: %s", j.stderr.String())
			}
		}
		time.Sleep(time.Second) // or the killed one is counted still
	}
	workers(3)
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 0 {
		t.Errorf("status %d: %s", status, j.stderr.String())
	}
	for _, want := range []string{"worker 1 is started again, restart 1 of 2",
		"worker 1 is started again, restart 2 of 2"} {
		if !strings.Contains(j.stderr.String(), want) {
			t.Errorf("no %q in %s", want, j.stderr.String())
		}
	}
}

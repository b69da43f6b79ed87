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

// TestComesBack: a worker that is stopped until the others have gone on without it, and longer,
// is one of them again in the same process when it wakes, and all end with the same weights.
func TestComesBack(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := start(t, dir, "--local", "3", "--min", "2", "--steps", "100000", "--save", "run",
		"--save-every", "1", "--log-level", "info")
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	workers := func(n int) func() bool {
		return func() bool {
			c, err := train.Inspect(run)
			return err == nil && c.Workers == n
		}
	}
	until(t, j, "three are at work", workers(3))
	pid := j.worker(t, 2)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	until(t, j, "two go on", workers(2))
	time.Sleep(time.Until(stopped.Add(15 * time.Second)))
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, j, "it is back", workers(3))
	before := step(t, run)
	until(t, j, "three go on", func() bool { return step(t, run) > before+5 && workers(3)() })
	if j.worker(t, 2) != pid {
		t.Error("it is another process")
	}
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := j.end(); status != 0 { // all have compared their weights
		t.Errorf("status %d: %s", status, j.stderr.String())
	}
	// That its lease is lost is said, too, unless it hears first that the view is another.
	for _, what := range []string{"msg=elected", "msg=view", "msg=group", "msg=broken", "msg=out",
		"evicted=[2]", "epoch=3"} {
		if !strings.Contains(j.stderr.String(), what) {
			t.Errorf("nothing logs %s in %s", what, j.stderr.String())
		}
	}
	for _, want := range []string{"worker 2 was cut off, and is out: it tries to come back",
		"worker 2 is back, as one that has just come"} {
		if strings.Count(j.stderr.String(), want) != 1 {
			t.Errorf("not once %q in %s", want, j.stderr.String())
		}
	}
}

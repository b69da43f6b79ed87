//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestEtcdOfThree: with etcd in three workers the job goes on without the one that it began
// in, and ends in order when it is asked to.
func TestEtcdOfThree(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("a long test: how long etcd takes to spread is not told")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	j := start(t, dir, "--local", "3", "--etcd", "3", "--min", "2", "--steps", "100000",
		"--save", "run", "--save-every", "5")
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	until(t, j, "etcd is in three workers", func() bool {
		folders, _ := filepath.Glob(filepath.Join(os.TempDir(), "gomem-job-*", "gomem-etcd-*"))
		return len(folders) == 3
	})
	time.Sleep(20 * time.Second) // the last of them learns, and is told to vote
	if err := syscall.Kill(j.worker(t, 0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, j, "two go on", func() bool {
		c, err := train.Inspect(run)
		return err == nil && c.Workers == 2
	})
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	status, said := j.end(), j.stderr.String()
	if status != 0 || !strings.Contains(said, "[1] gomem: stopped after step ") ||
		!strings.Contains(said, "worker 0 of 3 has ended: signal: killed; 2 are left") {
		t.Errorf("status %d: %s", status, said)
	}
}

// until waits a minute for something.
func until(t *testing.T, j *job, what string, is func() bool) {
	t.Helper()
	for range 3000 {
		if is() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("not so: %s: %s", what, j.stderr.String())
}

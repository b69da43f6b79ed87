//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/snapshot"
	"github.com/gomem/gomem/internal/longtest"
)

// TestSnapshotsKilled: workers without layers are all killed at any time, again and again, while
// they save; what was whole is gone on from, and the end has the bits of a run without a fault.
func TestSnapshotsKilled(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	const epochs = "120"
	args := func(save string) []string {
		return []string{"train", "--model", "mf", "--sync", "bsp", "--local", "3", "--epochs",
			epochs, "--save-every", "1", "--save", save}
	}
	run := launch(t, dir, args("whole")...)
	if status := run.end(); status != 0 {
		t.Fatal(run.stderr.String())
	}
	at := int64(0)
	shelf := snapshot.Open(filepath.Join(dir, "killed"))
	for _, after := range []int64{3, 30, 31, 60} {
		now := args("killed")
		if at > 0 {
			now = append(now, "--resume", "killed")
		}
		j := launch(t, dir, now...)
		pids := []int{j.worker(t, 0), j.worker(t, 1), j.worker(t, 2)}
		for ; at < after; time.Sleep(time.Millisecond) {
			m, _ := shelf.Latest()
			at = m.Epoch
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		j.end()
	}
	j := launch(t, dir, append(args("killed"), "--resume", "killed")...)
	if status := j.end(); status != 0 || strings.Contains(j.stdout.String(), "epoch 1 ") {
		t.Fatal(j.stdout.String(), j.stderr.String())
	}
	if want, got := tables(t, dir, "whole"), tables(t, dir, "killed"); want != got {
		t.Error("other bits than without a fault")
	}
}

// tables are those of a run, as bytes of a file.
func tables(t *testing.T, dir, run string) string {
	t.Helper()
	j := launch(t, dir, "export", "--from", run, run+"-tables")
	if status := j.end(); status != 0 {
		t.Fatal(j.stderr.String())
	}
	b, err := os.ReadFile(filepath.Join(dir, run+"-tables", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", b)
}

// TestSnapshotsElastic: a worker is killed, the others go on, and save what they come to as others
// than before; it comes again.
func TestSnapshotsElastic(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := launch(t, dir, "train", "--model", "mf", "--sync", "ssp", "--local", "3", "--min", "2",
		"--lease", "2s", "--epochs", "100000", "--save-every", "1", "--save", "run")
	shelf := snapshot.Open(filepath.Join(dir, "run"))
	wait := func(what string, until func(snapshot.Mark) bool) {
		t.Helper()
		for range 3000 {
			if m, ok := shelf.Latest(); ok && until(m) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s: %s", what, j.stderr.String())
	}
	wait("nothing is saved", func(snapshot.Mark) bool { return true })
	first, _ := shelf.Latest()
	if err := syscall.Kill(j.worker(t, 2), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait("the others save nothing", func(m snapshot.Mark) bool {
		return m.View > first.View && m.Epoch > first.Epoch
	})
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	j.end()
	if !strings.Contains(j.stderr.String(), "go on with --resume run (after epoch ") {
		t.Error(j.stderr.String())
	}
	if _, _, err := shelf.Newest(); err != nil {
		t.Error(err)
	}
}

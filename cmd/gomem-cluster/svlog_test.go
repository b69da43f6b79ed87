//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestKilledLogged: of a run whose processes are all killed, the checkpoint of the step before is
// made from what they have logged, without any that was saved, and another run goes on from it.
func TestKilledLogged(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	j := start(t, dir, "--local", "2", "--sync", "orpheus", "--average", "3", "--steps", "100000",
		"--svlog", "log", "--svlog-keep", "9")
	pids := []int{j.worker(t, 0), j.worker(t, 1)}
	for n := 0; n < 9; time.Sleep(5 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(dir, "log", "worker-1", "*.svlog"))
		n = len(files)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	j.end()
	r := launch(t, dir, "restore", "--from", "log", "--save", "back", "--json")
	if status := r.end(); status != 0 {
		t.Fatalf("status %d: %s", status, r.stderr.String())
	}
	var said struct {
		Step    int
		Missing []int
	}
	if err := json.Unmarshal([]byte(r.stdout.String()), &said); err != nil || said.Step < 2 {
		t.Fatalf("%s: %v", r.stdout.String(), err)
	}
	c, err := train.Inspect(filepath.Join(dir, "back"))
	if err != nil || c.Step != said.Step || c.Workers != 2 {
		t.Fatal(c, err)
	}
	start(t, dir, "--local", "2", "--sync", "orpheus", "--steps", fmt.Sprint(c.Step+2), "--resume",
		"back", "--svlog", "log", "--json").weights(t)
	if _, err := os.Stat(filepath.Join(dir, "log", "worker-0")); err != nil {
		t.Error(err)
	}
}

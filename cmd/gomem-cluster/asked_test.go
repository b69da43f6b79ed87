//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestAskedWhileStopped: a worker that waits for one that is stopped ends when it is asked to, long
// before leases do: the first one saves what it has, another one says in a line why it ends.
func TestAskedWhileStopped(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	for _, more := range [][]string{nil, {"--min", "2", "--lease", "10m"}} {
		for _, asked := range []int{0, 2} {
			t.Run(fmt.Sprint(asked, more), func(t *testing.T) {
				t.Parallel()
				askWhileStopped(t, asked, more)
			})
		}
	}
}

func askWhileStopped(t *testing.T, asked int, more []string) {
	dir := t.TempDir()
	j := start(t, dir, append(more, "--local", "3", "--steps", "100000", "--save", "run",
		"--save-every", "1")...)
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	other := j.worker(t, 1)
	for _, s := range []struct {
		pid    int
		signal syscall.Signal
	}{{other, syscall.SIGSTOP}, {j.worker(t, asked), syscall.SIGTERM}} {
		if err := syscall.Kill(s.pid, s.signal); err != nil {
			t.Fatal(err)
		}
	}
	ends := ""
	if len(more) > 0 && asked > 0 {
		ends = fmt.Sprintf("worker %d of 3 has ended: exit status 143", asked)
	}
	until(t, j, "who was asked ends", func() bool {
		said := j.stderr.String()
		return strings.Contains(said, "stopped after step") && strings.Contains(said, ends)
	})
	if err := syscall.Kill(other, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = j.end()
	line := regexp.MustCompile(`(?m)^(\[2\] )?gomem: stopped after step \d+: ` +
		`worker 1 is gone: (it does not answer|the connection broke)(; saved at step \d+; .*)?$`)
	said := j.stderr.String()
	if !line.MatchString(said) {
		t.Errorf("it does not say why in a line: %s", said)
	}
	if c, err := train.Inspect(run); err != nil || c.Step < 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

//go:build linux

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// shown are the steps that a run has shown: how many, of how many tokens, the last one, and the
// lines that say who goes on.
type shown struct {
	steps, tokens, last int
	views               []string
}

func show(t *testing.T, j *job) (s shown) {
	t.Helper()
	for line := range strings.Lines(j.stdout.String()) {
		var e struct {
			Type, Text  string
			Step, Units int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil && strings.Contains(line, "step") {
			continue // the summary
		}
		switch e.Type {
		case "step":
			s.steps, s.tokens, s.last = s.steps+1, s.tokens+e.Units, e.Step
		case "view":
			s.views = append(s.views, e.Text)
		}
	}
	return s
}

// TestPasses: a run over passes of the data, of which a worker is killed and started again in
// their midst, has had every batch once when it ends, as one worker has.
func TestPasses(t *testing.T) {
	t.Parallel()
	longtest.Only(t, "TestPassesOfThoseWhoComeAndGo")
	const passes = "14"
	one := start(t, t.TempDir(), "--epochs", passes, "--json", "--device", "null")
	if status := one.end(); status != 0 {
		t.Fatal(one.stderr.String())
	}
	want := show(t, one)
	dir := t.TempDir()
	j := start(t, dir, "--local", "3", "--min", "2", "--restarts", "1", "--epochs", passes,
		"--save", "run", "--save-every", "1", "--json")
	run := filepath.Join(dir, "run")
	saved(t, j, run)
	if err := syscall.Kill(j.worker(t, 1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.weights(t)
	have := show(t, j)
	c, err := train.Inspect(run)
	if err != nil || c.Executions != want.steps || c.Step != have.last || c.Workers != 3 {
		t.Errorf("%d batches, want %d; step %d of %d; %d workers, %v", c.Executions, want.steps,
			c.Step, have.last, c.Workers, err)
	}
	gone := len(have.views) > 0 && (strings.Contains(have.views[0], "worker 1 is gone; 2 go on") ||
		strings.Contains(have.views[0], "3 go on")) // it was back before it was missed
	if !gone {
		t.Errorf("%q", have.views)
	}
	if have.steps == have.last && have.tokens != want.tokens || have.tokens > want.tokens {
		t.Errorf("%d tokens in %d of %d steps, want %d: %q", have.tokens, have.steps, have.last,
			want.tokens, have.views)
	}
}

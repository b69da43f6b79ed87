package command

import (
	"slices"
	"strings"
	"testing"
)

// TestAgain: who begins again goes on from the run's checkpoint, whatever the run began with.
func TestAgain(t *testing.T) {
	inDir(t)
	c := savedRun{dir: "run"}
	args := []string{"train", "--resume", "old", "--init=x", "--steps", "3"}
	if have, saved := c.again(args); !slices.Equal(have, args) || saved != "" {
		t.Errorf("with no checkpoint: %q, %q", have, saved)
	}
	succeed(t, "train", "--size", "s512", "--steps", "1", "--save", "run")
	want := []string{"train", "--steps", "3", "--resume", "run"}
	if have, saved := c.again(args); !slices.Equal(have, want) || saved != "step 1" {
		t.Errorf("%q from %q, want %q", have, saved, want)
	}
	c = savedRun{"tables", true}
	if have, saved := c.again(args); !slices.Equal(have, args) || saved != "" {
		t.Errorf("with no snapshot: %q, %q", have, saved)
	}
	succeed(t, "train", "--model", "mlr", "--epochs", "2", "--save", "tables")
	want[len(want)-1] = "tables"
	if have, saved := c.again(args); !slices.Equal(have, want) || saved != "epoch 2" {
		t.Errorf("%q from %q, want %q", have, saved, want)
	}
}

// TestRestartsRefused: restarts that nothing would come of.
func TestRestartsRefused(t *testing.T) {
	inDir(t)
	for want, args := range map[string][]string{
		"--restarts needs --local": {"train", "--restarts", "2", "--save", "run"},
		"needs --save DIR":         {"train", "--restarts", "2", "--local", "2"},
	} {
		o := gather(t, inMemory{}, args...)
		if o.status != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d, %q, want %q", args, o.status, o.stderr, want)
		}
	}
}

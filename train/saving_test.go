package train

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestSaveAfter: checkpoints are made when it is time for one, by how long the last has taken; of
// several workers when the first one says so, after the same step whatever their lag.
func TestSaveAfter(t *testing.T) {
	for _, c := range []struct{ workers, lag int }{{1, 0}, {3, 0}, {3, 2}} {
		var asked []time.Duration // of each answer that was at once
		have := abreast(c.workers, c.lag, func(rank int) (context.Context, Options) {
			o := lesson(t, 6, 1)
			o.Epochs, o.Steps, o.Save, o.EvalEvery, o.Keep = 0, 12, t.TempDir(), 100, 9
			o.SaveAfter = func(took time.Duration) time.Duration {
				if rank > 0 {
					t.Error("another worker than the first is asked")
				}
				if len(asked) == 2 {
					return time.Hour
				}
				asked = append(asked, took)
				return 0
			}
			return t.Context(), o
		})
		if err := errors.Join(have.errs...); err != nil {
			t.Fatal(err)
		}
		var steps []int
		for _, e := range have.events[0] {
			if e.Kind == Save {
				steps = append(steps, e.Step)
			}
		}
		if len(asked) != 2 || asked[0] != 0 || asked[1] <= 0 && c.lag == 0 {
			t.Errorf("%+v: asked with %v", c, asked)
		}
		if n := len(steps); n < 2 || n > 3 || steps[n-1] != 12 || steps[0] != 1+c.lag {
			t.Errorf("%+v: saved after %v", c, steps)
		}
	}
	o := lesson(t, 6, 1)
	o.Save, o.SaveEvery = t.TempDir(), 1
	o.SaveAfter = func(time.Duration) time.Duration { return 0 }
	if err := o.Validate(); err == nil {
		t.Error("both a number of steps and a time are taken")
	}
}

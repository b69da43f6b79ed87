package thesis

import (
	"context"
	"testing"

	"github.com/gomem/gomem/internal/fit"
	"github.com/gomem/gomem/internal/longtest"
)

// TestOverpartitions: every way of table 6.13 has a plan of a few experts, vanilla none of
// many; a number of experts that a mesh divides runs in slices as planned.
func TestOverpartitions(t *testing.T) {
	longtest.Skip(t)
	ctx := context.Background()
	for _, row := range overpartitions {
		if row.best { // graphs of a fine lowering are large
			if a, err := row.fits(ctx, replica, 4); err != nil || !a.Fits {
				t.Errorf("%s: 4 experts fit: %t, %v", row.name, a.Fits, err)
			}
		}
	}
	if a, err := overpartitions[4].fits(ctx, replica, 64); err != nil || a.Fits {
		t.Errorf("64 experts fit all on the device: %t, %v", a.Fits, err)
	}
	last := overpartitions[len(overpartitions)-1]
	r := &runner{Options{Size: replica}}
	got, err := last.confirm(ctx, r, fit.Answer{Most: 4, Next: 8})
	if err != nil || got != "runs; +4 refused" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := last.fits(ctx, replica, 6); err == nil {
		t.Error("6 experts are divided into 4 parts")
	}
}

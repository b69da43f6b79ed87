package planner

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
)

// TestFitsIsWhatPlanSays: whatever the budgets, of one memory or of both, Fits refuses
// what Plan refuses, with the same need, and Probe says so without it.
func TestFitsIsWhatPlanSays(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		of := rapid.SampledFrom([]space.ID{space.Device, space.Host}).Draw(t, "space")
		if rapid.IntRange(0, 3).Draw(t, "disk") == 0 {
			o.DiskBytes = 1 << rapid.IntRange(4, 40).Draw(t, "disk bytes")
		}
		least, err := LeastOf(ctx, g, o, of, targets...)
		if err != nil {
			t.Skip("nothing fits")
		}
		*o.Budget(of) = max(1, least+rapid.Int64Range(-1, 1).Draw(t, "more"))
		_, err = Plan(ctx, g, o, targets...)
		want, refused := errors.AsType[*ErrOutOfMemory](err)
		if err != nil && !refused {
			t.Fatal(err)
		}
		err = Fits(ctx, g, o, targets...)
		got, alike := errors.AsType[*ErrOutOfMemory](err)
		switch {
		case refused != alike || err != nil && !alike:
			t.Fatalf("%s: Plan says %v, Fits %v", o, want, err)
		case refused && (got.Need != want.Need || got.Space != want.Space):
			t.Fatalf("%s: Plan needs %d bytes of %s, Fits %d of %s", o, want.Need, want.Space,
				got.Need, got.Space)
		}
		fits, load, err := Probe(ctx, g, o, targets...)
		if err != nil || fits == refused || refused != (load > 1) || load <= 0 {
			t.Fatalf("%s: Plan says %v, Probe %t, %v of a budget, %v", o, want, fits, load, err)
		}
	})
}

// TestFitsOfNothing: what is no graph is no refusal.
func TestFitsOfNothing(t *testing.T) {
	err := Fits(t.Context(), nil, Options{}, Target{})
	if _, refused := errors.AsType[*ErrOutOfMemory](err); err == nil || refused {
		t.Errorf("without a graph: %v", err)
	}
	if _, _, probed := Probe(t.Context(), nil, Options{}, Target{}); probed == nil ||
		probed.Error() != err.Error() {
		t.Errorf("%v, want %v", probed, err)
	}
}

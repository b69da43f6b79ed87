package laws_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// TestFusionKeepsBits: the model trains to the same losses and weights with
// fusion and without.
func TestFusionKeepsBits(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		m := moe(t, sparse)
		for _, o := range []planner.Options{{Policy: planner.Vanilla}, {}} {
			want, err := moeDigest(m, gomem.Options{NoFusion: true}.With(o), 5)
			if err != nil {
				t.Fatal(err)
			}
			got, err := moeDigest(m, gomem.Options{}.With(o), 5)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("sparse=%v %s: fusion gives other bits", sparse, o)
			}
		}
	}
}

// TestFusionKeepsPeaks: whatever the options, a session with fusion makes do with
// what it needs without; where there is room to choose, it runs fewer operations.
func TestFusionKeepsPeaks(t *testing.T) {
	ctx := context.Background()
	for _, sparse := range []bool{false, true} {
		m := moe(t, sparse)
		targets := []gomem.Target{gomem.Training(m.Graph, m.Objectives[0].Loss),
			gomem.Evaluation(m.EvalLoss)}
		for i, o := range append([]gomem.Options{{},
			{Policy: planner.Vanilla}}, moeOptions(longtest.Count(11, 5))...) {
			o.Effort = 60 // what fits does not depend on it
			fused, err := gomem.Plan(ctx, m.Graph, o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			o.NoFusion = true
			plain, err := gomem.Plan(ctx, m.Graph, o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			o.NoFusion, o.DeviceBytes = false, plain.Peak(space.Device)
			if _, err := gomem.Plan(ctx, m.Graph, o, targets...); err != nil {
				t.Errorf("sparse=%v %s: %v", sparse, o.Planning(), err)
			}
			if a, b := fused.Results[0].Plan.Launches(), plain.Results[0].Plan.Launches(); i < 2 &&
				a >= b {
				t.Errorf("sparse=%v %s: %d launches, without fusion %d", sparse, o.Planning(), a, b)
			}
		}
	}
}

// TestFusionKeepsBudgets: the smallest budget is no larger with fusion than
// without; it works, and one byte less is refused with that very number.
func TestFusionKeepsBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
		target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
		o, ctx := trial.RandomOptions(t), context.Background()
		o.Policy = rapid.SampledFrom([]planner.Policy{planner.Vanilla, planner.Thesis}).Draw(t,
			"policy")
		o.NoFusion = true
		plain, err := gomem.MinDevice(ctx, m.Graph, o, target)
		if err != nil {
			t.Fatal(err)
		}
		o.NoFusion = false
		least, err := gomem.MinDevice(ctx, m.Graph, o, target)
		if err != nil || least > plain {
			t.Fatalf("%s: the smallest budget is %d (%v), without fusion %d", o.Planning(), least,
				err,
				plain)
		}
		for _, budget := range []int64{least, plain} {
			o.DeviceBytes = budget
			if _, err := gomem.Plan(ctx, m.Graph, o, target); err != nil {
				t.Fatal(err)
			}
		}
		o.DeviceBytes = least - 1
		_, err = gomem.Plan(ctx, m.Graph, o, target)
		if short, ok := errors.AsType[*gomem.ErrOutOfMemory](err); !ok || short.Need != least {
			t.Fatalf("%s, one byte under %d: %v", o.Planning(), least, err)
		}
	})
}

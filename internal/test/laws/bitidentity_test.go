package laws_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/planner"
)

// TestPlansDoNotAffectResults is the first law: for any graph and any options,
// at any budget from the smallest up, every fetch of every step and every
// variable at the end has the bits of a plain loop without plans; and every
// space is used up to exactly the predicted byte.
func TestPlansDoNotAffectResults(t *testing.T) { plansDoNotAffect(t, randgraph.Random, 3) }

// TestPlansOfNothing: that holds for values without elements, too.
func TestPlansOfNothing(t *testing.T) { plansDoNotAffect(t, randgraph.Empty, 3) }

// plansDoNotAffect holds random models to the first law, each under so many options.
func plansDoNotAffect(t *testing.T, draw func(pick func(n int) int, size int) *randgraph.Model,
	options int) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		m := draw(pick, 12)
		if m.Graph.Err() != nil {
			t.Fatal(m.Graph.Err())
		}
		want, err := trial.Plain(m)
		if err != nil {
			t.Fatal(err)
		}
		for range options {
			o := trial.RandomOptions(t)
			target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
			least, err := planner.MinDevice(context.Background(), m.Graph, target,
				o.Planning())
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "budget") { // from the smallest to the half more
				o.DeviceBytes = least + least/8*rapid.Int64Range(0, 4).Draw(t, "more")
			}
			got, err := trial.Trained(m, o)
			if err != nil {
				t.Fatalf("%s: %v", o.Planning(), err)
			}
			if !want.Equal(got) {
				t.Fatalf("%s threads=%d device=%d gives other bits", o.Planning(), o.Threads,
					o.DeviceBytes)
			}
		}
	})
}

// TestFeedErrors: a missing, mistyped or unknown feed is an error that names the
// input, and the session goes on working.
func TestFeedErrors(t *testing.T) {
	m := randgraph.Random(func(int) int { return 0 }, 3)
	ctx := context.Background()
	s, err := gomem.Compile(ctx, m.Graph, gomem.Options{},
		gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Step(ctx, "train", nil); err == nil {
		t.Error("no feeds are accepted")
	}
	bad := trial.Feeds(m, 0)
	bad[m.Inputs[0]] = gomem.Scalar(1)
	if _, err := s.Step(ctx, "train", bad); err == nil {
		t.Error("a feed of another type is accepted")
	}
	if _, err := s.Step(ctx, "test", trial.Feeds(m, 0)); err == nil {
		t.Error("an unknown target is accepted")
	}
	if _, err := s.Step(ctx, "train", trial.Feeds(m, 0)); err != nil {
		t.Error(err)
	}
	if err := s.Set(m.Inputs[0], gomem.Scalar(1)); err == nil {
		t.Error("an input is set like a variable")
	}
	if _, err := s.Get(graph.Value{}); err == nil {
		t.Error("no value is read")
	}
}

// TestPlansOfExchanges: the same of graphs whose values workers exchange, in a world of
// one.
func TestPlansOfExchanges(t *testing.T) { plansDoNotAffect(t, randgraph.Exchanging, 3) }

// TestPlansOfCollectives: so do collectives in the middle of a step.
func TestPlansOfCollectives(t *testing.T) { plansDoNotAffect(t, randgraph.Collective, 3) }

// TestPlansOfLoops: the same of loops and branches within one another.
func TestPlansOfLoops(t *testing.T) {
	plansDoNotAffect(t, randgraph.Nesting, longtest.Count(1, 3))
}

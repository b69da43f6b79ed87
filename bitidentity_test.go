package gomem_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner"
)

// steps is how long the random models train: long enough for an update to be
// seen by later steps.
const steps = 3

// feeds are a model's inputs at a step.
func feeds(m *randgraph.Model, step int) gomem.Feeds {
	rng := rand.New(rand.NewPCG(9, uint64(step)))
	x := gomem.NewTensor(m.Inputs[0].Type())
	for i := range x.F32() {
		x.F32()[i] = float32(rng.NormFloat64())
	}
	return gomem.Feeds{
		m.Inputs[0]: x,
		m.Inputs[1]: gomem.Pair(42, int32(step)),
		m.Inputs[2]: gomem.Scalar(0.01),
		m.Inputs[3]: gomem.Scalar(float32(step + 1)),
	}
}

// outcome is everything a training run leaves behind: fetches of every step and
// the variables at the end.
type outcome [][]byte

func (o outcome) equal(p outcome) bool { return slices.EqualFunc(o, p, slices.Equal[[]byte]) }

// trained runs a model under options.
func trained(m *randgraph.Model, o gomem.Options) (outcome, error) {
	ctx := context.Background()
	o.Seed, o.Network = 1, &echo{}
	s, err := gomem.Compile(ctx, m.Graph, o,
		gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out outcome
	for step := range steps {
		fetched, err := s.Step(ctx, "train", feeds(m, step))
		if err != nil {
			return nil, err
		}
		for _, v := range fetched {
			out = append(out, v.Data)
		}
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return nil, fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	for _, v := range s.Variables() {
		value, err := s.Get(v)
		if err != nil {
			return nil, err
		}
		out = append(out, value.Data)
	}
	return out, nil
}

// plain runs the same model in the plainest way, without plans.
func plain(m *randgraph.Model) (outcome, error) {
	return plainly(m, func(x float32) float32 { return x })
}

// nudged is plain from variables that begin a unit in the last place above.
func nudged(m *randgraph.Model) (outcome, error) {
	return plainly(m, func(x float32) float32 {
		return math.Nextafter32(x, float32(math.Inf(1)))
	})
}

// plainly runs a model from variables of which a function is taken.
func plainly(m *randgraph.Model, begin func(float32) float32) (outcome, error) {
	roots := slices.Clone(m.Updates)
	for _, f := range m.Fetches {
		roots = append(roots, f.Node.ID)
	}
	live := m.Graph.Ancestors(roots)
	for _, n := range append(m.Graph.Variables(), m.Graph.Inputs()...) {
		live[n.ID] = true
	}
	machine, err := reference.New(m.Graph, live, nil)
	if err != nil {
		return nil, err
	}
	// Initial values are the session's business: take them from one.
	s, err := gomem.Compile(context.Background(), m.Graph, gomem.Options{Seed: 1, Network: &echo{}},
		gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, v := range s.Variables() {
		value, err := s.Get(v)
		if err != nil {
			return nil, err
		}
		for i, x := range value.F32() {
			machine.Value(v).F32()[i] = begin(x)
		}
	}
	var out outcome
	for step := range steps {
		for v, data := range feeds(m, step) {
			copy(machine.Value(v).Data, data.Data)
		}
		if err := machine.Step(); err != nil {
			return nil, err
		}
		for _, f := range m.Fetches {
			out = append(out, slices.Clone(machine.Value(f).Data))
		}
	}
	for _, v := range s.Variables() {
		out = append(out, machine.Value(v).Data)
	}
	return out, nil
}

// randomOptions draws any options that a user may give.
func randomOptions(t *rapid.T) gomem.Options {
	return gomem.Options{
		Policy: rapid.SampledFrom([]planner.Policy{planner.Vanilla, planner.Thesis,
			planner.Thesis, planner.Auto, planner.Grappler}).Draw(t, "policy"),
		Strategy:    rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy"),
		Partition:   rapid.SampledFrom([]int{1, 2, 5, 20, 200}).Draw(t, "partition"),
		Lookahead:   rapid.IntRange(1, 4).Draw(t, "lookahead"),
		NoPlacement: rapid.IntRange(0, 3).Draw(t, "placement") == 0,
		NoSwap:      rapid.IntRange(0, 3).Draw(t, "swap") == 0,
		Streams:     rapid.IntRange(1, 3).Draw(t, "streams"),
		Threads:     rapid.IntRange(1, 3).Draw(t, "threads"),
	}
}

// TestPlansDoNotAffectResults is the first law: for any graph and any options,
// at any budget from the smallest up, every fetch of every step and every
// variable at the end has the bits of a plain loop without plans; and every
// space is used up to exactly the predicted byte.
func TestPlansDoNotAffectResults(t *testing.T) { plansDoNotAffect(t, randgraph.Random) }

// TestPlansOfNothing: that holds for values without elements, too.
func TestPlansOfNothing(t *testing.T) { plansDoNotAffect(t, randgraph.Empty) }

func plansDoNotAffect(t *testing.T, draw func(pick func(n int) int, size int) *randgraph.Model) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		m := draw(pick, 12)
		if m.Graph.Err() != nil {
			t.Fatal(m.Graph.Err())
		}
		want, err := plain(m)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			o := randomOptions(t)
			target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
			least, err := planner.MinDevice(context.Background(), m.Graph, target,
				o.Planning())
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "budget") { // from the smallest to the half more
				o.DeviceBytes = least + least/8*rapid.Int64Range(0, 4).Draw(t, "more")
			}
			got, err := trained(m, o)
			if err != nil {
				t.Fatalf("%s: %v", o.Planning(), err)
			}
			if !want.equal(got) {
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
	bad := feeds(m, 0)
	bad[m.Inputs[0]] = gomem.Scalar(1)
	if _, err := s.Step(ctx, "train", bad); err == nil {
		t.Error("a feed of another type is accepted")
	}
	if _, err := s.Step(ctx, "test", feeds(m, 0)); err == nil {
		t.Error("an unknown target is accepted")
	}
	if _, err := s.Step(ctx, "train", feeds(m, 0)); err != nil {
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
func TestPlansOfExchanges(t *testing.T) { plansDoNotAffect(t, randgraph.Exchanging) }

// TestPlansOfCollectives: so do collectives in the middle of a step.
func TestPlansOfCollectives(t *testing.T) { plansDoNotAffect(t, randgraph.Collective) }

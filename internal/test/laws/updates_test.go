package laws_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/internal/test/trial"
)

// more adds a target to a random model that updates its variables otherwise: some by
// what another variable is, before that is updated in the same step, some by a
// constant, some not at all.
func more(m *randgraph.Model, pick func(n int) int) gomem.Target {
	t := gomem.Target{Name: "more"}
	sum := ops.Sum(m.Inputs[0])
	for i, n := range m.Graph.Variables() {
		w := n.Value(0)
		sum = ops.Add(sum, ops.Sum(w))
		by := ops.Full(m.Graph, w.Type(), 0.125)
		for _, other := range m.Graph.Variables()[i+1:] {
			if other.Out[0].Equal(w.Type()) && pick(2) == 0 {
				by = other.Value(0)
				break
			}
		}
		if pick(4) > 0 {
			t.Updates = append(t.Updates, ops.Accumulate(w, by).ID)
		}
	}
	t.Fetches = []graph.Value{sum}
	return t
}

// stepper runs one step of a target and returns what it fetches.
type stepper func(target gomem.Target, feeds gomem.Feeds) ([]gomem.Tensor, error)

// alternated is what two targets leave behind that take turns.
func alternated(m *randgraph.Model, targets []gomem.Target, run stepper) (trial.Outcome, error) {
	var out trial.Outcome
	for step := range trial.Steps {
		for _, t := range []gomem.Target{targets[step%2], targets[1-step%2]} {
			fetched, err := run(t, trial.Feeds(m, step))
			if err != nil {
				return nil, err
			}
			for _, v := range fetched {
				out = append(out, v.Data)
			}
		}
	}
	return out, nil
}

// loops runs targets in plain loops that share their variables, which start as those
// of the session.
func loops(g *graph.Graph, s *gomem.Session, targets []gomem.Target) (stepper, error) {
	machines := map[string]*reference.Machine{}
	for _, t := range targets {
		roots := slices.Clone(t.Updates)
		for _, f := range t.Fetches {
			roots = append(roots, f.Node.ID)
		}
		live := g.Ancestors(roots)
		for _, n := range append(g.Variables(), g.Inputs()...) {
			live[n.ID] = true
		}
		var err error
		if machines[t.Name], err = reference.New(g, live, nil); err != nil {
			return nil, err
		}
	}
	state := map[graph.Value]gomem.Tensor{}
	for _, v := range s.Variables() {
		var err error
		if state[v], err = s.Get(v); err != nil {
			return nil, err
		}
	}
	return func(t gomem.Target, feeds gomem.Feeds) ([]gomem.Tensor, error) {
		m := machines[t.Name]
		for _, from := range []map[graph.Value]gomem.Tensor{feeds, state} {
			for v, x := range from {
				copy(m.Value(v).Data, x.Data)
			}
		}
		if err := m.Step(); err != nil {
			return nil, err
		}
		for v, x := range state {
			copy(x.Data, m.Value(v).Data)
		}
		var out []gomem.Tensor
		for _, f := range t.Fetches {
			x := gomem.NewTensor(f.Type())
			copy(x.Data, m.Value(f).Data)
			out = append(out, x)
		}
		return out, nil
	}, nil
}

// TestSeveralUpdatesOfAVariable: targets that update the same variables, each in a way
// of its own, give the bits of plain loops in turn, under any options and budgets; and
// each uses the memory that its plan says.
func TestSeveralUpdatesOfAVariable(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		m := randgraph.Random(pick, 8)
		targets := []gomem.Target{
			{Name: "train", Fetches: m.Fetches, Updates: m.Updates}, more(m, pick)}
		o := trial.RandomOptions(t)
		o.Seed = 1
		if rapid.Bool().Draw(t, "tight") {
			least, err := gomem.MinDevice(ctx, m.Graph, o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			o.DeviceBytes = least
		}
		s, err := gomem.Compile(ctx, m.Graph, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		loop, err := loops(m.Graph, s, targets)
		if err != nil {
			t.Fatal(err)
		}
		want, err := alternated(m, targets, loop)
		if err != nil {
			t.Fatal(err)
		}
		got, err := alternated(m, targets, func(target gomem.Target,
			feeds gomem.Feeds) ([]gomem.Tensor, error) {
			return s.Step(ctx, target.Name, feeds)
		})
		if err != nil || !want.Equal(got) {
			t.Fatalf("%s device=%d gives other bits: %v", o.Planning(), o.DeviceBytes, err)
		}
		for _, u := range s.Usage() {
			if u.Actual != u.Predicted {
				t.Fatalf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
			}
		}
	})
}

// TestTwoUpdatesInOneTarget: a target that updates a variable twice is refused with
// both updates and their lines.
func TestTwoUpdatesInOneTarget(t *testing.T) {
	g := graph.New()
	w := g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
	for i := range 2 {
		ops.Accumulate(w, ops.Full(g, w.Type(), float32(i)))
	}
	_, err := gomem.Compile(context.Background(), g, gomem.Options{}, gomem.Training(g))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`target "train"`, "accumulate_2: accumulate[",
		"variable w is updated by accumulate (", "have a target for each"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if n := strings.Count(fmt.Sprint(err), "updates_test.go:"); n != 2 {
		t.Errorf("%d model lines in: %v", n, err)
	}
}

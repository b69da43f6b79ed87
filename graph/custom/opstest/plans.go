package opstest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/planner"
)

// checkPlans: a training step with the operation, twice over, leaves the same bits under every
// policy, in all memory and in the least, by one thread and by several.
func (s Sample) checkPlans(t *testing.T) {
	var want []byte
	for _, policy := range []planner.Policy{planner.Vanilla, planner.Thesis, planner.Auto} {
		for _, threads := range []int{1, 3} {
			for _, small := range []bool{false, true} {
				got, err := s.train(gomem.Options{Policy: policy, Threads: threads, Seed: 1}, small)
				if err != nil {
					t.Fatalf("under %s: %v", policy, err)
				}
				if want == nil {
					want = got
				}
				if !bytes.Equal(got, want) {
					t.Errorf("under %s with %d threads, in the least memory: %v, a step leaves "+
						"other bits", policy, threads, small)
				}
			}
		}
	}
}

// train executes two steps, and returns all that they leave.
func (s Sample) train(o gomem.Options, small bool) ([]byte, error) {
	ctx, g := context.Background(), graph.New()
	in := s.leaves(g)
	fetches, err := s.step(g, in)
	if err != nil {
		return nil, err
	}
	target := gomem.Training(g, fetches...)
	if small {
		if o.DeviceBytes, err = gomem.MinDevice(ctx, g, o, target); err != nil {
			return nil, err
		}
	}
	session, err := gomem.Compile(ctx, g, o, target)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return s.steps(ctx, session, in)
}

// leaves are the operands: variables where they have a gradient, and inputs.
func (s Sample) leaves(g *graph.Graph) (in []graph.Value) {
	for i, u := range s.In {
		name := fmt.Sprint("x", i)
		if u.DType == graph.F32 && !slices.Contains(s.NoGrad, i) {
			in = append(in, g.Variable(name, u, graph.Init{}))
		} else {
			in = append(in, g.Input(name, u))
		}
	}
	return in
}

// step is the operation, a loss of its results, and updates by its gradient.
func (s Sample) step(g *graph.Graph, in []graph.Value) (fetches []graph.Value, err error) {
	n := g.Apply(s.Op, in...)
	if n == nil {
		return nil, g.Err()
	}
	loss := ops.Zeros(g, graph.Of(graph.F32))
	for i, u := range n.Out {
		fetches = append(fetches, n.Value(i))
		if u.DType == graph.F32 && u.Elems() > 0 {
			loss = ops.Add(loss, ops.Mean(ops.Square(n.Value(i))))
		}
	}
	rate := ops.Full(g, graph.Of(graph.F32), 0.01)
	for i, d := range autodiff.Grad(loss, in...) {
		if d.Valid() && in[i].Node.Kind == graph.KindVariable {
			ops.SGD(in[i], d, rate)
		}
	}
	return append(fetches, loss), g.Err()
}

// steps sets variables, executes two steps, and returns fetches and variables.
func (s Sample) steps(ctx context.Context, session *gomem.Session,
	in []graph.Value) (left []byte, err error) {
	feeds, kept := gomem.Feeds{}, session.Variables()
	for i, v := range s.operands(5) {
		switch {
		case in[i].Node.Kind == graph.KindInput:
			feeds[in[i]] = v
		case slices.Contains(kept, in[i]):
			if err := session.Set(in[i], v); err != nil {
				return nil, err
			}
		}
	}
	for range 2 {
		fetched, err := session.Step(ctx, "train", feeds)
		if err != nil {
			return nil, err
		}
		for _, v := range fetched {
			left = append(left, v.Data...)
		}
	}
	for _, v := range kept {
		got, err := session.Get(v)
		if err != nil {
			return nil, err
		}
		left = append(left, got.Data...)
	}
	return left, nil
}

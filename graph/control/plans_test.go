package control_test

import (
	"bytes"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/planner"
)

// trained is a network of a scan, with dropout, and a branch, its loss and the updates of its
// weights.
func trained(o control.Options) (g *graph.Graph, loss graph.Value, updates []*graph.Node) {
	g = graph.New()
	init := graph.Init{Dist: graph.Normal, Scale: 0.3}
	w, b := g.Variable("w", f32(9, 5), init), g.Variable("b", f32(5), init)
	x := g.Input("xs", f32(16, 3, 4))
	h, seed := ops.Zeros(g, f32(3, 5)), g.Input("seed", graph.Of(graph.I32, 2))
	one := ops.Cast(ops.Ones(g, f32()), graph.I32)
	last, ys := control.Scan([]value{w, b, seed, one}, []value{h, h, one}, []value{x},
		func(same, states, xs []value) (next, ys []value) {
			x := ops.Dropout(xs[0], ops.FoldIn(same[2], states[2]), 0.2, "drop")
			h, c := step(same[0], same[1], states[0], states[1], x)
			return []value{h, c, ops.Add(states[2], same[3])}, []value{h}
		}, o)
	mean := ops.Mean(last[1])
	side := control.Cond(ops.Greater(mean, ops.Full(g, f32(), 0)), []value{ys[0], w},
		func(in []value) []value { return []value{ops.Sum(ops.Square(in[0]))} },
		func(in []value) []value { return []value{ops.Sum(ops.Abs(in[1]))} })
	loss = ops.Add(ops.Mean(ops.Square(ys[0])), ops.Scale(side[0], 0.01))
	d := autodiff.Grad(loss, w, b)
	rate := ops.Full(g, f32(), 0.1)
	return g, loss, []*graph.Node{ops.SGD(w, d[0], rate), ops.SGD(b, d[1], rate)}
}

// outcome is what three steps of a session leave behind: their losses, and the weights.
func outcome(t *testing.T, g *graph.Graph, o gomem.Options, target gomem.Target,
	weights []value, feeds func(k int32) gomem.Feeds) (list [][]byte) {
	t.Helper()
	s, err := gomem.Compile(t.Context(), g, o, target)
	if err != nil {
		t.Fatalf("%s, %d bytes: %v", o.Policy, o.DeviceBytes, err)
	}
	for k := range int32(3) {
		out, err := s.Step(t.Context(), target.Name, feeds(k))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, bytes.Clone(out[0].Data))
	}
	for _, w := range weights {
		v, err := s.Get(w)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v.Data)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPlans: losses and weights are those of a plain evaluation under every policy, also within
// the least memory, which is exact: the executor compares what is used with what was predicted.
func TestPlans(t *testing.T) {
	feed := tensor.New(f32(16, 3, 4))
	for i := range feed.F32() {
		feed.F32()[i] = float32(i%13)/6 - 1
	}
	for _, segments := range []int{1, 4} {
		g, loss, updates := trained(control.Options{Segments: segments})
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		x, seed := g.Inputs()[0].Value(0), g.Inputs()[1].Value(0)
		var weights []value
		for _, u := range updates {
			weights = append(weights, u.In[0])
		}
		var want [][]byte
		for _, policy := range []planner.Policy{planner.Vanilla, planner.Thesis, planner.Auto} {
			o := gomem.Options{Policy: policy, Partition: 2, Effort: 500, Draft: true}
			target := gomem.Training(g, loss)
			o.DeviceBytes = 1 << 20
			if policy != planner.Vanilla {
				least, err := gomem.MinDevice(t.Context(), g, o, target)
				if err != nil {
					t.Fatal(err)
				}
				o.DeviceBytes = least
			}
			got := outcome(t, g, o, target, weights, func(k int32) gomem.Feeds {
				return gomem.Feeds{x: feed, seed: gomem.Pair(7, k)}
			})
			if want == nil {
				want = got
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("%s, %d segments: value %d differs", policy, segments, i)
				}
			}
		}
	}
}

// fetched is what values are on a device, within the least memory, in three steps that come to the
// same.
func fetched(t *testing.T, o gomem.Options, g *graph.Graph, values []value,
	feeds gomem.Feeds) ([][]byte, error) {
	t.Helper()
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	target := gomem.Target{Name: "values", Fetches: values}
	least, err := gomem.MinDevice(t.Context(), g, o, target)
	if err != nil {
		t.Fatal(err)
	}
	o.DeviceBytes = least
	s, err := gomem.Compile(t.Context(), g, o, target)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var steps [3][][]byte
	for k := range steps {
		out, err := s.Step(t.Context(), "values", feeds)
		if err != nil {
			return nil, err
		}
		for _, v := range out {
			steps[k] = append(steps[k], bytes.Clone(v.Data))
		}
	}
	for i, first := range steps[0] {
		if !bytes.Equal(first, steps[1][i]) || !bytes.Equal(first, steps[2][i]) {
			t.Errorf("value %d differs from step to step", i)
		}
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			t.Errorf("%d bytes of %s are used, %d were predicted", u.Actual, u.Space, u.Predicted)
		}
	}
	return steps[0], nil
}

// TestFrame: a plan does not grow with a loop's length, nor does what an iteration needs; only what
// it records does.
func TestFrame(t *testing.T) {
	scratch := func(steps int) (int64, int) {
		r := newRecurrent(steps)
		r.scanned(control.Options{})
		n := r.ys.Node
		autodiff.Grad(ops.Sum(r.ys), r.w)
		return n.Cost().Scratch, r.g.Len()
	}
	a, n := scratch(10)
	b, m := scratch(10000)
	if a != b || n != m {
		t.Errorf("frames of %d and %d bytes, graphs of %d and %d nodes", a, b, n, m)
	}
}

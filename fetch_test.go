package gomem_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	_ "github.com/gomem/gomem/internal/longtest" // draws the same cases each time
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/planner"
)

// leafFetches draws leaves, and views of leaves, with what they hold before a step.
func leafFetches(t *rapid.T, m *randgraph.Model, s func(graph.Value) gomem.Tensor,
	in gomem.Feeds) (values []graph.Value, want func() [][]byte) {
	data := func(v graph.Value) []byte {
		root, off := v.Resolve()
		var x gomem.Tensor
		switch root.Node.Kind {
		case graph.KindInput:
			x = in[root]
		case graph.KindConstant:
			x = root.Node.Data
		default:
			x = s(root)
		}
		return slices.Clone(x.Data[off:][:v.Type().Bytes()])
	}
	for _, n := range m.Graph.Nodes() {
		if root, _ := n.Value(0).Resolve(); root.Node != nil && root.Node.Leaf() &&
			n.Kind != graph.KindUpdate && rapid.Bool().Draw(t, "fetched") {
			values = append(values, n.Value(rapid.IntRange(0, len(n.Out)-1).Draw(t, "result")))
		}
	}
	return values, func() (all [][]byte) {
		for _, v := range values {
			all = append(all, data(v))
		}
		return all
	}
}

// TestLeavesCanBeFetched: inputs, constants, variables and views of them are fetched
// beside computed values, twice too, and alone; a variable as it was before the step's
// updates, whatever the options.
func TestLeavesCanBeFetched(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		m := randgraph.Random(pick, 8)
		half := ops.Split(m.Graph.Constant("c", tensor.FromF32([]float32{1, 2, 3, 4}, 4)), 2)[1]
		var s *gomem.Session
		get := func(v graph.Value) gomem.Tensor {
			x, err := s.Get(v)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		in := trial.Feeds(m, 0)
		leaves, want := leafFetches(t, m, get, in)
		leaves = append(leaves, half, half, m.Inputs[0], m.Graph.Variables()[0].Value(0))
		all := append(slices.Clone(leaves), m.Fetches...)
		all = append(all, m.Fetches[0])
		o := trial.RandomOptions(t)
		o.Seed = 1
		targets := []gomem.Target{{Name: "train", Fetches: all, Updates: m.Updates},
			{Name: "leaves", Fetches: leaves}}
		var err error
		if rapid.Bool().Draw(t, "tight") {
			if o.DeviceBytes, err = gomem.MinDevice(ctx, m.Graph, o, targets...); err != nil {
				t.Fatal(err)
			}
		}
		if s, err = gomem.Compile(ctx, m.Graph, o, targets...); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 2 {
			before := append(want(), half.Node.In[0].Node.Data.Data[8:],
				half.Node.In[0].Node.Data.Data[8:], in[m.Inputs[0]].Data,
				get(m.Graph.Variables()[0].Value(0)).Data)
			got, err := s.Step(ctx, "train", in)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "beside", got[:len(leaves)], leaves, before)
			again := len(got) - 1
			same(t, "twice", got[again:], all[again:], [][]byte{got[len(leaves)].Data})
		}
		before := append(want(), half.Node.In[0].Node.Data.Data[8:],
			half.Node.In[0].Node.Data.Data[8:], in[m.Inputs[0]].Data,
			get(m.Graph.Variables()[0].Value(0)).Data)
		got, err := s.Step(ctx, "leaves", in)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "alone", got, leaves, before)
	})
}

// same demands fetched values of the types and bytes wanted, each in memory of its own.
func same(t *rapid.T, what string, got []gomem.Tensor, of []graph.Value, want [][]byte) {
	t.Helper()
	for i, x := range got {
		if !x.Type.Equal(of[i].Type()) || !slices.Equal(x.Data, want[i]) {
			t.Fatalf("%s: fetch %d, %s, is %v, want %v", what, i, of[i], x, want[i])
		}
	}
}

// TestFetchedInputMustBeFed: an input that is only fetched is asked for like others.
func TestFetchedInputMustBeFed(t *testing.T) {
	g, ctx := graph.New(), context.Background()
	x := g.Input("x", tensor.Of(graph.F32, 2))
	s, err := gomem.Compile(ctx, g, gomem.Options{}, gomem.Evaluation(x))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Step(ctx, "eval", nil); err == nil ||
		!strings.Contains(err.Error(), "input x (f32[2]) is not fed") {
		t.Errorf("error is %v", err)
	}
	for want, t1 := range map[string]graph.Type{
		"fed with f32[3]: another size is another target's": graph.Of(graph.F32, 3),
		"fed with f64[2]: convert it with Tensor.To":        graph.Of(graph.F64, 2),
	} {
		if _, err := s.Step(ctx, "eval", gomem.Feeds{x: gomem.NewTensor(t1)}); err == nil ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("error is %v", err)
		}
	}
	in := tensor.FromF32([]float32{3, 4}, 2)
	out, err := s.Step(ctx, "eval", gomem.Feeds{x: in})
	if err != nil || out[0].F32()[1] != 4 {
		t.Fatalf("%v, %v", out, err)
	}
	if out[0].F32()[1] = 5; in.F32()[1] != 4 {
		t.Error("the fetch is the feed's memory")
	}
	if _, err := s.Step(ctx, "Eval", nil); err == nil ||
		!strings.Contains(err.Error(), `no target "Eval": the session has "eval"`) {
		t.Errorf("error is %v", err)
	}
}

// TestNothingToCompute: a target that only fetches leaves has a plan in the smallest budget,
// with rivals that execute nothing either.
func TestNothingToCompute(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 64))
	v := g.Variable("v", graph.Of(graph.F32, 64), graph.Init{Scale: 1})
	o := gomem.Options{Policy: planner.Auto}
	kept, y := []graph.Value{}, ops.Add(x, v)
	for range 12 { // which vanilla keeps all
		y = ops.Tanh(y)
		kept = append(kept, y)
	}
	for _, k := range kept {
		y = ops.Add(y, k)
	}
	targets := []gomem.Target{{Name: "leaves", Fetches: []graph.Value{v}},
		{Name: "computes", Fetches: []graph.Value{y}}}
	var err error
	if o.DeviceBytes, err = gomem.MinDevice(t.Context(), g, o, targets...); err != nil {
		t.Fatal(err)
	}
	s, err := gomem.Compile(t.Context(), g, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if out, err := s.Step(t.Context(), "leaves", nil); err != nil || out[0].F32()[0] != 1 {
		t.Errorf("%v, %v", out, err)
	}
}

// TestInputsThatAreNotFed: all of them are named.
func TestInputsThatAreNotFed(t *testing.T) {
	g, ctx := graph.New(), context.Background()
	x, y := g.Input("x", tensor.Of(graph.F32, 2)), g.Input("y", tensor.Of(graph.F32, 2))
	z := g.Input("z", tensor.Of(graph.F32))
	s, err := gomem.Compile(ctx, g, gomem.Options{}, gomem.Evaluation(ops.Mul(ops.Add(x, y), z)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for want, feeds := range map[string]gomem.Feeds{
		"inputs x (f32[2]), y (f32[2]) and z (f32[]) are not fed": nil,
		"inputs x (f32[2]) and z (f32[]) are not fed":             {y: gomem.NewTensor(y.Type())},
	} {
		if _, err := s.Step(ctx, "eval", feeds); err == nil ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

package precision_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
)

// network is a layer with its gradient and update.
func network(t *testing.T) (g *graph.Graph, loss, logits graph.Value, updates []graph.NodeID) {
	t.Helper()
	g = graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4, 8))
	y := g.Input("y", tensor.Of(graph.I32, 4))
	w := g.Variable("w", tensor.Of(graph.F32, 8, 5), graph.Init{Dist: graph.Normal, Scale: 1})
	logits = ops.MatMul(ops.Tanh(ops.MatMul(x, w)), ops.Transpose(w, 1, 0))
	logits = ops.MatMul(logits, w)
	loss = ops.Mean(ops.CrossEntropy(logits, y, 0))
	var grad graph.Value
	g.InPhase(graph.Backward, func() { grad = ops.MatMulT(x, logits, true, false) })
	g.InPhase(graph.Update, func() {
		n := ops.SGD(w, ops.Scale(grad, 0.5), g.Input("rate", tensor.Of(graph.F32)))
		updates = append(updates, n.ID)
	})
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	return g, loss, logits, updates
}

// TestLower: products and what follows are bfloat16, leaves, losses and updates are as they
// were, and so is what is fetched; a weight is rounded once.
func TestLower(t *testing.T) {
	g, loss, logits, updates := network(t)
	r, err := precision.Lower(g, []graph.Value{loss, logits}, updates)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	for _, v := range []graph.Value{loss, logits} {
		if !r.Value(v).Type().Equal(v.Type()) {
			t.Errorf("%s is fetched as %s", v, r.Value(v).Type())
		}
	}
	rounded := 0
	for _, n := range r.Graph.Nodes() {
		half := len(n.Out) > 0 && n.Out[0].DType == graph.BF16
		switch {
		case n.Leaf() || n.Phase == graph.Update || n.Kind == graph.KindUpdate:
			if half {
				t.Errorf("%s is %s", n.Name, n.Out[0])
			}
		case strings.HasPrefix(n.OpName(), "matmul") || strings.HasPrefix(n.OpName(), "tanh"):
			if !half {
				t.Errorf("%s is %s", n.Name, n.Out[0])
			}
		}
		if n.Name == "w/bf16" {
			rounded++
		}
	}
	if rounded != 1 {
		t.Errorf("w is rounded %d times", rounded)
	}
	if n := r.Node(updates[0]); n == nil || n.Kind != graph.KindUpdate {
		t.Errorf("the update is %v", n)
	}
}

// TestLowerRandomGraphs: every graph has one in bfloat16, with its names and leaves, that is
// well formed; made twice it is the same.
func TestLowerRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 12)
		digest := ""
		for range 2 {
			r, err := precision.Lower(m.Graph, m.Fetches, m.Updates)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Graph.Verify(); err != nil {
				t.Fatal(err)
			}
			for _, n := range m.Graph.Nodes() {
				c := r.Node(n.ID)
				if n.Leaf() && c == nil || c != nil && c.Name != n.Name {
					t.Fatalf("%s became %v", n.Name, c)
				}
				if n.Leaf() && !c.Out[0].Equal(n.Out[0]) {
					t.Fatalf("leaf %s is %s", n.Name, c.Out[0])
				}
			}
			if digest != "" && digest != r.Graph.Digest() {
				t.Fatal("made again it is another graph")
			}
			digest = r.Graph.Digest()
		}
	})
}

// TestLowerRoundsFirst: what only moves elements to where they are read rounded has them rounded,
// unless it is read otherwise, or fetched.
func TestLowerRoundsFirst(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 6, 8))
	w := g.Variable("w", tensor.Of(graph.F32, 16, 5), graph.Init{})
	windows := func() graph.Value {
		return ops.Concat(1, ops.Slice(x, 0, 0, 5), ops.Slice(x, 0, 1, 6))
	}
	only, other, fetched := windows(), windows(), windows()
	out := []graph.Value{ops.MatMul(only, w), ops.MatMul(other, w), ops.Tanh(other),
		ops.MatMul(fetched, w), fetched}
	half := ops.MatMul(w, ops.Slice(w, 0, 0, 5))
	r, err := precision.Lower(g, append(out, half), nil)
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[graph.Value]graph.DType{only: graph.BF16, other: graph.F32,
		fetched: graph.F32} {
		if got := r.Node(v.Node.ID).Out[0]; got.DType != want {
			t.Errorf("%s is %s, want %s", v, got, want)
		}
	}
	if n := r.Node(half.Node.ID).In[1].Node; n.OpName() != "cast" {
		t.Errorf("the weights' slice is rounded before it is made: %s", n.OpName())
	}
}

// TestLowerNames: what is converted does not take a name of the graph.
func TestLowerNames(t *testing.T) {
	g := graph.New()
	w := g.Variable("w", tensor.Of(graph.F32, 4, 4), graph.Init{})
	leave := g.Scope("w")
	bf := g.Variable("bf16", tensor.Of(graph.F32, 4, 4), graph.Init{})
	leave()
	out := ops.MatMul(w, bf)
	r, err := precision.Lower(g, []graph.Value{out}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	if got := r.Value(out).Type(); !got.Equal(out.Type()) {
		t.Errorf("fetched as %s", got)
	}
}

// TestLowerBadGraph: a graph that has an error has no other.
func TestLowerBadGraph(t *testing.T) {
	g := graph.New()
	ops.Add(g.Input("x", tensor.Of(graph.I32, 2)), g.Input("y", tensor.Of(graph.F32, 3)))
	if _, err := precision.Lower(g, nil, nil); err == nil {
		t.Error("no error")
	}
}

// TestHalfVariablesStayHalf: a variable of bfloat16 that is computed with in f32 is taken as it is
// where it would be rounded back.
func TestHalfVariablesStayHalf(t *testing.T) {
	g := graph.New()
	w := g.Variable("w", tensor.Of(graph.BF16, 3, 4), graph.Init{})
	x := g.Input("x", tensor.Of(graph.F32, 2, 3))
	y := ops.MatMul(x, ops.Cast(w, graph.F32))
	r, err := precision.Lower(g, []graph.Value{y}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Node(y.Node.ID).In {
		if v.Type().DType != graph.BF16 {
			t.Errorf("the product takes %s", v)
		}
	}
	if got := r.Node(y.Node.ID).In[1]; got.Node.Name != "w" {
		t.Errorf("the product takes %s, want w itself", got)
	}
}

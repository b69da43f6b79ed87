package merge_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/merge"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/models"
)

// TestWhatIsMerged: a row for each rule.
func TestWhatIsMerged(t *testing.T) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for name, c := range map[string]struct {
		merged int
		build  func(g *graph.Graph, x, y, seed, w graph.Value) []graph.Value
	}{
		"equal ways": {2, func(_ *graph.Graph, x, y, _, _ graph.Value) []graph.Value {
			way := func() graph.Value { return ops.Tanh(ops.Add(x, y)) }
			return []graph.Value{ops.Mul(way(), way())}
		}},
		"other attributes": {0, func(_ *graph.Graph, x, _, _, _ graph.Value) []graph.Value {
			return []graph.Value{ops.Mul(ops.Scale(x, 2), ops.Scale(x, 3))}
		}},
		"other operands": {0, func(_ *graph.Graph, x, y, _, _ graph.Value) []graph.Value {
			return []graph.Value{ops.Mul(ops.Sub(x, y), ops.Sub(y, x))}
		}},
		"views": {1, func(_ *graph.Graph, x, _, _, _ graph.Value) []graph.Value {
			view := func() graph.Value { return ops.ReshapeSizes(x, 24) }
			return []graph.Value{ops.Mul(view(), view())}
		}},
		"nothing as operands": {1, func(g *graph.Graph, x, _, _, _ graph.Value) []graph.Value {
			return []graph.Value{ops.Add(ops.Mul(x, ops.Ones(g, f(6))), ops.Ones(g, f(6)))}
		}},
		"several results": {1, func(_ *graph.Graph, x, _, _, _ graph.Value) []graph.Value {
			_, a := ops.TopK(x, 2)
			b, _ := ops.TopK(x, 2)
			return []graph.Value{ops.Mul(ops.Cast(a, graph.F32), b)}
		}},
		"noise": {0, func(_ *graph.Graph, x, _, seed, _ graph.Value) []graph.Value {
			return []graph.Value{ops.Mul(ops.Dropout(x, seed, 0.5, "a"),
				ops.Dropout(x, seed, 0.5, "b"))}
		}},
		"a variable": {1, func(_ *graph.Graph, x, _, _, w graph.Value) []graph.Value {
			ops.SGD(w, ops.Scale(w, 2), ops.Sum(x))
			return []graph.Value{ops.Mul(ops.Tanh(w), ops.Tanh(w))}
		}},
		"what is fetched": {0, func(_ *graph.Graph, x, _, _, _ graph.Value) []graph.Value {
			return []graph.Value{ops.Tanh(x), ops.Tanh(x)}
		}},
		"what becomes one that is fetched": {1, func(_ *graph.Graph, x, _, _,
			_ graph.Value) []graph.Value {
			a := ops.Tanh(x)
			return []graph.Value{a, ops.Neg(ops.Tanh(x))}
		}},
		"what is not needed": {0, func(_ *graph.Graph, x, _, _, _ graph.Value) []graph.Value {
			ops.Tanh(x)
			return []graph.Value{ops.Tanh(x)}
		}},
		"what is sent": {0, func(_ *graph.Graph, x, _, _, _ graph.Value) []graph.Value {
			return []graph.Value{ops.Add(ops.Await(ops.Send(x, "a", graph.How{})),
				ops.Await(ops.Send(x, "b", graph.How{})))}
		}},
	} {
		g := graph.New()
		x, y := g.Input("x", f(4, 6)), g.Input("y", f(4, 6))
		fetches := c.build(g, x, y, g.Input("seed", tensor.Of(graph.I32, 2)),
			g.Variable("w", f(4, 6), graph.Init{}))
		var updates []graph.NodeID
		for _, n := range g.Nodes() {
			if n.Kind == graph.KindUpdate {
				updates = append(updates, n.ID)
			}
		}
		r, err := merge.Merge(g, fetches, updates)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Merged != c.merged {
			t.Errorf("%s: %d nodes are merged, want %d", name, r.Merged, c.merged)
		}
		for _, v := range fetches {
			if r.Value(v).Node.Name != v.Node.Name {
				t.Errorf("%s: %s has become %s", name, v, r.Value(v))
			}
		}
	}
}

// moved are fetches and updates in a merged graph.
func moved(r *merge.Result, fetches []graph.Value,
	updates []graph.NodeID) (f []graph.Value, u []graph.NodeID) {
	for _, v := range fetches {
		f = append(f, r.Value(v))
	}
	for _, id := range updates {
		u = append(u, r.Node(id).ID)
	}
	return f, u
}

// TestMergedGraphs: any graph and its merged one leave the same behind, bit for bit; the
// merged one is well formed, and nothing more can be merged in it.
func TestMergedGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		m := randgraph.Any(pick, 20)
		if pick(2) == 0 {
			m = randgraph.Exchanging(pick, 20)
		}
		r, err := merge.Merge(m.Graph, m.Fetches, m.Updates)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		fetches, updates := moved(r, m.Fetches, m.Updates)
		if err := r.Graph.VerifyUpdates(updates); err != nil {
			t.Fatal(err)
		}
		again, err := merge.Merge(r.Graph, fetches, updates)
		if err != nil || again.Merged != 0 || again.Graph.Len() != r.Graph.Len() {
			t.Fatalf("%v: %d nodes are merged once more", err, again.Merged)
		}
		want := run(t, m.Graph, m.Fetches, m.Updates)
		if !bytes.Equal(want, run(t, r.Graph, fetches, updates)) {
			t.Fatal("the merged graph gives other bits")
		}
	})
}

// run is what two steps of a graph leave behind.
func run(t *rapid.T, g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) []byte {
	out, err := reference.Trial(g, fetches, updates, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestModels counts what could be merged in models as they are written: they are well
// formed without it.
func TestModels(t *testing.T) {
	transformer, err := models.NewTransformerConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	moe, err := models.NewMoEConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func() (*models.Model, error){
		"transformer": func() (*models.Model, error) { return models.Transformer(transformer) },
		"moe":         func() (*models.Model, error) { return models.MoE(moe) },
	} {
		m, err := build()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range m.Objectives {
			var updates []graph.NodeID
			for _, n := range o.Updates {
				updates = append(updates, n.ID)
			}
			r, err := merge.Merge(m.Graph, []graph.Value{o.Loss}, updates)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Graph.Verify(); err != nil {
				t.Error(err)
			}
			t.Logf("%s, %s: %d of %d nodes are merged", name, o.Name, r.Merged, m.Graph.Len())
		}
	}
}

// TestBadRoots: what does not belong to the graph is an error.
func TestBadRoots(t *testing.T) {
	g, other := graph.New(), graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4))
	y := other.Input("y", tensor.Of(graph.F32, 4))
	failed := graph.New()
	ops.Add(failed.Input("a", tensor.Of(graph.F32, 4)), failed.Input("b", tensor.Of(graph.F32, 3)))
	for _, c := range []struct {
		want    string
		g       *graph.Graph
		fetches []graph.Value
		updates []graph.NodeID
	}{
		{"the graph is nil", nil, nil, nil},
		{"fetch y is no value of the graph", g, []graph.Value{x, y}, nil},
		{"fetch none is no value", g, []graph.Value{{}}, nil},
		{"fetch x:3 is no value", g, []graph.Value{{Node: x.Node, Index: 3}}, nil},
		{"node 0 is no update", g, nil, []graph.NodeID{0}},
		{"node -1 is no update", g, nil, []graph.NodeID{-1}},
		{"node 9 is no update", g, nil, []graph.NodeID{9}},
		{"do not broadcast", failed, nil, nil},
	} {
		_, err := merge.Merge(c.g, c.fetches, c.updates)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, have %v", c.want, err)
		}
	}
}

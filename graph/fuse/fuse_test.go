package fuse_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
)

// pieces are what the table's graphs are made of: f32[4 6] and its friends.
type pieces struct {
	g                  *graph.Graph
	x, z, w, row, seed graph.Value
}

func newPieces() pieces {
	g := graph.New()
	f := func(name string, sizes ...int) graph.Value {
		return g.Input(name, tensor.Of(graph.F32, sizes...))
	}
	return pieces{
		g: g, x: f("x", 4, 6), z: f("z", 4, 6), row: f("row", 6), seed: g.Input("seed",
			tensor.Of(graph.I32, 2)),
		w: g.Variable("w", tensor.Of(graph.F32, 6, 6), graph.Init{}),
	}
}

// launched are the names and operations of a graph's nodes, views left out.
func launched(g *graph.Graph) string {
	var list []string
	for _, n := range g.Nodes() {
		if n.Executes() {
			list = append(list, n.Name+"="+n.OpName())
		}
	}
	return strings.Join(list, " ")
}

// TestWhatIsFused: a row for each rule.
func TestWhatIsFused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		build      func(p pieces) []graph.Value // returns the fetches
	}{
		{"a chain", "sigmoid=tanh+scale+sigmoid", func(p pieces) []graph.Value {
			return []graph.Value{ops.Sigmoid(ops.Scale(ops.Tanh(p.x), 2))}
		}},
		{"a product with bias and activation", "relu=matmul+add+relu",
			func(p pieces) []graph.Value {
				return []graph.Value{ops.Relu(ops.Add(ops.MatMul(p.x, p.w), p.row))}
			}},
		{"a convolution with bias, residual and activation", "relu=conv2d+add+add+relu",
			func(p pieces) []graph.Value {
				x := ops.ReshapeSizes(p.x, 1, 4, 2, 3)
				y := ops.Conv2D(x, p.g.Variable("f", tensor.Of(graph.F32, 4, 4, 1, 1),
					graph.Init{}), ops.Conv{})
				bias := p.g.Variable("b", tensor.Of(graph.F32, 4, 1, 1), graph.Init{})
				return []graph.Value{ops.Relu(ops.Add(ops.Add(y, bias), x))}
			}},
		{"dropout and residual", "add=matmul+dropout+add", func(p pieces) []graph.Value {
			return []graph.Value{ops.Add(p.z, ops.Dropout(ops.MatMul(p.x, p.w), p.seed, 0.5, "d"))}
		}},
		{"a square", "mul=tanh+mul", func(p pieces) []graph.Value {
			y := ops.Tanh(p.x)
			return []graph.Value{ops.Mul(y, y)}
		}},
		{"an operand that the producer depends on", "tanh=tanh mul=matmul+mul",
			func(p pieces) []graph.Value {
				y := ops.Tanh(p.x)
				return []graph.Value{ops.Mul(ops.MatMul(y, p.w), y)}
			}},
		{"two that wait for each other", "tanh=tanh sigmoid=sigmoid mul=mul",
			func(p pieces) []graph.Value {
				return []graph.Value{ops.Mul(ops.Tanh(p.x), ops.Sigmoid(p.z))}
			}},
		{"two readers", "tanh=tanh neg=neg scale=scale", func(p pieces) []graph.Value {
			y := ops.Tanh(p.x)
			return []graph.Value{ops.Neg(y), ops.Scale(y, 2)}
		}},
		{"a fetched value", "tanh=tanh neg=neg", func(p pieces) []graph.Value {
			y := ops.Tanh(p.x)
			return []graph.Value{y, ops.Neg(y)}
		}},
		{"a dead reader", "neg=tanh+neg", func(p pieces) []graph.Value {
			y := ops.Tanh(p.x)
			ops.Sigmoid(y)
			return []graph.Value{ops.Neg(y)}
		}},
		{"phases", "tanh=tanh neg=neg", func(p pieces) (out []graph.Value) {
			y := ops.Tanh(p.x)
			p.g.InPhase(graph.Backward, func() { out = []graph.Value{ops.Neg(y)} })
			return out
		}},
		{"a view between", "tanh=tanh neg=neg", func(p pieces) []graph.Value {
			return []graph.Value{ops.Neg(ops.ReshapeSizes(ops.Tanh(p.x), 24))}
		}},
		{"a smaller producer", "tanh=tanh add=add", func(p pieces) []graph.Value {
			return []graph.Value{ops.Add(ops.Tanh(p.row), p.x)}
		}},
		{"shared noise", "tanh=tanh dropout=dropout", func(p pieces) []graph.Value {
			return []graph.Value{ops.Dropout(ops.Tanh(p.x), p.seed, 0.5, "d", 0)}
		}},
		{"a reduction", "sum=sum neg=neg", func(p pieces) []graph.Value {
			return []graph.Value{ops.Neg(ops.Sum(p.x))}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPieces()
			fetches := c.build(p)
			if p.g.Err() != nil {
				t.Fatal(p.g.Err())
			}
			r, err := fuse.Fuse(p.g, fetches, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := launched(r.Graph); got != c.want {
				t.Errorf("the graph is %s, want %s", got, c.want)
			}
			for _, v := range fetches {
				n := r.Value(v).Node
				if n.Name != v.Node.Name || n.Pos != v.Node.Pos || n.Phase != v.Node.Phase ||
					!r.Value(v).Type().Equal(v.Type()) {
					t.Errorf("%s at %s is %s at %s", v, v.Node.Pos, n.Name, n.Pos)
				}
			}
		})
	}
}

// TestOrder: a fused node takes its producer's place in the order of creation.
func TestOrder(t *testing.T) {
	p := newPieces()
	y := ops.MatMul(p.x, p.w)
	other := ops.Softmax(p.z)
	fetches := []graph.Value{other, ops.Relu(y)}
	r, err := fuse.Fuse(p.g, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := launched(r.Graph); got != "relu=matmul+relu softmax=softmax" {
		t.Errorf("the order is %s", got)
	}
	if r.Node(y.Node.ID) != nil || r.Value(y).Valid() || r.Value(graph.Value{}).Valid() {
		t.Error("the product is still there")
	}
}

// fused fuses a random model.
func fused(t *rapid.T, m *randgraph.Model) *fuse.Result {
	r, err := fuse.Fuse(m.Graph, m.Fetches, m.Updates)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// moved are a model's fetches and updates in its fused graph.
func moved(r *fuse.Result, m *randgraph.Model) (fetches []graph.Value, updates []graph.NodeID) {
	for _, v := range m.Fetches {
		fetches = append(fetches, r.Value(v))
	}
	for _, id := range m.Updates {
		updates = append(updates, r.Node(id).ID)
	}
	return fetches, updates
}

func draw(t *rapid.T) *randgraph.Model {
	m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
	if m.Graph.Err() != nil {
		t.Fatal(m.Graph.Err())
	}
	return m
}

// TestFusedGraphs: for any graph, the fused one is well formed, has the leaves
// and no more nodes, and is its own fused graph.
func TestFusedGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := draw(t)
		r := fused(t, m)
		if err := r.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		if r.Graph.Len() > m.Graph.Len() || !slices.Equal(names(r.Graph), names(m.Graph)) {
			t.Fatalf("%d nodes with leaves %v of %d with %v", r.Graph.Len(), names(r.Graph),
				m.Graph.Len(), names(m.Graph))
		}
		operations := 0
		for _, n := range r.Graph.Nodes() {
			if !n.Leaf() {
				operations += n.Operations()
			}
		}
		roots := slices.Clone(m.Updates)
		for _, v := range m.Fetches {
			roots = append(roots, v.Node.ID)
		}
		for id, live := range m.Graph.Ancestors(roots) {
			if n := m.Graph.Node(graph.NodeID(id)); live && !n.Leaf() {
				operations -= n.Operations()
			}
		}
		if operations != 0 {
			t.Fatalf("%d operations more than before", operations)
		}
		fetches, updates := moved(r, m)
		again, err := fuse.Fuse(r.Graph, fetches, updates)
		if err != nil {
			t.Fatal(err)
		}
		if text(t, again.Graph) != text(t, r.Graph) {
			t.Fatalf("fused again it is\n%safter\n%s", text(t, again.Graph), text(t, r.Graph))
		}
	})
}

// names are the names of the leaves.
func names(g *graph.Graph) []string {
	var list []string
	for _, n := range g.Nodes() {
		if n.Leaf() {
			list = append(list, n.Name)
		}
	}
	return list
}

func text(t *rapid.T, g *graph.Graph) string {
	var b strings.Builder
	if _, err := g.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSameBits: two steps of any graph and of its fused graph give the same
// fetches and leave the same variables.
func TestSameBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := draw(t)
		r := fused(t, m)
		fetches, updates := moved(r, m)
		want := run(t, m.Graph, m.Fetches, m.Updates)
		if got := run(t, r.Graph, fetches, updates); !bytes.Equal(got, want) {
			t.Fatal("the fused graph gives other bits")
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

// TestBadFetches: what does not belong to the graph is an error.
func TestBadFetches(t *testing.T) {
	p, other := newPieces(), newPieces()
	y := ops.Tanh(p.x)
	for want, attempt := range map[string]func() error{
		"fetch x is no value of the graph": func() error {
			_, err := fuse.Fuse(p.g,
				[]graph.Value{y, other.x}, nil)
			return err
		},
		"fetch none is no value of the graph": func() error {
			_, err := fuse.Fuse(p.g,
				[]graph.Value{{}}, nil)
			return err
		},
		"node 99 is no update": func() error {
			_, err := fuse.Fuse(p.g, nil,
				[]graph.NodeID{99})
			return err
		},
		"node -1 is no update": func() error {
			_, err := fuse.Fuse(p.g, nil,
				[]graph.NodeID{-1})
			return err
		},
		"node 0 is no update": func() error {
			_, err := fuse.Fuse(p.g, nil, []graph.NodeID{p.x.Node.ID})
			return err
		},
		fmt.Sprintf("node %d is no update", y.Node.ID): func() error {
			_, err := fuse.Fuse(p.g, nil, []graph.NodeID{y.Node.ID})
			return err
		},
		"fetch tanh:7 is no value": func() error {
			_, err := fuse.Fuse(p.g, []graph.Value{{Node: y.Node, Index: 7}}, nil)
			return err
		},
		"the graph is nil": func() error {
			_, err := fuse.Fuse(nil, nil, nil)
			return err
		},
		"do not broadcast": func() error {
			ops.Add(other.x, other.w)
			_, err := fuse.Fuse(other.g, nil, nil)
			return err
		},
	} {
		if err := attempt(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

package mesh_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
)

// network is two layers, x [batch:8 4] → w [4 8] → tanh → u [8 4] → tanh, the mean of its
// squares, and updates of the weights.
type network struct {
	g             *graph.Graph
	x, w, u, loss graph.Value
	updates       []graph.NodeID
}

func newNetwork(t *testing.T, update func(w, dw, lr graph.Value) *graph.Node) *network {
	g := graph.New()
	normal := graph.Init{Dist: graph.Normal, Scale: 0.5}
	n := &network{g: g}
	n.x = g.Input("x", graph.Named(graph.F32, graph.Dim{Name: "batch", Size: 8},
		graph.Dim{Size: 4}))
	lr := g.Input("lr", tensor.Of(graph.F32))
	n.w = g.Variable("w", tensor.Of(graph.F32, 4, 8), normal)
	n.u = g.Variable("u", tensor.Of(graph.F32, 8, 4), normal)
	y := ops.Tanh(ops.MatMul(ops.Tanh(ops.MatMul(n.x, n.w)), n.u))
	n.loss = ops.Mean(ops.Square(y))
	for i, d := range autodiff.Grad(n.loss, n.w, n.u) {
		n.updates = append(n.updates, update([]graph.Value{n.w, n.u}[i], d, lr).ID)
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return n
}

// plain is an update that can be divided.
func plain(w, dw, lr graph.Value) *graph.Node { return ops.SGD(w, dw, lr) }

// lowered is the network over a mesh.
func (n *network) lowered(t *testing.T, text, layout string) *mesh.Result {
	t.Helper()
	s, err := mesh.Parse(text, layout)
	if err != nil {
		t.Fatal(err)
	}
	r, err := mesh.Lower(n.g, *s, 0, []graph.Value{n.loss}, n.updates)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sharding is how the node of a name is divided.
func (n *network) sharding(t *testing.T, r *mesh.Result, name string) string {
	t.Helper()
	i := slices.IndexFunc(n.g.Nodes(), func(m *graph.Node) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("no node %s", name)
	}
	return r.Propagation.Type(n.g.Node(graph.NodeID(i)).Value(0))
}

// count is how many conversions of a kind there are.
func count(r *mesh.Result, kind mesh.ConversionKind) int {
	_, n := r.Copied(kind)
	return n
}

// TestBatch: data parallelism. Activations are divided, weights are not, and the loss and
// the gradients of the weights are added up, each once; nothing else is converted but the
// input, by a view.
func TestBatch(t *testing.T) {
	n := newNetwork(t, plain)
	r := n.lowered(t, "batch:4", "")
	for name, want := range map[string]string{"x": "f32[8/batch 4]", "w": "f32[4 8]",
		"matmul": "f32[8/batch 8]", "tanh_2": "f32[8/batch 4]", "sum": "f32[]"} {
		if got := n.sharding(t, r, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	bytes, slices := r.Copied(mesh.Slice)
	if slices != 1 || bytes != 0 || count(r, mesh.Join) != 0 || count(r, mesh.Sum) != 3 {
		t.Errorf("conversions %+v", r.Conversions)
	}
	if len(r.Pieces) != 0 {
		t.Errorf("pieces %v of variables that are whole", r.Pieces)
	}
	for _, m := range r.Graph.Nodes() {
		if strings.HasPrefix(m.Name, "matmul@") && m.Out[0].Size(0) != 2 {
			t.Errorf("%s computes %s", m.Name, m.Out[0])
		}
	}
}

// TestTensorParallel: the hidden units divided: the first weight by columns, the second by
// rows, what is between them too, and the second product is a sum of parts. Weights, and
// their updates, are in pieces, and nothing is joined.
func TestTensorParallel(t *testing.T) {
	n := newNetwork(t, plain)
	r := n.lowered(t, "m:2", "w:1=m")
	for name, want := range map[string]string{"x": "f32[8 4]", "w": "f32[4 8/m]",
		"u": "f32[8/m 4]", "tanh": "f32[8 8/m]", "matmul_2": "f32[8 4]"} {
		if got := n.sharding(t, r, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if count(r, mesh.Join) != 0 || count(r, mesh.Sum) != 1 || count(r, mesh.Slice) != 0 {
		t.Errorf("conversions %+v", r.Conversions)
	}
	pieces := r.Pieces["w"]
	if len(pieces) != 2 || pieces[1].Name != "w@1" || pieces[1].Cut[1] != (graph.Part{N: 2, I: 1}) {
		t.Errorf("pieces of w: %v", pieces)
	}
	for _, id := range n.updates {
		if len(r.Updates(id)) != 2 {
			t.Errorf("%d updates of a variable in 2 pieces", len(r.Updates(id)))
		}
	}
}

// TestBoth: the batch and the hidden units, over axes of one mesh.
func TestBoth(t *testing.T) {
	n := newNetwork(t, plain)
	r := n.lowered(t, "b:2,m:4", "batch=b,w:1=m")
	if got := n.sharding(t, r, "tanh"); got != "f32[8/b 8/m]" {
		t.Errorf("tanh is %s", got)
	}
	if n := len(r.Pieces["w"]); n != 4 {
		t.Errorf("w is in %d pieces, want 4: the batch does not divide it", n)
	}
	made := 0
	for _, m := range r.Graph.Nodes() {
		if strings.HasPrefix(m.Name, "tanh@") {
			made++
		}
	}
	if made != 8 {
		t.Errorf("%d pieces of tanh", made)
	}
}

// TestPinned: a variable whose update is computed whole stays whole, whatever the layout
// says, and its slices are made of it.
func TestPinned(t *testing.T) {
	n := newNetwork(t, func(w, dw, lr graph.Value) *graph.Node {
		return w.Graph().Update(whole{}, []graph.Value{w}, dw)
	})
	r := n.lowered(t, "m:2", "w:1=m")
	if len(r.Pieces) != 0 || n.sharding(t, r, "w") != "f32[4 8]" {
		t.Errorf("w is %s, in pieces %v", n.sharding(t, r, "w"), r.Pieces)
	}
}

// whole is an update that cannot be divided.
type whole struct{}

func (whole) Name() string                                     { return "whole" }
func (whole) Infer([]graph.Type) ([]graph.Type, error)         { return nil, nil }
func (whole) Cost(_, _ []graph.Type) graph.Cost                { return graph.Cost{} }
func (whole) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return nil }

// TestOnce: what is not divided is made once, and every form of a value once, however many
// read it.
func TestOnce(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Named(graph.F32, graph.Dim{Name: "rows", Size: 4},
		graph.Dim{Size: 4}))
	table := ops.Tanh(g.Input("table", tensor.Of(graph.F32, 4, 4)))
	turned := ops.Transpose(table, 1, 0)
	y := ops.Add(ops.Add(ops.MatMul(x, table), ops.MatMul(x, turned)), ops.Relu(x))
	s, err := mesh.Parse("rows:2", "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := mesh.Lower(g, *s, 0, []graph.Value{y}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, n := range r.Graph.Nodes() {
		base, _, _ := strings.Cut(n.Name, "@")
		names[base]++
	}
	for name, want := range map[string]int{"tanh": 1, "transpose": 1, "matmul": 2, "relu": 2,
		"x/slice": 2, "add_2/join": 1} {
		if names[name] != want {
			t.Errorf("%d of %s, want %d: %v", names[name], name, want, names)
		}
	}
	if !r.Value(y).Type().Equal(y.Type()) {
		t.Errorf("fetched is %s", r.Value(y).Type())
	}
}

// TestPlaced: variables that are elements of an axis are at places of it; what reads them is
// there, what is taken apart into their operands is divided, and so is what their results
// make up: nothing is sliced or joined in between.
func TestPlaced(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4, 8, 2))
	parts := ops.Unstack(ops.Tanh(x))
	for i := range parts {
		w := g.Variable("w"+string(rune('0'+i)), tensor.Of(graph.F32, 2, 2), graph.Init{})
		g.Place(w, "experts", i, 4)
		parts[i] = ops.MatMul(parts[i], w)
	}
	y := ops.Sum(ops.Tanh(ops.Stack(parts...)))
	s, err := mesh.Parse("experts:2", "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := mesh.Lower(g, *s, 0, []graph.Value{y}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{g: g}
	for name, want := range map[string]string{"w1": "f32[2 2] at experts:0",
		"w2": "f32[2 2] at experts:1", "matmul_3": "f32[8 2] at experts:1",
		"tanh": "f32[4/experts 8 2]", "tanh_2": "f32[4/experts 8 2]"} {
		if got := n.sharding(t, r, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if count(r, mesh.Slice) != 1 || count(r, mesh.Join) != 0 {
		t.Errorf("conversions %+v", r.Conversions)
	}
}

// TestRefused: what a layout names must be there and divide; the error says what would do.
func TestRefused(t *testing.T) {
	n := newNetwork(t, plain)
	for _, c := range []struct{ mesh, layout, why string }{
		{"batch:3", "", "axis batch of input x f32[batch:8 4] has 8 elements, which the 3 of " +
			"axis batch of the mesh do not divide: 2, 4 and 8 do"},
		{"m:16", "w:1=m", "axis 1 of variable w f32[4 8] has 8 elements"},
		{"m:2", "time=m", "no input and no variable has an axis time: there are batch"},
		{"m:2", "v*:0=m", "no input and no variable has such a name"},
		{"m:2", "w:2=m", "w is f32[4 8], which has no axis 2"},
	} {
		s, err := mesh.Parse(c.mesh, c.layout)
		if err != nil {
			t.Fatal(err)
		}
		_, err = mesh.Lower(n.g, *s, 0, []graph.Value{n.loss}, n.updates)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s %s: %v; want %q", c.mesh, c.layout, err, c.why)
		}
	}
	bad := graph.New()
	bad.Place(n.w, "experts", 0, 2)
	if bad.Err() == nil {
		t.Error("a variable of another graph is placed")
	}
	for _, at := range [][2]int{{-1, 2}, {2, 2}, {0, 0}} {
		g := graph.New()
		g.Place(g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{}), "experts", at[0], at[1])
		if g.Err() == nil {
			t.Errorf("element %d of %d is accepted", at[0], at[1])
		}
	}
}

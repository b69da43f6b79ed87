package graph_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// step is a small graph with one node of every kind.
func step() *graph.Graph {
	g := graph.New()
	x := g.Input("x", f32(2))
	w := g.Variable("w", f32(2), graph.Init{})
	c := g.Constant("c", tensor.FromF32([]float32{1, 2}, 2))
	sum := g.Apply(join{}, x, w, c)
	g.Update(store{}, []graph.Value{w}, sum.Value(0))
	return g
}

// TestVerifyCatches: a node changed behind the graph's back is found.
func TestVerifyCatches(t *testing.T) {
	for want, tamper := range map[string]func(x, w, c, sum, update *graph.Node){
		"node 3 has ID 1": func(_, _, _, sum, _ *graph.Node) { sum.ID = 1 },
		"is created later": func(_, _, _, sum, update *graph.Node) {
			sum.In[0] = update.In[1]
		},
		"is an update": func(x, _, _, sum, update *graph.Node) {
			sum.Kind = graph.KindUpdate
			update.Mutates = 0
		},
		"results are [f32[3]]": func(_, _, _, sum, _ *graph.Node) { sum.Out[0] = f32(3) },
		"operands differ":      func(_, w, _, _, _ *graph.Node) { w.Out[0] = f32(7) },
		"has size -1":          func(x, _, _, _, _ *graph.Node) { x.Out[0] = f32(-1) },
		"the name is taken":    func(x, w, _, _, _ *graph.Node) { w.Name = x.Name },
		"may not write x": func(x, _, _, _, update *graph.Node) {
			update.In[0] = x.Value(0)
		},
		"may not write w": func(_, _, _, _, update *graph.Node) {
			update.Kind = graph.KindCompute
		},
		"value without an elemen": func(_, _, c, _, _ *graph.Node) { c.Out[0] = graph.Type{} },
	} {
		g := step()
		if err := g.Verify(); err != nil {
			t.Fatal(err)
		}
		n := slices.Clone(g.Nodes())
		tamper(n[0], n[1], n[2], n[3], n[4])
		err := g.Verify()
		var typed *graph.Error
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &typed) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

func TestListsOfNodes(t *testing.T) {
	g := step()
	names := func(nodes []*graph.Node) string {
		var list []string
		for _, n := range nodes {
			list = append(list, n.Name+" "+n.Kind.String()+" "+n.OpName())
		}
		return strings.Join(list, ", ")
	}
	for _, c := range []struct{ got, want string }{
		{names(g.Inputs()), "x input input"},
		{names(g.Variables()), "w variable variable"},
		{names(g.Updates()), "join_2 update join"},
		{names(g.Nodes()[2:4]), "c constant constant, join compute join"},
	} {
		if c.got != c.want {
			t.Errorf("nodes are %s, want %s", c.got, c.want)
		}
	}
	if n := g.Node(2); n.Graph() != g || n.Data.F32()[1] != 2 || !n.Leaf() ||
		n.Cost() != (graph.Cost{}) {
		t.Errorf("the constant is %+v", n)
	}
}

// TestPhaseAndOrigin: nodes take the phase in which, and the scope and line of the
// node on which, they are built; afterwards all is as before.
func TestPhaseAndOrigin(t *testing.T) {
	g := graph.New()
	leave := g.Scope("layer")
	x := g.Input("x", f32(2))
	leave()
	g.InPhase(graph.Backward, func() {
		g.On(x.Node, func() { g.Apply(join{}, x) })
	})
	g.Apply(join{}, x)
	inside, after := g.Node(1), g.Node(2)
	if inside.Name != "layer/join" || inside.Phase != graph.Backward || inside.Pos != x.Node.Pos {
		t.Errorf("inside: %s, %s, %s", inside.Name, inside.Phase, inside.Pos)
	}
	if after.Name != "join" || after.Phase != graph.Forward || after.Pos == x.Node.Pos {
		t.Errorf("after: %s, %s, %s", after.Name, after.Phase, after.Pos)
	}
}

func TestFail(t *testing.T) {
	g := graph.New()
	cause := errors.New("12 heads do not divide 100")
	leave := g.Scope("attention")
	g.Fail(cause)
	leave()
	g.Fail(errors.New("a later one"))
	if err := g.Err(); !errors.Is(err, cause) ||
		!strings.HasPrefix(err.Error(),
			"attention: model[]: 12 heads do not divide 100 (graph/verify_test.go:") {
		t.Errorf("error is %v", err)
	}
}

func TestForeignOperand(t *testing.T) {
	g, other := graph.New(), graph.New()
	x, y := g.Input("x", f32(2)), other.Input("y", f32(2))
	if graph.Apply(join{}, graph.Value{}, x, y) != nil || g.Err() == nil {
		t.Fatal("accepted")
	}
	g = graph.New()
	if g.Apply(join{}, g.Input("x", f32(2)), y) != nil ||
		!strings.Contains(g.Err().Error(), "operand 1, y, belongs to another graph") {
		t.Errorf("error is %v", g.Err())
	}
	if graph.Apply(join{}) != nil || graph.Apply(join{}, graph.Value{}) != nil {
		t.Error("an operation without a graph is applied")
	}
}

func TestNoValue(t *testing.T) {
	var none graph.Value
	if none.Valid() || none.String() != "none" || none.Graph() != nil || none.Type().Rank() != 0 {
		t.Errorf("no value is %s of type %s", none, none.Type())
	}
	if root, off := none.Resolve(); root.Valid() || off != 0 {
		t.Errorf("no value resolves to %s+%d", root, off)
	}
	g := graph.New()
	if v := (graph.Value{Node: g.Input("x", f32(2)).Node, Index: 1}); v.String() != "x:1" {
		t.Errorf("a second result is called %s", v)
	}
}

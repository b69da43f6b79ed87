package graph_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// f32 is a type with unnamed axes.
func f32(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }

// join is an operation on operands of one type.
type join struct{}

func (join) Name() string { return "join" }

func (join) Infer(in []graph.Type) ([]graph.Type, error) {
	for _, t := range in {
		if !t.Equal(in[0]) {
			return nil, fmt.Errorf("operands differ: %s and %s", in[0], t)
		}
	}
	return in[:1], nil
}

func (join) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

func (join) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

// half is a view of the second half of its operand.
type half struct{ join }

func (half) Infer(in []graph.Type) ([]graph.Type, error) {
	return []graph.Type{f32(in[0].Size(0) / 2)}, nil
}

func (half) View(in, _ []graph.Type) []int64 { return []int64{in[0].Bytes() / 2} }

// store is an update.
type store struct{ join }

func (store) Infer([]graph.Type) ([]graph.Type, error) { return nil, nil }

func TestStickyError(t *testing.T) {
	g := graph.New()
	x, y := g.Input("x", f32(2)), g.Input("y", f32(3))
	leave := g.Scope("layer")
	bad := g.Apply(join{}, x, y) // the line that the error names
	leave()
	if bad != nil {
		t.Fatal("the node was made")
	}
	again := g.Apply(join{}, graph.Value{}, x)
	if again != nil {
		t.Fatal("an operation on no value was made")
	}
	var e *graph.Error
	if !errors.As(g.Err(), &e) || e.Node != "layer/join" || len(e.In) != 2 {
		t.Fatalf("error is %v", g.Err())
	}
	want := "layer/join: join[f32[2] f32[3]]: operands differ: f32[2] and f32[3] " +
		"(graph/graph_test.go:55)"
	if e.Error() != want {
		t.Errorf("error is %q, want %q", e, want)
	}
	if g.Verify() == nil {
		t.Error("a graph with an error verifies")
	}
}

func TestNoValueAloneIsAnError(t *testing.T) {
	g := graph.New()
	if g.Apply(join{}, graph.Value{}) != nil || g.Err() == nil {
		t.Error("an operation on no value is no error")
	}
}

func TestNames(t *testing.T) {
	g := graph.New()
	one := tensor.FromF32([]float32{1})
	g.Constant("x", one)
	g.Input("x_2", f32())
	g.Constant("x", one)
	leave := g.Scope("a")
	g.Input("x", f32())
	inner := g.Scope("b")
	g.Input("x", f32())
	inner()
	leave()
	var names []string
	for _, n := range g.Nodes() {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "x x_2 x_3 a/x a/b/x" {
		t.Errorf("names are %s", got)
	}
	if err := g.Verify(); err != nil {
		t.Error(err)
	}
}

func TestBadLeaves(t *testing.T) {
	for _, bad := range []graph.Type{{}, f32(0, -1), f32(-1), f32(1<<40, 1<<40),
		f32(1<<40, 0, 1<<40),
		{DType: graph.F32, Shape: []graph.Dim{{Name: "a", Size: 2}, {Name: "a", Size: 2}}}} {
		g := graph.New()
		if v := g.Input("x", bad); v.Valid() || g.Err() == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestUpdateRules(t *testing.T) {
	for name, build := range map[string]func(g *graph.Graph, w, x graph.Value){
		"written twice": func(g *graph.Graph, w, x graph.Value) {
			g.Update(store{}, []graph.Value{w, w}, x)
		},
		"not a variable": func(g *graph.Graph, w, x graph.Value) {
			g.Update(store{},
				[]graph.Value{x}, w)
		},
		"has a result": func(g *graph.Graph, w, x graph.Value) {
			g.Update(join{},
				[]graph.Value{w})
		},
		"foreign variable": func(g *graph.Graph, w, x graph.Value) {
			g.Update(store{}, []graph.Value{graph.New().Variable("w", f32(2), graph.Init{})}, x)
		},
	} {
		g := graph.New()
		build(g, g.Variable("w", f32(2), graph.Init{}), g.Input("x", f32(2)))
		if g.Verify() == nil {
			t.Errorf("%s: the graph verifies", name)
		}
	}
}

// TestVerifyUpdates: a step may have any updates that write different variables and
// that can be put after the readers of what they write; so a variable may have several,
// for steps of several kinds.
func TestVerifyUpdates(t *testing.T) {
	g := graph.New()
	w, v := g.Variable("w", f32(2), graph.Init{}), g.Variable("v", f32(2), graph.Init{})
	vars := func(vs ...graph.Value) []graph.Value { return vs }
	a := g.Update(store{}, vars(w), g.Input("x", f32(2))).ID
	b := g.Update(store{}, vars(w), v).ID
	c := g.Update(store{}, vars(v), w).ID
	d := g.Update(store{}, vars(v)).ID
	both := g.Update(store{}, vars(w, v)).ID
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	if ws := g.Writers(w.Node.ID); len(ws) != 3 || ws[0].ID != a || ws[2].ID != both {
		t.Errorf("the writers of w are %v", ws)
	}
	for _, good := range [][]graph.NodeID{nil, {a}, {b}, {b, d}, {a, c}, {d, a}, {both}, {a, a}} {
		if err := g.VerifyUpdates(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for want, bad := range map[string][]graph.NodeID{
		"join_2: join[f32[2] f32[2]]: variable w is updated by join (graph/": {a, b},
		"join_5: join[f32[2] f32[2]]: variable v is updated by join_3 (":     {c, both},
		"updates read what each other writes, so neither can run last":       {b, c},
	} {
		var e *graph.Error
		err := g.VerifyUpdates(bad)
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v", bad, err)
		}
	}
}

// TestSuccessors: data edges, and an edge from every reader of a variable,
// through views too, to its update.
func TestSuccessors(t *testing.T) {
	g := graph.New()
	w := g.Variable("w", f32(4), graph.Init{})
	u := g.Update(store{}, []graph.Value{w}, g.Input("x", f32(4)))
	reader := g.Apply(join{}, w)
	view := g.Apply(half{}, w)
	through := g.Apply(join{}, view.Value(0))
	live := g.Ancestors([]graph.NodeID{u.ID, reader.ID, through.ID})
	succ := g.Successors(live)
	for _, n := range []*graph.Node{reader, view, through} {
		found := false
		for _, s := range succ.Of(n.ID) {
			found = found || s == u.ID
		}
		if !found {
			t.Errorf("%s may run after the update", n.Name)
		}
	}
	if deg := succ.InDegrees(); deg[u.ID] != 3 || deg[through.ID] != 1 {
		t.Errorf("in-degrees %v", deg)
	}
	if root, off := through.In[0].Resolve(); root != w || off != 8 {
		t.Errorf("the view resolves to %s+%d", root, off)
	}
	if ws := g.Writers(w.Node.ID); len(ws) != 1 || ws[0] != u {
		t.Error("the writer of w is not its update")
	}
}

func TestParameters(t *testing.T) {
	g := graph.New()
	g.Variable("w", f32(3, 5), graph.Init{})
	g.State("w/m", f32(3, 5), graph.Init{})
	if g.Parameters() != 15 {
		t.Errorf("%d parameters", g.Parameters())
	}
}

func ExampleGraph_WriteTo() {
	g := graph.New()
	x := g.Input("x", graph.Type{DType: graph.F32,
		Shape: []graph.Dim{{Name: "batch", Size: 8}, {Size: 4}}})
	leave := g.Scope("layer1")
	g.Apply(join{}, x, x)
	leave()
	var b strings.Builder
	if _, err := g.WriteTo(&b); err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(b.String()) {
		fmt.Println(strings.Split(strings.TrimSpace(line), "  #")[0])
	}
	// Output:
	// 0 forward  x = input() f32[batch:8 4]
	// 1 forward  layer1/join = join{}(x x) f32[batch:8 4]
}

func ExampleGraph_WriteDot() {
	g := graph.New()
	g.Apply(join{}, g.Input("x", f32(2)))
	if err := g.WriteDot(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// digraph gomem {
	//   node [shape=box fontname=monospace];
	//   n0 [label="x\ninput [f32[2]]"];
	//   n1 [label="join\njoin [f32[2]]"];
	//   n0 -> n1;
	// }
}

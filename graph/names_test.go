package graph_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// TestNamesOfLeavesAreTheirOwn: a variable or an input has the name that it was
// given, or there is an error; it is never numbered in silence.
func TestNamesOfLeavesAreTheirOwn(t *testing.T) {
	variable := func(g *graph.Graph, name string) { g.Variable(name, f32(2), graph.Init{}) }
	state := func(g *graph.Graph, name string) { g.State(name, f32(2), graph.Init{}) }
	input := func(g *graph.Graph, name string) { g.Input(name, f32(2)) }
	constant := func(g *graph.Graph, name string) {
		g.Constant(name, tensor.FromF32([]float32{1, 2}, 2))
	}
	apply := func(g *graph.Graph, _ string) { g.Apply(join{}, g.Nodes()[0].Value(0)) }
	for _, first := range []func(*graph.Graph, string){variable, state, input, constant, apply} {
		for _, second := range []func(*graph.Graph, string){variable, state, input} {
			g := graph.New()
			input(g, "other")
			leave := g.Scope("layer")
			first(g, "join")
			leave()
			second(g, "join") // in another scope
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			defer g.Scope("layer")()
			second(g, "join")
			ge, ok := errors.AsType[*graph.Error](g.Err())
			if !ok || ge.Node != "layer/join" || !strings.Contains(ge.Error(), "is taken") ||
				!strings.Contains(ge.Pos, "names_test.go:") {
				t.Errorf("error is %v", g.Err())
			}
		}
	}
	g := graph.New()
	x := g.Input("x", f32(2))
	for range 3 {
		constant(g, "x")
		g.Apply(join{}, x)
	}
	if err := g.Verify(); err != nil {
		t.Errorf("names of constants and operations are not numbered: %v", err)
	}
}

// TestNamesCanBeWritten: names have no characters that plans and files could not
// hold.
func TestNamesCanBeWritten(t *testing.T) {
	for _, bad := range []string{"", " ", "a ", " a", "a\nb", "a\r", "\x00", "a\tb", "a : b",
		"\x7f", "a\u2028b", "\xff", "a\u0085", "\u200e"} {
		for what, build := range map[string]func(*graph.Graph){
			"input":    func(g *graph.Graph) { g.Input(bad, f32()) },
			"variable": func(g *graph.Graph) { g.Variable(bad, f32(), graph.Init{}) },
			"constant": func(g *graph.Graph) { g.Constant(bad, tensor.FromF32([]float32{1})) },
			"scope":    func(g *graph.Graph) { g.Scope(bad)() },
		} {
			g := graph.New()
			build(g)
			if _, ok := errors.AsType[*graph.Error](g.Err()); !ok {
				t.Errorf("%s %q: error is %v", what, bad, g.Err())
			} else if strings.ContainsAny(g.Err().Error(), "\n\r\x00\u2028") {
				t.Errorf("the error of %s %q has more than a line", what, bad)
			}
		}
	}
	g := graph.New()
	for _, good := range []string{"a", "a b", "gewicht_ä", "重み", "a:b", "a/b/c", "x=1"} {
		g.Input(good, f32())
	}
	if err := g.Err(); err != nil {
		t.Error(err)
	}
}

// TestConstantsAreWhole: a constant's data has its type's bytes.
func TestConstantsAreWhole(t *testing.T) {
	for bytes, good := range map[int]bool{0: false, 4: false, 7: false, 8: true, 9: false} {
		g := graph.New()
		g.Constant("c", tensor.View{Type: f32(2), Data: make([]byte, bytes)})
		if (g.Err() == nil) != good {
			t.Errorf("%d bytes for f32[2]: %v", bytes, g.Err())
		}
	}
}

// TestInitialValuesMakeSense: an unknown distribution, or no number, is an error of
// the graph rather than zeros.
func TestInitialValuesMakeSense(t *testing.T) {
	normal := graph.Init{Dist: graph.Normal, Scale: 1}
	for _, bad := range []graph.Init{{Dist: graph.Positive + 1}, {Dist: 255}, {Scale: math.NaN()},
		{Dist: graph.Normal, Scale: math.Inf(1)}, {Each: []graph.Init{normal, {Dist: 9}}},
		{Each: make([]graph.Init, 3)}, {Each: make([]graph.Init, 8)}} {
		g := graph.New()
		if v := g.Variable("w", f32(4, 3), bad); v.Valid() || g.Err() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	g := graph.New()
	if g.Variable("w", f32(), graph.Init{Each: []graph.Init{normal}}); g.Err() == nil {
		t.Error("a scalar has parts")
	}
	g = graph.New()
	g.Variable("a", f32(4), graph.Init{Each: make([]graph.Init, 2)})
	g.Variable("b", f32(4), graph.Init{Dist: graph.Truncated, Scale: 2})
	if err := g.Err(); err != nil {
		t.Error(err)
	}
}

// TestValuesThatAreNone: a value with an index that its node does not have, or of
// an update, has no type, and an operation on it is an error.
func TestValuesThatAreNone(t *testing.T) {
	g := graph.New()
	x, w := g.Input("x", f32(2)), g.Variable("w", f32(2), graph.Init{})
	u := g.Update(store{}, []graph.Value{w}, x)
	for _, v := range []graph.Value{x.Node.Value(1), x.Node.Value(-1), u.Value(0), u.Value(3)} {
		if !v.Type().Equal(graph.Type{}) {
			t.Errorf("%s has type %s", v, v.Type())
		}
		if root, off := v.Resolve(); root != v || off != 0 {
			t.Errorf("%s resolves to %s at %d", v, root, off)
		}
		_ = v.String()
		fresh := graph.New()
		a := fresh.Input("x", f32(2))
		fresh.Update(store{}, []graph.Value{fresh.Variable("w", f32(2), graph.Init{})}, a)
		v.Node = fresh.Nodes()[v.Node.ID]
		if fresh.Apply(join{}, v) != nil || fresh.Err() == nil {
			t.Errorf("an operation on %s is accepted", v)
		}
	}
}

// TestRandomStreams: two random operations of one name, with one seed, are an
// error; with another seed or in a second pass they are not.
func TestRandomStreams(t *testing.T) {
	g := graph.New()
	pair := tensor.Of(graph.I32, 2)
	seed, other := g.Input("seed", pair), g.Input("other", pair)
	g.ClaimStream(seed, "a")
	g.ClaimStream(seed, "b")
	g.ClaimStream(other, "a")
	leave := g.Rerun()
	g.ClaimStream(seed, "a")
	leave()
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	g.ClaimStream(seed, "a")
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("error is %v", err)
	}
	g = graph.New()
	seed = g.Input("seed", tensor.Of(graph.I32, 2))
	leave = g.Rerun()
	g.ClaimStream(seed, "a")
	g.ClaimStream(seed, "a")
	leave()
	if g.Err() == nil {
		t.Error("within a second pass a name is taken twice")
	}
}

// TestNamesCountOn: a name that is taken has the first number that is left, what was taken by
// itself is no other's, and many of one name take a time that is in proportion to them.
func TestNamesCountOn(t *testing.T) {
	n := graph.Names{}
	n.Add("a_3")
	for _, test := range [][2]string{{"a", "a"}, {"a", "a_2"}, {"a", "a_4"}, {"a_2", "a_2_2"},
		{"a_3", "a_3_2"}, {"b", "b"}, {"a", "a_5"}} {
		if free := n.Free(test[0]); n.Has(free) || free != test[1] {
			t.Errorf("%s is free as %s, want %s", test[0], free, test[1])
		}
		if name := n.Take(test[0]); name != test[1] || !n.Has(name) {
			t.Errorf("%s is taken as %s, want %s", test[0], name, test[1])
		}
	}
	n.Add("a")
	for i := 6; i < 100_000; i++ {
		n.Take("a")
	}
	if name := n.Take("a"); name != "a_100000" {
		t.Errorf("the last name is %s", name)
	}
}

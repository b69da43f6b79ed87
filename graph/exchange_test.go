package graph_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// TestHow: what is printed is read again; what is no way is refused.
func TestHow(t *testing.T) {
	for _, h := range []graph.How{{}, {Fold: graph.Sum}, {Via: "ring"},
		{Fold: graph.Sum, Via: "ps-2"}, {Fold: graph.Gather}, {Along: "b"},
		{Fold: graph.Sum, Via: "ring", Along: "batch/2"}, {Fold: graph.Scatter, Along: "é"},
		{Fold: graph.Swap}, {Fold: graph.Copy}, {Fold: graph.Reduce},
		{Fold: graph.Permute, Along: "b"}, {Fold: graph.GatherSome},
		{Fold: graph.ScatterSome, Along: "b"}, {Fold: graph.SwapSome}} {
		if got, err := graph.ParseHow(h.String()); err != nil || got != h {
			t.Errorf("%s is read as %v: %v", h, got, err)
		}
	}
	for _, text := range []string{"", "max", "mean/", "mean/a b", "mean/ring/ps", "/ring", "Mean",
		"mean@", "mean@a b", "mean@a,b", "gather/ring@a", "@a"} {
		h, err := graph.ParseHow(text)
		if err == nil || !strings.Contains(err.Error(), "mean/ring") {
			t.Errorf("%q is read as %v: %v", text, h, err)
		}
	}
	for _, h := range []graph.How{{Fold: 99}, {Via: "a b"}, {Via: "ä"},
		{Fold: graph.Gather, Via: "ring"}, {Along: "a:b"}, {Along: "a\x00"}} {
		if h.Check() == nil {
			t.Errorf("%+v is accepted", h)
		}
	}
}

// TestInFlight: what is sent is awaited once, and read by nothing else.
func TestInFlight(t *testing.T) {
	for want, build := range map[string]func(x graph.Value){
		"": func(x graph.Value) { ops.Relu(ops.Await(ops.Send(x, "x", graph.How{}))) },
		"operand send is in flight: await it first": func(x graph.Value) {
			ops.Relu(ops.Send(x, "x", graph.How{}))
		},
		"awaits x, which nobody has sent": func(x graph.Value) { ops.Await(x) },
		"awaits relu, which nobody has sent": func(x graph.Value) {
			ops.Await(ops.Relu(x))
		},
		"awaits send a second time": func(x graph.Value) {
			s := ops.Send(x, "x", graph.How{})
			ops.Await(s)
			ops.Await(s)
		},
		"what is sent has no name": func(x graph.Value) { ops.Send(x, "", graph.How{}) },
		`"a b" is no way`:          func(x graph.Value) { ops.Send(x, "x", graph.How{Via: "a b"}) },
		"convert it with Cast": func(x graph.Value) {
			ops.Send(ops.Cast(x, graph.F16), "x", graph.How{})
		},
		"the count of executions is f32[2]": func(x graph.Value) {
			ops.Send(x, "x", graph.How{}, ops.Gate{Every: 2, Step: x})
		},
		"an exchange every -1 executions": func(x graph.Value) {
			ops.Send(x, "x", graph.How{}, ops.Gate{Every: -1, Step: ops.Sum(x)})
		},
		"a gather is of parts": func(x graph.Value) {
			ops.Send(x, "x", graph.How{Fold: graph.Gather})
		},
		"one of 0 parts": func(x graph.Value) { ops.SendPart(x, "x", 0) },
		"the parts together are too long": func(x graph.Value) {
			ops.SendPart(x, "x", math.MaxInt)
		},
		"send-part[f32[2]]: what is sent has no name": func(x graph.Value) {
			ops.SendPart(x, "", 2)
		},
		"send-part[f16[2]]: operand 0": func(x graph.Value) {
			ops.SendPart(ops.Cast(x, graph.F16), "x", 2)
		},
	} {
		g := graph.New()
		build(g.Input("x", tensor.Of(graph.F32, 2)))
		err := g.Verify()
		if want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestExchangesAreInOrder: sends follow one another, and awaits all sends before them,
// of what lives.
func TestExchangesAreInOrder(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 2))
	a, b := ops.Send(ops.Relu(x), "a", graph.How{}), ops.Send(x, "b", graph.How{})
	dead := ops.Send(x, "dead", graph.How{})
	y, z := ops.Await(a), ops.Await(b)
	ops.Await(dead)
	c := ops.Await(ops.Send(x, "c", graph.How{}))
	live := g.Ancestors([]graph.NodeID{y.Node.ID, z.Node.ID, c.Node.ID})
	succ := g.Successors(live)
	for node, want := range map[graph.NodeID][]graph.NodeID{
		a.Node.ID:            {y.Node.ID, b.Node.ID},
		b.Node.ID:            {z.Node.ID, y.Node.ID, c.Node.In[0].Node.ID},
		c.Node.In[0].Node.ID: {c.Node.ID},
		y.Node.ID:            nil,
	} {
		if got := succ.Of(node); !slices.Equal(got, want) {
			t.Errorf("after node %d come %v, want %v", node, got, want)
		}
	}
}

// TestShareIsInTheDigest: a plan for a variable of one's own is not for a shared one.
func TestShareIsInTheDigest(t *testing.T) {
	digest := func(share func(g *graph.Graph, w graph.Value)) string {
		g := graph.New()
		w := g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
		g.Digest() // which it must not remember
		share(g, w)
		return g.Digest()
	}
	own := digest(func(*graph.Graph, graph.Value) {})
	mean := digest(func(g *graph.Graph, w graph.Value) { g.Share(w, graph.How{}) })
	ring := digest(func(g *graph.Graph, w graph.Value) { g.Share(w, graph.How{Via: "ring"}) })
	if own == mean || mean == ring || own == ring {
		t.Errorf("digests are %s, %s and %s", own, mean, ring)
	}
}

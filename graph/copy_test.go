package graph_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
)

// TestCopy: copying every node gives a graph that prints and verifies alike.
func TestCopy(t *testing.T) {
	from, to := step(), graph.New()
	copies := map[graph.Value]graph.Value{}
	for _, n := range from.Nodes() {
		var in []graph.Value
		for _, v := range n.In {
			in = append(in, copies[v])
		}
		c, err := to.Copy(n, n.Op, in...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n.Out {
			copies[n.Value(i)] = c.Value(i)
		}
	}
	if err := to.Verify(); err != nil {
		t.Fatal(err)
	}
	text := func(g *graph.Graph) string {
		var b strings.Builder
		if _, err := g.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if text(from) != text(to) {
		t.Errorf("the copy is\n%s, want\n%s", text(to), text(from))
	}
	if w := to.Writers(to.Variables()[0].ID); len(w) != 1 || w[0].Graph() != to {
		t.Errorf("the variable's update is %v", w)
	}
	if to.Node(2).Data.F32()[1] != 2 {
		t.Error("the constant has no data")
	}
}

// TestCopyRejects: what cannot be copied is an error, and leaves no trace.
func TestCopyRejects(t *testing.T) {
	from := step()
	x, sum, update := from.Node(0), from.Node(3), from.Node(4)
	for want, attempt := range map[string]func(g *graph.Graph, x, w graph.Value) error{
		"the name is taken": func(g *graph.Graph, _, _ graph.Value) error {
			_, err := g.Copy(x, nil)
			return err
		},
		"a leaf has no operation": func(g *graph.Graph, x, _ graph.Value) error {
			_, err := g.Copy(from.Node(1), join{}, x)
			return err
		},
		"every other node has one": func(g *graph.Graph, x, _ graph.Value) error {
			_, err := g.Copy(sum, nil, x)
			return err
		},
		"belongs to another graph": func(g *graph.Graph, _, _ graph.Value) error {
			_, err := g.Copy(sum, sum.Op, sum.In...)
			return err
		},
		"operand is no value": func(g *graph.Graph, _, _ graph.Value) error {
			_, err := g.Copy(sum,
				sum.Op, graph.Value{})
			return err
		},
		"operands differ": func(g *graph.Graph, x, w graph.Value) error {
			_, err := g.Copy(sum, sum.Op, x, w)
			return err
		},
		"is not a variable": func(g *graph.Graph, x, _ graph.Value) error {
			_, err := g.Copy(update, update.Op, x)
			return err
		},
		"has 0 operands": func(g *graph.Graph, _, _ graph.Value) error {
			_, err := g.Copy(update, update.Op)
			return err
		},
	} {
		g := graph.New()
		err := attempt(g, g.Input("x", f32(2)), g.Variable("v", f32(3), graph.Init{}))
		var typed *graph.Error
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &typed) {
			t.Errorf("want %q, have %v", want, err)
		}
		if g.Len() != 2 || g.Err() != nil {
			t.Errorf("%s: the graph has %d nodes and error %v", want, g.Len(), g.Err())
		}
	}
}

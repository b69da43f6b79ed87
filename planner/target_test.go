package planner

import (
	"context"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
)

// TestBadTargets: what is no fetch or update of the graph is refused, by the
// target's name.
func TestBadTargets(t *testing.T) {
	m := randgraph.Synthetic(20)
	other := randgraph.Synthetic(20)
	leaf, computed := m.Inputs[0].Node, m.Fetches[0].Node
	updates := func(ids ...graph.NodeID) Target { return Target{Name: "bad", Updates: ids} }
	fetches := func(v ...graph.Value) Target { return Target{Name: "bad", Fetches: v} }
	for _, c := range []struct {
		target Target
		want   string
	}{
		{Target{Name: "bad"}, "nothing to compute"},
		{updates(-1), "update 0 is node -1"},
		{updates(m.Updates[0], graph.NodeID(m.Graph.Len())), "update 1 is node"},
		{updates(leaf.ID), "is of kind input: it updates nothing"},
		{updates(computed.ID), "it updates nothing"},
		{fetches(graph.Value{}), "fetch 0 is no value"},
		{fetches(other.Fetches...), "of another graph"},
		{fetches(computed.Value(3)), "is result 3 of"},
		{fetches(computed.Value(-1)), "is result -1 of"},
		{fetches(m.Graph.Node(m.Updates[0]).Value(0)), "is result 0 of"},
	} {
		_, err := Compile(context.Background(), m.Graph, c.target, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), `target "bad"`) {
			t.Errorf("want %q, have %v", c.want, err)
		}
	}
}

// TestBadGraphs: no graph, no context, no targets, or two of one name are errors.
func TestBadGraphs(t *testing.T) {
	m, ctx := randgraph.Synthetic(20), context.Background()
	broken := graph.New()
	broken.Input("x", graph.Type{DType: graph.F32, Shape: []graph.Dim{{Size: -1}}})
	var none context.Context
	for want, attempt := range map[string]func() error{
		"the graph is nil": func() error {
			_, err := Compile(ctx, nil, training(m), Options{})
			return err
		},
		"the context is nil": func() error {
			_, err := Compile(none, m.Graph, training(m), Options{})
			return err
		},
		"no targets": func() error {
			_, err := All(ctx, m.Graph, Options{})
			return err
		},
		`two targets are called "train"`: func() error {
			_, err := All(ctx, m.Graph, Options{}, training(m), training(m))
			return err
		},
		"x": func() error {
			_, err := Compile(ctx, broken, training(m), Options{})
			return err
		},
	} {
		if err := attempt(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

// TestEmptyGraph: a graph in which there is nothing to do is an error, too.
func TestEmptyGraph(t *testing.T) {
	g := graph.New()
	g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
	if err := CheckTargets(g, Target{Name: "idle"}); err == nil {
		t.Error("nothing to do is accepted")
	}
}

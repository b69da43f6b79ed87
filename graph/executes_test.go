package graph_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// TestExecutes: only what is neither a leaf nor a view has something to run, and
// nothing else costs anything.
func TestExecutes(t *testing.T) {
	g := graph.New()
	x := g.Input("x", f32(2, 3))
	w := g.Variable("w", f32(3, 2), graph.Init{})
	for _, c := range []struct {
		v    graph.Value
		want bool
	}{
		{x, false}, {w, false},
		{ops.Reshape(x, f32(3, 2).Shape...), false},
		{ops.Relu(x), true}, {ops.MatMul(x, w), true},
	} {
		n := c.v.Node
		if n.Executes() != c.want || (n.Cost() != graph.Cost{}) != c.want {
			t.Errorf("%s: executes %t, cost %+v", n.OpName(), n.Executes(), n.Cost())
		}
	}
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
}

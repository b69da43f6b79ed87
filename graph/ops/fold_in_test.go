package ops_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// TestFoldIn: of one run, all steps and iterations of two loops within one another have seeds of
// their own, and none is that of a step.
func TestFoldIn(t *testing.T) {
	g := graph.New()
	seed, i := g.Input("seed", tensor.Of(graph.I32, 2)), g.Input("i", tensor.Of(graph.I32))
	j := g.Input("j", tensor.Of(graph.I32))
	outer := ops.FoldIn(seed, i)
	inner := ops.FoldIn(outer, j)
	m, err := reference.New(g, g.Ancestors([]graph.NodeID{inner.Node.ID, outer.Node.ID}), nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]int32]bool{}
	note := func(v graph.Value) {
		s := [2]int32(m.Value(v).I32())
		if seen[s] {
			t.Fatalf("seed %v comes twice", s)
		}
		seen[s] = true
	}
	const n = 30
	for step := range int32(n) {
		copy(m.Value(seed).I32(), []int32{42, step})
		note(seed)
		for k := range int32(n) {
			for l := range int32(n) {
				m.Value(i).I32()[0], m.Value(j).I32()[0] = k, l
				if err := m.Step(); err != nil {
					t.Fatal(err)
				}
				if l == 0 {
					note(outer)
				}
				note(inner)
			}
		}
	}
}

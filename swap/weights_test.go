package swap

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/planner/program"
)

// TestWeightsDoNotOverflow: bytes times positions are compared as they are, even
// where 64 bits do not hold them.
func TestWeightsDoNotOverflow(t *testing.T) {
	g := graph.New()
	idle := func(name string, elements int, positions int32) choice {
		v := g.Input(name, tensor.Of(graph.F32, elements))
		return choice{span{value: v}, program.Gap{Before: positions}}
	}
	rising := []choice{idle("small", 4, 10), idle("long", 4, 1000), idle("large", 1<<55, 10),
		idle("both", 1<<55, 1000), idle("longest", 1<<55, 1<<30)}
	for i, a := range rising {
		for j, b := range rising {
			if got := compareWeights(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s against %s is %d", a.value, b.value, got)
			}
		}
	}
}

package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Assign is v ← x, for updates that are composed of other operations.
func Assign(v, x graph.Value) *graph.Node {
	return update(assign{}, []graph.Value{v}, x)
}

type assign struct{}

func (assign) Name() string { return "assign" }

func (assign) Infer(in []graph.Type) ([]graph.Type, error) { return nil, checkUpdate(in, 2, 0) }

func (assign) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 1, 1, 0) }

func (assign) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func assignCPU(_ assign, c *kernel.Call) error {
	v, x := c.In[0].F32(), c.In[1].F32()
	c.Pool.For(len(v), grain, func(lo, hi int) { copy(v[lo:hi], x[lo:hi]) })
	return nil
}

func init() {
	kernel.Register(kernel.CPU, assignCPU)
	w := tensor.Of(graph.F32, 5, 17)
	register(Sample{Op: assign{}, In: []graph.Type{w, w}, Update: 1})
}

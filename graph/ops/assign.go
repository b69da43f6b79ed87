package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Assign is v ← x, of any element type, for updates that are composed of other operations.
func Assign(v, x graph.Value, gate ...Gate) *graph.Node {
	return behind(gate, assign{}, []graph.Value{v}, x)
}

type assign struct{}

func (assign) Name() string { return "assign" }

func (assign) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if in[1].DType != in[0].DType || !in[1].SameShape(in[0]) {
		return nil, fmt.Errorf("operand 1 is %s, the variable is %s%s", in[1], in[0],
			convertible(in[1], in[0].DType))
	}
	return nil, nil
}

func (assign) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 1, 1, 0) }

func (assign) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func assignCPU(_ assign, c *kernel.Call) error {
	v, x := c.In[0].Data, c.In[1].Data
	c.Pool.For(len(v), 4*grain, func(lo, hi int) { copy(v[lo:hi], x[lo:hi]) })
	return nil
}

func init() {
	kernel.Register(kernel.CPU, assignCPU)
	w := tensor.Of(graph.F32, 5, 17)
	register(Sample{Op: assign{}, In: []graph.Type{w, w}, Update: 1})
	w.DType = graph.F64
	register(Sample{Op: assign{}, In: []graph.Type{w, w}, Update: 1})
}

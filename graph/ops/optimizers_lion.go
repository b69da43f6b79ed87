package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Lion is Chen et al.'s optimizer (2023), whose weight decay is not part of the gradient:
//
//	w ← w − lr·decay·w − lr·sign(beta1·m + (1−beta1)·grad)
//	m ← beta2·m + (1−beta2)·grad
func Lion(w, m, grad, lr graph.Value, beta1, beta2, decay float32, gate ...Gate) *graph.Node {
	return behind(gate, lion{Beta1: beta1, Beta2: beta2, Decay: decay}, []graph.Value{w, m}, grad,
		lr)
}

type lion struct{ Beta1, Beta2, Decay float32 }

func (lion) Name() string { return "lion" }

func (o lion) Infer(in []graph.Type) ([]graph.Type, error) {
	for _, b := range []float32{o.Beta1, o.Beta2} {
		if !(b >= 0 && b < 1) {
			return nil, fmt.Errorf("decay %v is outside [0, 1)", b)
		}
	}
	if !(o.Decay >= 0) {
		return nil, fmt.Errorf("weight decay %v is negative", o.Decay)
	}
	return nil, checkUpdate(in, 3, 1)
}

func (lion) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 3, 2, 9) }

func (lion) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func lionCPU(o lion, c *kernel.Call) error {
	w, m, g, lr := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32()[0]
	keep := 1 - float32(lr*o.Decay)
	inSpans(c, len(w), func(_, lo, hi int, buf []float32) {
		w, m, g, signs := w[lo:hi], m[lo:hi], g[lo:hi], buf[:hi-lo]
		vec.MulScalar(signs, m, o.Beta1)
		vec.Axpy(signs, 1-o.Beta1, g)
		for i, x := range signs { // 0 and what is no number stay
			switch {
			case x > 0:
				signs[i] = 1
			case x < 0:
				signs[i] = -1
			}
		}
		vec.MulScalar(w, w, keep)
		vec.Axpy(w, -lr, signs)
		vec.MulScalar(m, m, o.Beta2)
		vec.Axpy(m, 1-o.Beta2, g)
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, lionCPU)
	w, scalar := tensor.Of(graph.F32, 5, 17), tensor.Of(graph.F32)
	register(
		Sample{Op: lion{0.9, 0.99, 0.1}, In: []graph.Type{w, w, w, scalar}, Update: 2},
		Sample{Op: every{Op: lion{0.9, 0.99, 0}, N: 1},
			In: []graph.Type{w, w, w, scalar, scalar}, Update: 2, Fill: fills{4: ones}},
	)
}

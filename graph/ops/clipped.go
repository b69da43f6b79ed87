package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// ClippedRelu is min(max(x, 0), limit), NaN where x is. The gradient reads the result:
// it is zero at the limits and beyond, and passes elsewhere, also where x is NaN.
func ClippedRelu(x graph.Value, limit float32) graph.Value {
	return apply(clippedRelu{Limit: limit}, x)
}

type clippedRelu struct{ Limit float32 }

func (clippedRelu) Name() string { return "clipped-relu" }

func checkLimit(limit float32) error {
	if !(limit > 0) || math.IsInf(float64(limit), 0) {
		return fmt.Errorf("limit is %g, want a number above 0", limit)
	}
	return nil
}

func (o clippedRelu) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	return in[:1:1], checkLimit(o.Limit)
}

func (clippedRelu) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 2) }

// InPlace: every element depends on its own operand alone.
func (clippedRelu) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o clippedRelu) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(clippedReluGrad(o), n.Value(0), dout[0])}
}

// pieces visits a range in pieces of at most narrow elements.
func pieces(lo, hi int, f func(lo, hi int)) {
	for ; lo < hi; lo += narrow {
		f(lo, min(hi, lo+narrow))
	}
}

func clippedReluCPU(o clippedRelu, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		pieces(lo, hi, func(lo, hi int) {
			vec.Relu(out[lo:hi], x[lo:hi])
			vec.MinScalar(out[lo:hi], out[lo:hi], o.Limit)
		})
	})
	return nil
}

// clippedReluGrad passes a gradient, operand 1, where the result, operand 0, is
// between the limits.
type clippedReluGrad struct{ Limit float32 }

func (clippedReluGrad) Name() string { return "clipped-relu-grad" }

func (o clippedReluGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	if !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("operands differ in shape")
	}
	return in[:1:1], checkLimit(o.Limit)
}

func (clippedReluGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 3) }

// InPlace: the gradient first, since it is seldom needed again.
func (clippedReluGrad) InPlace(_, _ []graph.Type) []int { return []int{1, 0} }

func (o clippedReluGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, apply(o, n.In[0], dout[0])}
}

func clippedReluGradCPU(o clippedReluGrad, c *kernel.Call) error {
	y, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		room := make([]float32, narrow)
		pieces(lo, hi, func(lo, hi int) {
			below := room[:hi-lo]
			vec.ScalarSub(below, o.Limit, y[lo:hi])
			vec.ReluGrad(out[lo:hi], y[lo:hi], d[lo:hi])
			vec.ReluGrad(out[lo:hi], below, out[lo:hi])
		})
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, clippedReluCPU)
	kernel.Register(kernel.CPU, clippedReluGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: clippedRelu{4.5}, In: []graph.Type{f(3, 17)}, Fill: fills{0: spaced(0.25)},
			Second: true},
		Sample{Op: clippedRelu{20}, In: []graph.Type{f(300)}, Fill: fills{0: spaced(0.25)},
			Second: true, Eps: 1e-3},
		Sample{Op: clippedReluGrad{2.5}, In: []graph.Type{f(17), f(17)}, NoGrad: []int{0},
			Fill: fills{0: spaced(0.25)}, Second: true},
	)
}

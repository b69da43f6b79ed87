package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Clip is x, but lo where x is below and hi where it is above; NaN stays. A bound that
// is infinite is none. The gradient passes from lo to hi, both included.
func Clip(x graph.Value, lo, hi float32) graph.Value { return apply(clip{lo, hi}, x) }

type clip struct{ Lo, Hi float32 }

func (clip) Name() string { return "clip" }

func (o clip) check() error {
	if !(o.Lo <= o.Hi) {
		return fmt.Errorf("values are clipped to %g at least and %g at most", o.Lo, o.Hi)
	}
	return nil
}

func (o clip) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	return in[:1:1], o.check()
}

func (clip) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 2) }

// InPlace: every element depends on its own operand alone.
func (clip) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o clip) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(clipGrad(o), n.In[0], dout[0])}
}

func (o clip) tile(dst, x, _ []float32, _ []int32, _ int) {
	pieces(0, len(dst), func(lo, hi int) {
		vec.MaxScalar(dst[lo:hi], x[lo:hi], o.Lo)
		vec.MinScalar(dst[lo:hi], dst[lo:hi], o.Hi)
	})
}

// Cut is between any elements.
func (clip) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o clip) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func clipCPU(o clip, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) { o.tile(out[lo:hi], x[lo:hi], nil, nil, lo) })
	return nil
}

// clipGrad passes a gradient, operand 1, where operand 0 is between the bounds.
type clipGrad struct{ Lo, Hi float32 }

func (clipGrad) Name() string { return "clip-grad" }

func (o clipGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	if !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("operands differ in shape")
	}
	return in[:1:1], clip(o).check()
}

func (clipGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 2) }

// InPlace: the gradient first, since it is seldom needed again.
func (clipGrad) InPlace(_, _ []graph.Type) []int { return []int{1, 0} }

func (o clipGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, apply(o, n.In[0], dout[0])}
}

func (o clipGrad) tile(dst, x, d []float32, _ []int32, _ int) {
	for i, v := range x[:len(dst)] {
		g := d[i]
		if !(v >= o.Lo && v <= o.Hi) {
			g = 0
		}
		dst[i] = g
	}
}

// Cut is between any elements.
func (clipGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o clipGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func clipGradCPU(o clipGrad, c *kernel.Call) error {
	x, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		o.tile(out[lo:hi], x[lo:hi], d[lo:hi], nil, lo)
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, clipCPU)
	kernel.Register(kernel.CPU, clipGradCPU)
	x := tensor.Of(graph.F32, 3, 17)
	register(
		Sample{Op: clip{-2.5, 4.5}, In: []graph.Type{x}, Fill: fills{0: spaced(0.25)}, Eps: 1e-3,
			Second: true},
		Sample{Op: clipGrad{-2.5, 4.5}, In: []graph.Type{x, x}, NoGrad: []int{0},
			Fill: fills{0: spaced(0.25)}, Second: true},
	)
}

package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// LayerNorm gives every row of the last axis mean 0 and variance 1, scales and
// shifts it: (x−μ)/√(σ²+eps)·scale + bias, with scale and bias f32[d]. The
// gradient recomputes μ and σ from x.
func LayerNorm(x, scale, bias graph.Value, eps float32) graph.Value {
	return apply(layerNorm{Eps: eps}, x, scale, bias)
}

type layerNorm struct{ Eps float32 }

func (layerNorm) Name() string { return "layer-norm" }

func (o layerNorm) Infer(in []graph.Type) ([]graph.Type, error) {
	return normalized(in, o.Eps, false, true, true)
}

func (layerNorm) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 7) }

// InPlace: a row is read before it is overwritten.
func (layerNorm) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o layerNorm) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, scale, d := n.In[0], n.In[1], dout[0]
	return []graph.Value{
		apply(layerNormGrad(o), x, scale, d),
		apply(layerScaleGrad(o), x, d),
		reduceTo(d, n.In[2].Type()),
	}
}

func layerNormCPU(o layerNorm, c *kernel.Call) error {
	x, scale, bias, out := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.Out[0].F32()
	rowBlocks(c, len(x), len(scale), func(lo, hi int) {
		vec.LayerNorm(out[lo:hi], x[lo:hi], scale, bias, o.Eps, far(c))
	})
	return nil
}

// layerNormGrad is the gradient of x: with y the normalised row and g = d·scale,
// inv·(g − mean(g) − y·mean(g·y)).
type layerNormGrad struct{ Eps float32 }

func (layerNormGrad) Name() string { return "layer-norm-grad" }

func (o layerNormGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	return normalized(in, o.Eps, false, true, false)
}

func (layerNormGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 14) }

// InPlace: the gradient's row is done with when it is overwritten.
func (layerNormGrad) InPlace(_, _ []graph.Type) []int { return []int{2} }

// VJP: as that of the root mean square norm, for rows less their means.
func (o layerNormGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, scale, d, e := n.In[0], n.In[1], n.In[2], dout[0]
	je := apply(o, x, Ones(n.Graph(), scale.Type()), e)
	center := func(v graph.Value) graph.Value { return Sub(v, rowMean(v)) }
	y := center(x)
	inv := Rsqrt(AddScalar(rowMean(Square(y)), o.Eps))
	return []graph.Value{
		curvature(y, center(e), center(Mul(d, scale)), inv, -1),
		reduceTo(Mul(je, d), scale.Type()),
		Mul(je, scale),
	}
}

func layerNormGradCPU(o layerNormGrad, c *kernel.Call) error {
	x, scale, d, out := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.Out[0].F32()
	rowBlocks(c, len(x), len(scale), func(lo, hi int) {
		vec.LayerNormGrad(out[lo:hi], x[lo:hi], scale, d[lo:hi], o.Eps, far(c))
	})
	return nil
}

// layerScaleGrad is the gradient of the scale: Σ over rows of d·y.
type layerScaleGrad struct{ Eps float32 }

func (layerScaleGrad) Name() string { return "layer-scale-grad" }

func (o layerScaleGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	return rmsScaleGrad(o).Infer(in)
}

func (layerScaleGrad) Cost(in, out []graph.Type) graph.Cost { return scaleGradCost(in, out, 8) }

// VJP: the sum is linear in d, and its gradient by x is that of the norm.
func (o layerScaleGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, d, e := n.In[0], n.In[1], dout[0]
	unshifted := LayerNorm(x, e, Zeros(n.Graph(), e.Type()), o.Eps)
	return []graph.Value{apply(layerNormGrad(o), x, e, d), unshifted}
}

func layerScaleGradCPU(o layerScaleGrad, c *kernel.Call) error {
	scaleGrad(c, func(x []float32) (mean, inv float32) { return vec.Moments(x, o.Eps) })
	return nil
}

func init() {
	kernel.Register(kernel.CPU, layerNormCPU)
	kernel.Register(kernel.CPU, layerNormGradCPU)
	kernel.Register(kernel.CPU, layerScaleGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: layerNorm{1e-6}, In: []graph.Type{f(3, 5), f(5), f(5)}, Second: true},
		Sample{Op: layerNorm{0.1}, In: []graph.Type{f(2, 3, 70), f(70), f(70)}, Second: true},
		Sample{Op: layerNorm{0.1}, In: []graph.Type{f(3, 1), f(1), f(1)}, Second: true},
		Sample{Op: layerNormGrad{0.1}, In: []graph.Type{f(3, 5), f(5), f(3, 5)}, Second: true},
		Sample{Op: layerScaleGrad{0.1}, In: []graph.Type{f(3, 5), f(3, 5)}, Second: true},
		Sample{Op: layerScaleGrad{0.1}, In: []graph.Type{f(300, 70), f(300, 70)}, Second: true},
	)
}

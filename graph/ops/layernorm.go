package ops

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/tensor"
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

// moments are a row's mean and 1/√(variance+eps).
func moments(x []float32, eps float32) (mean, inv float32) {
	mean = vec.Sum(x) / float32(len(x))
	var squares float64
	for _, v := range x {
		squares += float64(v-mean) * float64(v-mean)
	}
	return mean, float32(1 / math.Sqrt(squares/float64(len(x))+float64(eps)))
}

func layerNormCPU(o layerNorm, c *kernel.Call) error {
	x, scale, bias, out := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.Out[0].F32()
	rows(c, len(x), len(scale), func(lo, hi int) {
		mean, inv := moments(x[lo:hi], o.Eps)
		vec.AddScalar(out[lo:hi], x[lo:hi], -mean)
		vec.MulScalar(out[lo:hi], out[lo:hi], inv)
		vec.Fma(out[lo:hi], out[lo:hi], scale, bias)
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

// VJP: there is none; a second gradient takes the norm composed of simpler
// operations.
func (layerNormGrad) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func layerNormGradCPU(o layerNormGrad, c *kernel.Call) error {
	x, scale, d, out := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.Out[0].F32()
	rows(c, len(x), len(scale), func(lo, hi int) {
		row, g := x[lo:hi], out[lo:hi]
		n := float32(len(row))
		mean, inv := moments(row, o.Eps)
		vec.Mul(g, d[lo:hi], scale)
		sum := vec.Sum(g)
		along := (vec.Dot(g, row) - mean*sum) * inv / n // mean(g·y)
		shift := along*inv*mean - sum/n
		vec.Axpy(g, -along*inv, row)
		vec.AddScalar(g, g, shift)
		vec.MulScalar(g, g, inv)
	})
	return nil
}

// layerScaleGrad is the gradient of the scale: Σ over rows of d·y.
type layerScaleGrad struct{ Eps float32 }

func (layerScaleGrad) Name() string { return "layer-scale-grad" }

func (o layerScaleGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	return rmsScaleGrad(o).Infer(in)
}

// Cost: the scratch holds two numbers a row.
func (layerScaleGrad) Cost(in, out []graph.Type) graph.Cost {
	n := int64(in[0].Elems())
	return graph.Cost{FLOPs: 8 * n, Bytes: bytes(in, out), Scratch: 8 * n / int64(in[0].Size(-1))}
}

func (layerScaleGrad) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func layerScaleGradCPU(o layerScaleGrad, c *kernel.Call) error {
	x, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	n := len(out)
	count := len(x) / n
	means, invs := floats(c.Scratch)[:count], floats(c.Scratch)[count:]
	rows(c, len(x), n, func(lo, hi int) { means[lo/n], invs[lo/n] = moments(x[lo:hi], o.Eps) })
	columns(c, count, n, func(row, lo, hi int) {
		if row == 0 {
			clear(out[lo:hi])
		}
		mean, inv := means[row], invs[row]
		for j := lo; j < hi; j++ {
			out[j] += d[row*n+j] * (x[row*n+j] - mean) * inv
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, layerNormCPU)
	kernel.Register(kernel.CPU, layerNormGradCPU)
	kernel.Register(kernel.CPU, layerScaleGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: layerNorm{1e-6}, In: []graph.Type{f(3, 5), f(5), f(5)}},
		Sample{Op: layerNorm{1e-6}, In: []graph.Type{f(2, 3, 70), f(70), f(70)}},
		Sample{Op: layerNormGrad{1e-6}, In: []graph.Type{f(3, 5), f(5), f(3, 5)}, NoGrad: []int{0, 1, 2}},
		Sample{Op: layerScaleGrad{1e-6}, In: []graph.Type{f(3, 5), f(3, 5)}, NoGrad: []int{0, 1}},
	)
}

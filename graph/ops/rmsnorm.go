package ops

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// RMSNorm divides every row of the last axis by its root mean square and scales
// it: x·rsqrt(mean(x²)+eps)·scale, with scale f32[d]. The gradient recomputes
// the root mean square from x.
func RMSNorm(x, scale graph.Value, eps float32) graph.Value {
	return apply(rmsNorm{Eps: eps}, x, scale)
}

type rmsNorm struct{ Eps float32 }

func (rmsNorm) Name() string { return "rms-norm" }

// normalized infers a result like operand 0, rows of d elements, for further
// operands of which the vectors are [d] and the others like operand 0.
func normalized(in []graph.Type, eps float32, vectors ...bool) ([]graph.Type, error) {
	if err := arity(in, len(vectors)); err != nil {
		return nil, err
	}
	if !(eps >= 0) || math.IsInf(float64(eps), 0) {
		return nil, fmt.Errorf("epsilon is %g, want a number not below 0", eps)
	}
	if in[0].Rank() == 0 {
		return nil, fmt.Errorf("a scalar has no rows")
	}
	row := tensor.Of(graph.F32, in[0].Size(-1))
	for i, t := range in {
		if vectors[i] && !t.Equal(row) {
			return nil, fmt.Errorf("operand %d is %s, want %s%s", i, t, row,
				convertible(t, graph.F32))
		}
		if !vectors[i] && (t.DType != graph.F32 || !t.SameShape(in[0])) {
			return nil, fmt.Errorf("operand %d is %s, want f32 like %s%s", i, t, in[0],
				convertible(t, graph.F32))
		}
	}
	return in[:1:1], nil
}

func (o rmsNorm) Infer(in []graph.Type) ([]graph.Type, error) {
	return normalized(in, o.Eps, false, true)
}

func (rmsNorm) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 4) }

// InPlace: a row is read before it is overwritten.
func (rmsNorm) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o rmsNorm) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, scale, d := n.In[0], n.In[1], dout[0]
	return []graph.Value{apply(rmsNormGrad(o), x, scale, d), apply(rmsScaleGrad(o), x, d)}
}

func rmsNormCPU(o rmsNorm, c *kernel.Call) error {
	x, scale, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	rowBlocks(c, len(x), len(scale), func(lo, hi int) {
		vec.RMSNorm(out[lo:hi], x[lo:hi], scale, o.Eps, far(c))
	})
	return nil
}

// rmsNormGrad is the gradient of x: with r the inverse root mean square and
// g = d·scale, r·g − x·r³·mean(g·x).
type rmsNormGrad struct{ Eps float32 }

func (rmsNormGrad) Name() string { return "rms-norm-grad" }

func (o rmsNormGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	return normalized(in, o.Eps, false, true, false)
}

func (rmsNormGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 9) }

// InPlace: the gradient's row is done with when it is overwritten.
func (rmsNormGrad) InPlace(_, _ []graph.Type) []int { return []int{2} }

// VJP: the gradient is J·(d·scale) with J, the derivative of the normalised row
// by the row, symmetric. So that of d takes J again, and only that of x is more.
func (o rmsNormGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, scale, d, e := n.In[0], n.In[1], n.In[2], dout[0]
	je := apply(o, x, Ones(n.Graph(), scale.Type()), e)
	inv := Rsqrt(AddScalar(rowMean(Square(x)), o.Eps))
	return []graph.Value{
		curvature(x, e, Mul(d, scale), inv, -1),
		reduceTo(Mul(je, d), scale.Type()),
		Mul(je, scale),
	}
}

// rowMean is the mean over the last axis, which is kept.
func rowMean(x graph.Value) graph.Value {
	return Scale(SumKeep(x, -1), 1/float32(x.Type().Size(-1)))
}

// curvature is the gradient of e·J·g by x, for x divided by its root mean square
// over n elements along some axes, of which inv is the inverse:
//
//	inv³/n · ((3·inv²/n·(e·x)(g·x) − e·g)·x − (e·x)·g − (g·x)·e)
func curvature(x, e, g, inv graph.Value, axes ...int) graph.Value {
	n := float32(x.Type().Elems() / max(1, inv.Type().Elems()))
	dot := func(a, b graph.Value) graph.Value { return SumKeep(Mul(a, b), axes...) }
	ex, gx, square := dot(e, x), dot(g, x), Square(inv)
	along := Sub(Scale(Mul(square, Mul(ex, gx)), 3/n), dot(e, g))
	rest := Add(Mul(ex, g), Mul(gx, e))
	return Mul(Scale(Mul(square, inv), 1/n), Sub(Mul(along, x), rest))
}

func rmsNormGradCPU(o rmsNormGrad, c *kernel.Call) error {
	x, scale, d, out := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.Out[0].F32()
	rowBlocks(c, len(x), len(scale), func(lo, hi int) {
		vec.RMSNormGrad(out[lo:hi], x[lo:hi], scale, d[lo:hi], o.Eps, far(c))
	})
	return nil
}

// rmsScaleGrad is the gradient of the scale: Σ over rows of d·x·r.
type rmsScaleGrad struct{ Eps float32 }

func (rmsScaleGrad) Name() string { return "rms-scale-grad" }

func (o rmsScaleGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if _, err := normalized(in, o.Eps, false, false); err != nil {
		return nil, err
	}
	return []graph.Type{tensor.Of(graph.F32, in[0].Size(-1))}, nil
}

func (rmsScaleGrad) Cost(in, out []graph.Type) graph.Cost { return scaleGradCost(in, out, 5) }

// VJP: the sum is linear in d, and its gradient by x is that of the norm.
func (o rmsScaleGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, d, e := n.In[0], n.In[1], dout[0]
	return []graph.Value{apply(rmsNormGrad(o), x, e, d), RMSNorm(x, e, o.Eps)}
}

func rmsScaleGradCPU(o rmsScaleGrad, c *kernel.Call) error {
	scaleGrad(c, func(x []float32) (mean, inv float32) { return 0, vec.InverseRMS(x, o.Eps) })
	return nil
}

// scaleGradCost is the cost of scaleGrad: its scratch holds a sum for every block.
func scaleGradCost(in, out []graph.Type, flops int64) graph.Cost {
	elems, n := in[0].Elems(), in[0].Size(-1)
	blocks := blocksOf(elems/max(1, n), n, 64)
	return graph.Cost{FLOPs: flops * int64(elems), Bytes: bytes(in, out),
		Scratch: 4 * int64(blocks) * int64(n)}
}

// scaleGrad sums the products of normalised rows and gradients, operands 0 and
// 1: blocks of rows first, then the blocks in order. A row is normalised by what
// moments returns.
func scaleGrad(c *kernel.Call, moments func(x []float32) (mean, inv float32)) {
	x, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	n := len(out)
	count := len(x) / n
	blocks := blocksOf(count, n, 64)
	sums := floats(c.Scratch)
	c.Pool.Run(blocks, func(b int) {
		acc := sums[b*n : (b+1)*n]
		clear(acc)
		first, end := block(b, blocks, count)
		for at := first * n; at < end*n; at += n {
			mean, inv := moments(x[at : at+n])
			vec.Normalize(acc, x[at:], d[at:], acc, mean, inv)
		}
	})
	copy(out, sums)
	for b := 1; b < blocks; b++ {
		vec.Add(out, out, sums[b*n:])
	}
}

// floats is scratch memory as 32-bit floats; it is aligned to 64 bytes.
func floats(scratch []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(scratch))), len(scratch)/4)
}

func init() {
	kernel.Register(kernel.CPU, rmsNormCPU)
	kernel.Register(kernel.CPU, rmsNormGradCPU)
	kernel.Register(kernel.CPU, rmsScaleGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: rmsNorm{1e-6}, In: []graph.Type{f(3, 5), f(5)}, Second: true},
		Sample{Op: rmsNorm{0.1}, In: []graph.Type{f(2, 3, 70), f(70)}, Second: true},
		Sample{Op: rmsNorm{0.1}, In: []graph.Type{f(3, 1), f(1)}, Second: true},
		Sample{Op: rmsNormGrad{0.1}, In: []graph.Type{f(3, 5), f(5), f(3, 5)}, Second: true},
		Sample{Op: rmsScaleGrad{0.1}, In: []graph.Type{f(3, 5), f(3, 5)}, Second: true},
		Sample{Op: rmsScaleGrad{0.1}, In: []graph.Type{f(300, 70), f(300, 70)}, Second: true},
	)
}

package ops

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/tensor"
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
		return nil, fmt.Errorf("epsilon is %g", eps)
	}
	if in[0].Rank() == 0 {
		return nil, fmt.Errorf("a scalar has no rows")
	}
	row := tensor.Of(graph.F32, in[0].Size(-1))
	for i, t := range in {
		if vectors[i] && !t.Equal(row) {
			return nil, fmt.Errorf("operand %d is %s, want %s", i, t, row)
		}
		if !vectors[i] && (t.DType != graph.F32 || !t.SameShape(in[0])) {
			return nil, fmt.Errorf("operand %d is %s, want f32 like %s", i, t, in[0])
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

// rms is 1/√(mean(x²)+eps).
func rms(x []float32, eps float32) float32 {
	return float32(1 / math.Sqrt(float64(vec.SumSquares(x))/float64(len(x))+float64(eps)))
}

func rmsNormCPU(o rmsNorm, c *kernel.Call) error {
	x, scale, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	rows(c, len(x), len(scale), func(lo, hi int) {
		vec.MulScalar(out[lo:hi], x[lo:hi], rms(x[lo:hi], o.Eps))
		vec.Mul(out[lo:hi], out[lo:hi], scale)
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

// VJP: there is none; a second gradient takes the norm composed of simpler
// operations.
func (rmsNormGrad) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func rmsNormGradCPU(o rmsNormGrad, c *kernel.Call) error {
	x, scale, d, out := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.Out[0].F32()
	rows(c, len(x), len(scale), func(lo, hi int) {
		row, g := x[lo:hi], out[lo:hi]
		r := rms(row, o.Eps)
		vec.Mul(g, d[lo:hi], scale)
		mean := vec.Dot(g, row) / float32(len(row))
		vec.MulScalar(g, g, r)
		vec.Axpy(g, -r*r*r*mean, row)
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

// Cost: the scratch holds one number a row.
func (rmsScaleGrad) Cost(in, out []graph.Type) graph.Cost {
	n := int64(in[0].Elems())
	return graph.Cost{FLOPs: 5 * n, Bytes: bytes(in, out), Scratch: 4 * n / int64(in[0].Size(-1))}
}

func (rmsScaleGrad) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

// rmsScaleGradCPU first finds every row's factor, then splits over columns, each
// summed over the rows in order.
func rmsScaleGradCPU(o rmsScaleGrad, c *kernel.Call) error {
	x, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	factor := floats(c.Scratch)
	n := len(out)
	rows(c, len(x), n, func(lo, hi int) { factor[lo/n] = rms(x[lo:hi], o.Eps) })
	columns(c, len(x)/n, n, func(row, lo, hi int) {
		if row == 0 {
			clear(out[lo:hi])
		}
		addProduct(out[lo:hi], d[row*n+lo:row*n+hi], x[row*n+lo:row*n+hi], factor[row])
	})
	return nil
}

// columns calls f for ranges of columns in parallel, and for each range with
// every row in order.
func columns(c *kernel.Call, rows, n int, f func(row, lo, hi int)) {
	const width = 64
	c.Pool.For((n+width-1)/width, max(1, grain/(width*rows)), func(lo, hi int) {
		for row := range rows {
			f(row, lo*width, min(n, hi*width))
		}
	})
}

// addProduct adds a·b·s to dst.
func addProduct(dst, a, b []float32, s float32) {
	for i := range dst {
		dst[i] += a[i] * b[i] * s
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
		Sample{Op: rmsNorm{1e-6}, In: []graph.Type{f(3, 5), f(5)}},
		Sample{Op: rmsNorm{1e-6}, In: []graph.Type{f(2, 3, 70), f(70)}},
		Sample{Op: rmsNormGrad{1e-6}, In: []graph.Type{f(3, 5), f(5), f(3, 5)}, NoGrad: []int{0, 1, 2}},
		Sample{Op: rmsScaleGrad{1e-6}, In: []graph.Type{f(3, 5), f(3, 5)}, NoGrad: []int{0, 1}},
	)
}

package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// SumSquares is Σ x², f32[]: the square of the norm of all elements. Nothing as
// large as x is needed for it. It is infinite where the norm is 1.8·10¹⁹ or more.
func SumSquares(x graph.Value) graph.Value { return apply(sumSquares{}, x) }

// WideSquares is Σ x² in two scales, f32[2]: as it is, and divided by 2¹⁶⁰. The second is a
// number where the elements are, and has the digits of the sum where the first overflows.
// Both add up over several x. See [NormFactor].
func WideSquares(x graph.Value) graph.Value { return apply(sumSquares{Wide: true}, x) }

// NormFactor is what something is to be multiplied by so that its norm, of which squares are
// [WideSquares], is limit at most, f32[]: 1 where it is that already. It is 0 where the norm
// is infinite, and NaN where it is. There is no gradient.
func NormFactor(squares graph.Value, limit float32) graph.Value {
	return apply(normFactor{Limit: limit}, squares)
}

// wideScale is what elements are multiplied by so that their squares do not overflow.
const wideScale = 0x1p-80

type sumSquares struct{ Wide bool }

func (sumSquares) Name() string { return "sum-squares" }

func (o sumSquares) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if o.Wide {
		return []graph.Type{tensor.Of(graph.F32, 2)}, nil
	}
	return []graph.Type{tensor.Of(graph.F32)}, nil
}

// Cost: the scratch has the sums of every span.
func (o sumSquares) Cost(in, out []graph.Type) graph.Cost {
	n := in[0].Elems()
	return graph.Cost{FLOPs: 2 * int64(n), Bytes: bytes(in, out),
		Scratch: int64(spans(n)) * out[0].Bytes()}
}

func (o sumSquares) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	d := dout[0]
	if o.Wide {
		d = Sum(Mul(d, n.Graph().Constant("scales",
			tensor.FromF32([]float32{1, wideScale * wideScale}, 2))))
	}
	return []graph.Value{Mul(Scale(n.In[0], 2), d)}
}

func sumSquaresCPU(o sumSquares, c *kernel.Call) error {
	x, sums, out := c.In[0].F32(), floats(c.Scratch), c.Out[0].F32()
	parts := spans(len(x))
	inSpans(c, len(x), func(i, lo, hi int, _ []float32) {
		sums[i] = vec.SumSquares(x[lo:hi])
		if o.Wide {
			sums[parts+i] = wideSquares(sums[i], x[lo:hi])
		}
	})
	for i := range out {
		out[i] = float32(total(sums[i*parts:], parts, 1))
	}
	return nil
}

// wideSquares is a sum of squares of x in the other scale.
func wideSquares(sum float32, x []float32) float32 {
	if float64(sum) <= math.MaxFloat32 {
		return float32(float64(sum) * wideScale * wideScale)
	}
	wide := 0.0
	for _, v := range x {
		wide += float64(float64(v) * float64(v))
	}
	return float32(wide * wideScale * wideScale)
}

type normFactor struct{ Limit float32 }

func (normFactor) Name() string { return "norm-factor" }

func (o normFactor) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if !(o.Limit > 0) {
		return nil, fmt.Errorf("a norm is limited to %v: want a positive number", o.Limit)
	}
	if in[0].Rank() != 1 || in[0].Size(0) != 2 {
		return nil, fmt.Errorf("squares in two scales are %s, want f32[2]", in[0])
	}
	return []graph.Type{tensor.Of(graph.F32)}, nil
}

func (normFactor) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 4) }

func (normFactor) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func normFactorCPU(o normFactor, c *kernel.Call) error {
	squares, out := c.In[0].F32(), c.Out[0].F32()
	if float64(squares[0]) > math.MaxFloat32 {
		norm := math.Sqrt(float64(squares[1])) / wideScale
		out[0] = float32(float64(o.Limit) / norm)
		return nil
	}
	norm := float32(math.Sqrt(float64(squares[0])))
	out[0] = o.Limit / max(norm, o.Limit)
	return nil
}

func init() {
	kernel.Register(kernel.CPU, sumSquaresCPU)
	kernel.Register(kernel.CPU, normFactorCPU)
	f := func(sizes ...int) []graph.Type { return []graph.Type{tensor.Of(graph.F32, sizes...)} }
	for _, wide := range []bool{false, true} {
		register(
			Sample{Op: sumSquares{wide}, In: f(3, 5), Second: true},
			Sample{Op: sumSquares{wide}, In: f(1, 3000), Second: true, Eps: 1e-1},
			Sample{Op: sumSquares{wide}, In: f(), Second: true},
		)
	}
	register(Sample{Op: normFactor{0.5}, In: f(2), Fill: fills{0: positive}, NoGrad: []int{0}})
}

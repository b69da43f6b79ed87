package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/libm"
)

// Pow is a^b, with operands that broadcast: 1 where b is 0, NaN where a is below 0 and b
// no integer, and else as in C. The gradient of b is 0 where a is 0 and b is not below.
// Powers of integers are exact but for wrapping; where b is below 0, they are 1 for a = 1, 1 or −1
// for a = −1, and 0 for others, as in PyTorch.
func Pow(a, b graph.Value) graph.Value { return onNumbers(binary{power}, a, b) }

// PowScalar is x^p. The simple powers (2, 3, ½, −½ and −1) are computed as such, and
// without their logarithm.
func PowScalar(x graph.Value, p float32) graph.Value {
	switch p {
	case -1:
		return Reciprocal(x)
	case -0.5:
		return Rsqrt(x)
	case 0.5:
		return Sqrt(x)
	case 1:
		return x
	case 2:
		return Square(x)
	case 3:
		return Mul(Square(x), x)
	}
	return apply(powScalar{Exponent: p}, x)
}

// powerSlopes are the gradients of both operands of y = a^b. What would be 0·∞ is
// avoided in the operands, so that the gradients have gradients. Where b is 0, that of a is
// b/a, which is 0 there, but not how it changes with b; a power of b−1 could overflow.
func powerSlopes(a, b, y, d graph.Value) (da, db graph.Value) {
	one, zero := scalar(y, 1), scalar(y, 0)
	constant := Equal(b, zero)
	less := Where(constant, one, AddScalar(b, -1))
	da = Mul(d, Mul(b, Where(constant, Reciprocal(awayFromZero(a)), Pow(a, less))))
	base := Where(And(Equal(a, zero), GreaterEqual(b, zero)), one, a)
	db = Mul(d, Mul(y, Log(base)))
	return da, db
}

// awayFromZero is a, but a number of its sign whose square still has an inverse where it is
// smaller than that, or NaN.
func awayFromZero(a graph.Value) graph.Value {
	const least = 0x1p-60
	small := Where(Less(a, scalar(a, 0)), scalar(a, -least), scalar(a, least))
	return Where(GreaterEqual(Abs(a), scalar(a, least)), a, small)
}

func powerBoth(dst, a, b []float32) {
	for i := range dst {
		dst[i] = libm.Pow32(a[i], b[i])
	}
}

func powerRight(dst, a []float32, s float32) {
	for i := range dst {
		dst[i] = libm.Pow32(a[i], s)
	}
}

func powerLeft(dst []float32, s float32, b []float32) {
	for i := range dst {
		dst[i] = libm.Pow32(s, b[i])
	}
}

type powScalar struct{ Exponent float32 }

func (powScalar) Name() string { return "pow-scalar" }

func (o powScalar) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if p := float64(o.Exponent); math.IsNaN(p) || math.IsInf(p, 0) {
		return nil, fmt.Errorf("the exponent is %g", p)
	}
	return in[:1:1], nil
}

func (powScalar) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 60) }

// InPlace: every element depends on its own operand alone.
func (powScalar) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o powScalar) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if o.Exponent == 0 {
		return []graph.Value{Zeros(n.Graph(), n.In[0].Type())}
	}
	return []graph.Value{Mul(dout[0], Scale(PowScalar(n.In[0], o.Exponent-1), o.Exponent))}
}

func (o powScalar) tile(dst, x, _ []float32, _ []int32, _ int) { powerRight(dst, x, o.Exponent) }

// Cut is between any elements.
func (powScalar) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o powScalar) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func powScalarCPU(o powScalar, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain/16, func(lo, hi int) {
		powerRight(out[lo:hi], x[lo:hi], o.Exponent)
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, powScalarCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: powScalar{2.5}, In: []graph.Type{f(3, 5)}, Fill: fills{0: positive},
			Second: true},
		Sample{Op: powScalar{-3}, In: []graph.Type{f(17)}, Fill: fills{0: positive}, Second: true},
		Sample{Op: powScalar{0}, In: []graph.Type{f(17)}},
		Sample{Op: binary{power}, In: []graph.Type{f(3, 5), f(5)},
			Fill: fills{0: positive}, Second: true},
		Sample{Op: binary{power}, In: []graph.Type{f(3, 1), f(3, 4)},
			Fill: fills{0: positive}, Second: true},
	)
}

package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Add is a + b. Operands of all arithmetic broadcast as in NumPy: axes are
// aligned at the end, and an axis of size 1 or a missing one is repeated. They are of one
// element type, which is the result's: any but bool. Integers wrap, as two's complement does;
// 16-bit floating-point numbers are computed in f32 and rounded once.
func Add(a, b graph.Value) graph.Value { return onNumbers(binary{add}, a, b) }

// Sub is a − b.
func Sub(a, b graph.Value) graph.Value { return onNumbers(binary{sub}, a, b) }

// Mul is a · b, element by element.
func Mul(a, b graph.Value) graph.Value { return onNumbers(binary{mul}, a, b) }

// MulWide is [Mul] in f32, of operands of f32 or bf16.
func MulWide(a, b graph.Value) graph.Value {
	if a.Valid() && b.Valid() && (a.Type().DType == graph.BF16 || b.Type().DType == graph.BF16) {
		return apply(InBF16(binary{mul}, 0), a, b)
	}
	return Mul(a, b)
}

// Div is a / b, of integers towards zero. An integer divided by zero is an error of the step.
func Div(a, b graph.Value) graph.Value { return onNumbers(binary{div}, a, b) }

// Mod is what is left of a when b is taken from it so many times that it has b's sign: Python's
// a % b. An integer modulo zero is an error of the step.
func Mod(a, b graph.Value) graph.Value { return onNumbers(binary{mod}, a, b) }

// Remainder is what is left of a when b is taken from it until that has a's sign and is below b:
// C's a % b, and fmod of floating-point numbers. An integer's of zero is an error of the step.
func Remainder(a, b graph.Value) graph.Value { return onNumbers(binary{remainder}, a, b) }

// Weigh is x·w, but 0 where w is 0, whatever x is there: infinite and NaN, too. So what
// does not count cannot spoil a sum of what does.
func Weigh(x, w graph.Value) graph.Value { return apply(binary{weigh}, x, w) }

// Maximum is the larger of a and b, NaN where one is. Where they are equal, each gets
// half of the gradient.
func Maximum(a, b graph.Value) graph.Value { return onNumbers(binary{maximum}, a, b) }

// Minimum is the smaller of a and b, as Maximum is the larger.
func Minimum(a, b graph.Value) graph.Value { return onNumbers(binary{minimum}, a, b) }

// atLeast is 1 where a ≥ b and 0 elsewhere; it has no gradient.
func atLeast(a, b graph.Value) graph.Value { return onNumbers(binary{geq}, a, b) }

type binaryKind uint8

const (
	add binaryKind = iota
	sub
	mul
	div
	maximum
	geq
	minimum
	power
	weigh
	mod
	remainder
	numBinary
)

var binaryNames = [numBinary]string{"add", "sub", "mul", "div", "maximum", "at-least", "minimum",
	"pow", "weigh", "mod", "remainder"}

type binary struct{ Kind binaryKind }

func (b binary) Name() string { return binaryNames[b.Kind] }

func (b binary) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	if b.Kind >= numBinary {
		return nil, fmt.Errorf("unknown arithmetic %d", b.Kind)
	}
	t, err := jointShape(in[0], in[1])
	if err != nil {
		return nil, err
	}
	return []graph.Type{t}, nil
}

func (binary) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

// InPlace: an operand as large as the result is read just before it is
// overwritten.
func (binary) InPlace(in, out []graph.Type) []int {
	var list []int
	for i, t := range in {
		if t.SameShape(out[0]) {
			list = append(list, i)
		}
	}
	return list
}

func (b binary) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, y, d := n.In[0], n.In[1], dout[0]
	var dx, dy graph.Value
	switch b.Kind {
	case add:
		dx, dy = d, d
	case sub:
		dx, dy = d, Neg(d)
	case mul:
		dx, dy = Mul(d, y), Mul(d, x)
	case div:
		dx = Div(d, y)
		dy = Neg(Mul(dx, n.Value(0)))
	case maximum:
		dx, dy = extremeSlopes(d, atLeast(x, y), atLeast(y, x))
	case minimum:
		dx, dy = extremeSlopes(d, atLeast(y, x), atLeast(x, y))
	case power:
		dx, dy = powerSlopes(x, y, n.Value(0), d)
	case weigh:
		dx, dy = Weigh(d, y), Mul(d, x)
	case mod:
		dx, dy = d, Neg(Mul(d, Floor(Div(x, y))))
	case remainder:
		dx, dy = d, Neg(Mul(d, Trunc(Div(x, y))))
	default:
		return none(2)
	}
	return []graph.Value{reduceTo(dx, x.Type()), reduceTo(dy, y.Type())}
}

// extremeSlopes are the gradients of the operands of Maximum, given where the first is
// at least the second and where the second is at least the first: all of d for the one
// beyond the other, half where both are, and all where neither is, as one is NaN.
func extremeSlopes(d, first, second graph.Value) (dx, dy graph.Value) {
	half := Scale(Mul(first, second), 0.5)
	return Mul(d, AddScalar(Sub(half, second), 1)), Mul(d, AddScalar(Sub(half, first), 1))
}

func binaryCPU(b binary, c *kernel.Call) error {
	x, y, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	run := binaryRuns[b.Kind]
	if len(x) == len(out) && len(y) == len(out) {
		both := run.both
		if far(c) {
			both = run.far
		}
		c.Pool.For(len(out), grain, func(lo, hi int) { both(out[lo:hi], x[lo:hi], y[lo:hi]) })
		return nil
	}
	in := []tensor.Type{c.In[0].Type, c.In[1].Type}
	walk(c, c.Out[0].Type, in, func(at, n int, from, step each) {
		dst := out[at : at+n]
		switch {
		case step[0] == 1 && step[1] == 1:
			run.both(dst, x[from[0]:from[0]+n], y[from[1]:from[1]+n])
		case step[0] == 1:
			run.right(dst, x[from[0]:from[0]+n], y[from[1]])
		default: // an axis of the result is one of some operand
			run.left(dst, x[from[0]], y[from[1]:from[1]+n])
		}
	})
	return nil
}

// runs computes a run of elements: both operands vary, or one is a scalar.
type runs struct {
	both  func(dst, a, b []float32)
	far   func(dst, a, b []float32) // both, for large results
	right func(dst, a []float32, s float32)
	left  func(dst []float32, s float32, b []float32)
}

var binaryRuns = [numBinary]runs{
	add: {vec.Add, farther.Add, vec.AddScalar, swapped(vec.AddScalar)},
	sub: {vec.Sub, farther.Sub, func(dst, a []float32, s float32) {
		vec.AddScalar(dst, a,
			-s)
	}, vec.ScalarSub},
	mul:       {vec.Mul, farther.Mul, vec.MulScalar, swapped(vec.MulScalar)},
	div:       {vec.Div, farther.Div, vec.DivScalar, vec.ScalarDiv},
	maximum:   {vec.Max, farther.Max, vec.MaxScalar, swapped(vec.MaxScalar)},
	geq:       {vec.AtLeast, farther.AtLeast, vec.AtLeastScalar, vec.ScalarAtLeast},
	minimum:   {vec.Min, vec.Min, vec.MinScalar, swapped(vec.MinScalar)},
	power:     {powerBoth, powerBoth, powerRight, powerLeft},
	weigh:     {weighBoth, weighBoth, weighRight, weighLeft},
	mod:       paired(modulo[float32]),
	remainder: paired(fmod[float32]),
}

// paired are runs of a function of two numbers.
func paired(f func(a, b float32) float32) runs {
	both := func(dst, a, b []float32) {
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
	return runs{both, both, func(dst, a []float32, s float32) {
		for i := range dst {
			dst[i] = f(a[i], s)
		}
	}, func(dst []float32, s float32, b []float32) {
		for i := range dst {
			dst[i] = f(s, b[i])
		}
	}}
}

// fmod is C's, which is exact.
func fmod[T float32 | float64](a, b T) T { return T(math.Mod(float64(a), float64(b))) }

// modulo is Python's: a zero has b's sign, too.
func modulo[T float32 | float64](a, b T) T {
	switch r := fmod(a, b); {
	case r == 0:
		return T(math.Copysign(0, float64(b)))
	case (r < 0) != (b < 0):
		return r + b
	default:
		return r
	}
}

func weighBoth(dst, x, w []float32) {
	for i := range dst {
		dst[i] = weighed(x[i], w[i])
	}
}

func weighRight(dst, x []float32, w float32) {
	if w == 0 {
		clear(dst)
		return
	}
	vec.MulScalar(dst, x, w)
}

func weighLeft(dst []float32, x float32, w []float32) {
	for i := range dst {
		dst[i] = weighed(x, w[i])
	}
}

func weighed(x, w float32) float32 {
	if w == 0 {
		return 0
	}
	return x * w
}

// swapped makes an operation commute.
func swapped(right func(dst, a []float32, s float32)) func(dst []float32, s float32, b []float32) {
	return func(dst []float32, s float32, b []float32) { right(dst, b, s) }
}

func init() {
	kernel.Register(kernel.CPU, binaryCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for _, in := range [][]graph.Type{
		{f(3, 5), f(3, 5)}, {f(17), f(17)}, {f(3, 5), f()}, {f(), f(4)}, {f(2, 3, 5), f(5)}, {f(5),
			f(3, 5)},
		{f(3, 1), f(3, 5)}, {f(2, 3, 5), f(2, 1, 5)}, {f(2, 1, 4), f(3, 1)}, {f(1, 1), f(1)},
	} {
		for _, k := range []binaryKind{add, sub, mul, weigh} {
			register(Sample{Op: binary{k}, In: in, Second: true})
		}
		register(Sample{Op: binary{div}, In: in, Second: true, Fill: fills{1: positive}})
	}
	register(
		Sample{Op: binary{maximum}, In: []graph.Type{f(3, 5), f(3, 5)},
			Fill: fills{0: spaced(0), 1: spaced(0.5)}, Second: true},
		Sample{Op: binary{maximum}, In: []graph.Type{f(3, 5), f(5)},
			Fill: fills{0: spaced(0), 1: spaced(0.5)}, Second: true},
		Sample{Op: binary{geq}, In: []graph.Type{f(3, 5), f(5)}, NoGrad: []int{0, 1}},
		Sample{Op: binary{minimum}, In: []graph.Type{f(2, 3, 5), f(3, 1)},
			Fill: fills{0: spaced(0), 1: spaced(0.5)}, Second: true},
	)
	for _, k := range []binaryKind{mod, remainder} {
		register(Sample{Op: binary{k}, In: []graph.Type{f(3, 5), f(5)},
			Fill: fills{0: spaced(0.3), 1: spaced(0.5)}, Second: true, Eps: 1e-4},
			Sample{Op: binary{k}, In: []graph.Type{f(2, 1, 4), f(3, 1)},
				Fill: fills{0: spaced(0.3), 1: spaced(0.5)}, Second: true, Eps: 1e-4})
	}
}

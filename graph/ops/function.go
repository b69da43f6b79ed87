package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/libm"
)

// Abs is |x|. Its gradient is zero at 0.
func Abs(x graph.Value) graph.Value { return onNumbers(function{abs}, x) }

// Sign is 1 above 0, −1 below, and 0 at 0 and at NaN. It has no gradient.
func Sign(x graph.Value) graph.Value { return onNumbers(function{sign}, x) }

// Floor is the largest integer that is not above x; like Ceil, Trunc and Round, it
// keeps infinities, NaN and the sign of zeros, and has no gradient.
func Floor(x graph.Value) graph.Value { return onNumbers(function{floor}, x) }

// Ceil is the smallest integer that is not below x.
func Ceil(x graph.Value) graph.Value { return onNumbers(function{ceil}, x) }

// Trunc is x without its fraction.
func Trunc(x graph.Value) graph.Value { return onNumbers(function{trunc}, x) }

// Round is the nearest integer, the even one of two.
func Round(x graph.Value) graph.Value { return onNumbers(function{round}, x) }

// Reciprocal is 1/x.
func Reciprocal(x graph.Value) graph.Value { return onNumbers(function{reciprocal}, x) }

// Sin is the sine, accurate for angles of any size; NaN for infinities.
func Sin(x graph.Value) graph.Value { return onNumbers(function{sine}, x) }

// Cos is the cosine, like Sin.
func Cos(x graph.Value) graph.Value { return onNumbers(function{cosine}, x) }

// Erf is the error function.
func Erf(x graph.Value) graph.Value { return onNumbers(function{erf}, x) }

// Log1p is log(1+x), accurate where x is small.
func Log1p(x graph.Value) graph.Value { return onNumbers(function{log1p}, x) }

// Expm1 is eˣ − 1, accurate where x is small.
func Expm1(x graph.Value) graph.Value { return onNumbers(function{expm1}, x) }

// Softplus is log(1+eˣ), a smooth Relu.
func Softplus(x graph.Value) graph.Value { return onNumbers(function{softplus}, x) }

// LogSigmoid is the logarithm of Sigmoid, computed without it.
func LogSigmoid(x graph.Value) graph.Value { return Neg(Softplus(Neg(x))) }

// Silu is x·σ(x), also called swish; NaN for −Inf.
func Silu(x graph.Value) graph.Value { return onNumbers(function{silu}, x) }

type functionKind uint8

const (
	abs functionKind = iota
	sign
	floor
	ceil
	trunc
	round
	reciprocal
	sine
	cosine
	erf
	log1p
	expm1
	softplus
	silu
	numFunctions
)

// functions are what unary is, with the gradient in the table: of a result y at x whose
// gradient is d. Those without one are constant in pieces.
var functions = [numFunctions]struct {
	name  string
	run   func(dst, x []float32)
	flops int64
	slope func(x, y, d graph.Value) graph.Value
}{
	abs:   {"abs", vec.Abs, 1, func(x, _, d graph.Value) graph.Value { return Mul(d, Sign(x)) }},
	sign:  {"sign", alone(signOf), 1, nil},
	floor: {"floor", alone(rounded(math.Floor)), 1, nil},
	ceil:  {"ceil", alone(rounded(math.Ceil)), 1, nil},
	trunc: {"trunc", alone(rounded(math.Trunc)), 1, nil},
	round: {"round", alone(rounded(math.RoundToEven)), 1, nil},
	reciprocal: {"reciprocal", func(dst, x []float32) { vec.ScalarDiv(dst, 1, x) }, 1,
		func(_, y, d graph.Value) graph.Value { return Neg(Mul(d, Square(y))) }},
	sine: {"sin", alone(libm.Sin32), 20,
		func(x, _, d graph.Value) graph.Value { return Mul(d, Cos(x)) }},
	cosine: {"cos", alone(libm.Cos32), 20,
		func(x, _, d graph.Value) graph.Value { return Neg(Mul(d, Sin(x))) }},
	erf: {"erf", vec.Erf, 12, func(x, _, d graph.Value) graph.Value {
		return Scale(Mul(d, Exp(Neg(Square(x)))), float32(2/math.SqrtPi))
	}},
	log1p: {"log1p", alone(libm.Log1p32), 20,
		func(x, _, d graph.Value) graph.Value { return Div(d, AddScalar(x, 1)) }},
	expm1: {"expm1", alone(libm.Expm1of32), 20,
		func(_, y, d graph.Value) graph.Value { return Mul(d, AddScalar(y, 1)) }},
	softplus: {"softplus", alone(libm.Softplus32), 40,
		func(x, _, d graph.Value) graph.Value { return Mul(d, Sigmoid(x)) }},
	silu: {"silu", siluRun, 13,
		func(x, _, d graph.Value) graph.Value { return apply(siluGrad{}, x, d) }},
}

// alone applies a function of one number.
func alone(f func(float32) float32) func(dst, x []float32) {
	return func(dst, x []float32) {
		for i, v := range x[:len(dst)] {
			dst[i] = f(v)
		}
	}
}

func signOf(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// rounded is a function that is exact in float32.
func rounded(f func(float64) float64) func(float32) float32 {
	return func(x float32) float32 { return float32(f(float64(x))) }
}

func siluRun(dst, x []float32) {
	var room [narrow]float32
	pieces(0, len(dst), func(lo, hi int) {
		s := room[:hi-lo]
		vec.Sigmoid(s, x[lo:hi])
		vec.Mul(dst[lo:hi], x[lo:hi], s)
	})
}

type function struct{ Kind functionKind }

func (f function) Name() string { return functions[f.Kind].name }

func (f function) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if f.Kind >= numFunctions {
		return nil, fmt.Errorf("unknown function %d", f.Kind)
	}
	return in[:1:1], nil
}

func (f function) Cost(in, out []graph.Type) graph.Cost {
	return streaming(in, out, functions[f.Kind].flops)
}

// InPlace: every element depends on its own operand alone.
func (function) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (f function) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	slope := functions[f.Kind].slope
	if slope == nil {
		return none(1)
	}
	return []graph.Value{slope(n.In[0], n.Value(0), dout[0])}
}

func (f function) tile(dst, x, _ []float32, _ []int32, _ int) { functions[f.Kind].run(dst, x) }

// Cut is between any elements.
func (function) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (f function) Part(_, _ []graph.Type, _, _ int) graph.Op { return f }

func functionCPU(f function, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain/4, func(lo, hi int) { functions[f.Kind].run(out[lo:hi], x[lo:hi]) })
	return nil
}

// siluGrad is d·(s + x·(s − s²)) with s = σ(x), for operands x and d.
type siluGrad struct{}

func (siluGrad) Name() string { return "silu-grad" }

func (siluGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	if !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("operands differ in shape")
	}
	return in[:1:1], nil
}

func (siluGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 17) }

// InPlace: the gradient first, since it is seldom needed again.
func (siluGrad) InPlace(_, _ []graph.Type) []int { return []int{1, 0} }

// VJP: linear in d; in x by (s − s²)·(2 + x·(1 − 2s)).
func (siluGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, d, e := n.In[0], n.In[1], dout[0]
	s := Sigmoid(x)
	bend := AddScalar(Mul(x, AddScalar(Scale(s, -2), 1)), 2)
	dx := Mul(Mul(d, e), Mul(Sub(s, Square(s)), bend))
	return []graph.Value{dx, apply(siluGrad{}, x, e)}
}

func (siluGrad) tile(dst, x, d []float32, _ []int32, _ int) {
	var room, sum [narrow]float32
	pieces(0, len(dst), func(lo, hi int) {
		s, f := room[:hi-lo], sum[:hi-lo]
		vec.Sigmoid(s, x[lo:hi])
		vec.SigmoidGrad(f, s, x[lo:hi])
		vec.Add(f, f, s)
		vec.Mul(dst[lo:hi], d[lo:hi], f)
	})
}

// Cut is between any elements.
func (siluGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (s siluGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return s }

func siluGradCPU(s siluGrad, c *kernel.Call) error {
	x, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		s.tile(out[lo:hi], x[lo:hi], d[lo:hi], nil, lo)
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, functionCPU)
	kernel.Register(kernel.CPU, siluGradCPU)
	x := tensor.Of(graph.F32, 3, 17)
	for _, k := range []functionKind{abs, sine, cosine, erf, expm1, softplus, silu} {
		register(Sample{Op: function{k}, In: []graph.Type{x}, Fill: fills{0: offZero},
			Second: true})
	}
	for _, k := range []functionKind{reciprocal, log1p} {
		register(Sample{Op: function{k}, In: []graph.Type{x}, Fill: fills{0: positive},
			Second: true})
	}
	for _, k := range []functionKind{sign, floor, ceil, trunc, round} {
		register(Sample{Op: function{k}, In: []graph.Type{x}, NoGrad: []int{0}})
	}
	register(Sample{Op: siluGrad{}, In: []graph.Type{x, x}, Second: true})
}

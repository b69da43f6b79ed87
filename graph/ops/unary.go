package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Neg is −x, of any type but bool. What a function of one number takes is said in doc.go.
func Neg(x graph.Value) graph.Value { return onNumbers(unary{neg}, x) }

// Exp is eˣ.
func Exp(x graph.Value) graph.Value { return onNumbers(unary{exp}, x) }

// Log is the natural logarithm.
func Log(x graph.Value) graph.Value { return onNumbers(unary{logarithm}, x) }

// Sqrt is √x.
func Sqrt(x graph.Value) graph.Value { return onNumbers(unary{sqrt}, x) }

// Rsqrt is 1/√x.
func Rsqrt(x graph.Value) graph.Value { return onNumbers(unary{rsqrt}, x) }

// Square is x².
func Square(x graph.Value) graph.Value { return onNumbers(unary{square}, x) }

// Relu is max(x, 0), NaN where x is. The gradient is zero where x ≤ 0 and passes
// elsewhere, also where x is NaN.
func Relu(x graph.Value) graph.Value { return onNumbers(unary{relu}, x) }

// Tanh is the hyperbolic tangent.
func Tanh(x graph.Value) graph.Value { return onNumbers(unary{tanh}, x) }

// Sigmoid is 1/(1+e⁻ˣ).
func Sigmoid(x graph.Value) graph.Value { return onNumbers(unary{sigmoid}, x) }

// Gelu is x·Φ(x), with Φ the normal distribution function.
func Gelu(x graph.Value) graph.Value { return apply(unary{gelu}, x) }

type unaryKind uint8

const (
	neg unaryKind = iota
	exp
	logarithm
	sqrt
	rsqrt
	square
	relu
	tanh
	sigmoid
	gelu
	numUnary
)

var unaryOps = [numUnary]struct {
	name  string
	run   func(dst, x []float32)
	far   func(dst, x []float32) // for large results
	flops int64
}{
	neg:       {"neg", vec.Neg, farther.Neg, 1},
	exp:       {"exp", vec.Exp, farther.Exp, 10},
	logarithm: {"log", vec.Log, farther.Log, 10},
	sqrt:      {"sqrt", vec.Sqrt, farther.Sqrt, 1},
	rsqrt:     {"rsqrt", vec.Rsqrt, farther.Rsqrt, 2},
	square:    {"square", vec.Square, farther.Square, 1},
	relu:      {"relu", vec.Relu, farther.Relu, 1},
	tanh:      {"tanh", vec.Tanh, farther.Tanh, 12},
	sigmoid:   {"sigmoid", vec.Sigmoid, farther.Sigmoid, 12},
	gelu:      {"gelu", vec.Gelu, farther.Gelu, 15},
}

type unary struct{ Kind unaryKind }

func (u unary) Name() string { return unaryOps[u.Kind].name }

func (u unary) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if u.Kind >= numUnary {
		return nil, fmt.Errorf("unknown function %d", u.Kind)
	}
	return in[:1:1], nil
}

func (u unary) Cost(in, out []graph.Type) graph.Cost {
	return streaming(in, out, unaryOps[u.Kind].flops)
}

// InPlace: every element depends on its own operand alone.
func (unary) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP reads the result rather than the operand wherever it can, so that the
// operand can be freed, or replaced by the result.
func (u unary) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, y, d := n.In[0], n.Value(0), dout[0]
	var dx graph.Value
	switch u.Kind {
	case neg:
		dx = Neg(d)
	case exp:
		dx = Mul(d, y)
	case logarithm:
		dx = Div(d, x)
	case sqrt:
		dx = Scale(Div(d, y), 0.5)
	case rsqrt:
		dx = Scale(Mul(d, Mul(y, Square(y))), -0.5)
	case square:
		dx = Scale(Mul(d, x), 2)
	case relu, tanh, sigmoid:
		dx = apply(slope(u), y, d)
	case gelu:
		dx = apply(slope{gelu}, x, d)
	}
	return []graph.Value{dx}
}

func unaryCPU(u unary, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	run := unaryOps[u.Kind].run
	if far(c) {
		run = unaryOps[u.Kind].far
	}
	c.Pool.For(len(out), grain, func(lo, hi int) { run(out[lo:hi], x[lo:hi]) })
	return nil
}

// slope multiplies a gradient by a function's derivative in one pass. Operand 0
// is the function's result, for gelu its operand.
type slope struct{ Kind unaryKind }

var slopes = [numUnary]func(dx, y, dy []float32){
	relu: vec.ReluGrad, tanh: vec.TanhGrad, sigmoid: vec.SigmoidGrad, gelu: vec.GeluGrad,
}

var farSlopes = [numUnary]func(dx, y, dy []float32){
	relu: farther.ReluGrad, tanh: farther.TanhGrad, sigmoid: farther.SigmoidGrad,
	gelu: farther.GeluGrad,
}

func (s slope) Name() string { return unaryOps[s.Kind].name + "-grad" }

func (s slope) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	if s.Kind >= numUnary || slopes[s.Kind] == nil {
		return nil, fmt.Errorf("function %d has no fused gradient", s.Kind)
	}
	if !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("operands differ in shape")
	}
	return in[:1:1], nil
}

func (s slope) Cost(in, out []graph.Type) graph.Cost {
	return streaming(in, out, unaryOps[s.Kind].flops)
}

// InPlace: the gradient first, since it is seldom needed again.
func (slope) InPlace(_, _ []graph.Type) []int { return []int{1, 0} }

// VJP of f'(y)·d: linear in d; in y by the derivative of f'.
func (s slope) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	y, d, dd := n.In[0], n.In[1], dout[0]
	dy := graph.Value{}
	switch s.Kind {
	case tanh: // d·(1−y²)
		dy = Scale(Mul(Mul(d, dd), y), -2)
	case sigmoid: // d·y·(1−y)
		dy = Mul(Mul(d, dd), AddScalar(Scale(y, -2), 1))
	case gelu: // Φ'' by way of φ(x)·(2−x²), which is 0 long before x² overflows
		x2 := Square(Clip(y, -geluFlat, geluFlat))
		density := Scale(Exp(Scale(x2, -0.5)), float32(1/math.Sqrt(2*math.Pi)))
		dy = Mul(Mul(d, dd), Mul(density, AddScalar(Neg(x2), 2)))
	}
	return []graph.Value{dy, apply(s, y, dd)}
}

func slopeCPU(s slope, c *kernel.Call) error {
	y, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	run := slopes[s.Kind]
	if far(c) {
		run = farSlopes[s.Kind]
	}
	c.Pool.For(len(out), grain, func(lo, hi int) { run(out[lo:hi], y[lo:hi], d[lo:hi]) })
	return nil
}

// Scale is f·x, of floating-point numbers.
func Scale(x graph.Value, f float32) graph.Value {
	if isF64(x) {
		return Mul(x, scalar(x, float64(f)))
	}
	return onNumbers(affine{Factor: f}, x)
}

// AddScalar is x + s, of floating-point numbers.
func AddScalar(x graph.Value, s float32) graph.Value {
	if isF64(x) {
		return Add(x, scalar(x, float64(s)))
	}
	return onNumbers(affine{Factor: 1, Shift: s}, x)
}

func isF64(x graph.Value) bool { return x.Valid() && x.Type().DType == graph.F64 }

// affine is Factor·x + Shift; one of the two is neutral.
type affine struct{ Factor, Shift float32 }

func (a affine) Name() string {
	if a.Shift != 0 {
		return "add-scalar"
	}
	return "scale"
}

func (affine) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	return in[:1:1], nil
}

func (affine) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

// InPlace: every element depends on its own operand alone.
func (affine) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (a affine) VJP(_ *graph.Node, dout []graph.Value) []graph.Value {
	if a.Factor == 1 {
		return dout
	}
	return []graph.Value{Scale(dout[0], a.Factor)}
}

func affineCPU(a affine, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	if far(c) {
		c.Pool.For(len(out), grain, func(lo, hi int) { a.far(out[lo:hi], x[lo:hi]) })
		return nil
	}
	c.Pool.For(len(out), grain, func(lo, hi int) { a.tile(out[lo:hi], x[lo:hi], nil, nil, lo) })
	return nil
}

// far computes a range of a large result.
func (a affine) far(dst, x []float32) {
	if a.Factor == 1 {
		farther.AddScalar(dst, x, a.Shift)
		return
	}
	farther.MulScalar(dst, x, a.Factor)
}

func init() {
	kernel.Register(kernel.CPU, unaryCPU)
	kernel.Register(kernel.CPU, slopeCPU)
	kernel.Register(kernel.CPU, affineCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for _, k := range []unaryKind{neg, exp, square, tanh, sigmoid, gelu} {
		register(Sample{Op: unary{k}, In: []graph.Type{f(3, 17)}, Second: true})
	}
	for _, k := range []unaryKind{logarithm, sqrt, rsqrt} {
		register(Sample{Op: unary{k}, In: []graph.Type{f(3, 5)}, Second: true,
			Fill: fills{0: positive}})
	}
	register(
		Sample{Op: unary{relu}, In: []graph.Type{f(3, 17)}, Second: true, Fill: fills{0: offZero}},
		Sample{Op: slope{relu}, In: []graph.Type{f(17), f(17)}, NoGrad: []int{0},
			Fill: fills{0: offZero}},
		Sample{Op: slope{tanh}, In: []graph.Type{f(17), f(17)}},
		Sample{Op: slope{sigmoid}, In: []graph.Type{f(17), f(17)}},
		Sample{Op: slope{gelu}, In: []graph.Type{f(17), f(17)}},
		Sample{Op: affine{Factor: 2.5}, In: []graph.Type{f(17)}, Second: true},
		Sample{Op: affine{Factor: 1, Shift: 2.5}, In: []graph.Type{f(17)}, Second: true},
	)
}

package onnx

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

type (
	value  = graph.Value
	unary  = func(x value) value
	binary = func(a, b value) value
)

// elementwise are operators of elements.
var elementwise = each(map[string]func(n *node){
	"Identity": func(n *node) { n.out = n.in },
	"Abs":      one(ops.Abs), "Neg": one(ops.Neg), "Sign": one(ops.Sign),
	"Relu": one(func(x value) value { return ops.Maximum(x, like(x, 0)) }),
	"Exp":  wide(ops.Exp), "Log": wide(ops.Log), "Sqrt": wide(ops.Sqrt),
	"Sigmoid": wide(ops.Sigmoid), "Tanh": wide(ops.Tanh), "Erf": wide(ops.Erf),
	"Sin": wide(ops.Sin), "Cos": wide(ops.Cos), "Floor": wide(ops.Floor),
	"Ceil": wide(ops.Ceil), "Round": wide(ops.Round), "Reciprocal": wide(ops.Reciprocal),
	"Softplus": wide(ops.Softplus), "Mish": wide(func(x value) value {
		return ops.Mul(x, ops.Tanh(ops.Softplus(x)))
	}),
	"Softsign": wide(func(x value) value { return ops.Div(x, ops.AddScalar(ops.Abs(x), 1)) }),
	"HardSwish": wide(func(x value) value {
		return ops.Mul(x, ops.Clip(ops.AddScalar(ops.Scale(x, 1.0/6), 0.5), 0, 1))
	}),
	"Elu": withAlpha(1, func(x value, a float32) value { return negative(x, elu(x, a)) }),
	"Celu": withAlpha(1, func(x value, a float32) value {
		return negative(x, elu(ops.Scale(x, 1/a), a))
	}),
	"LeakyRelu": withAlpha(0.01, func(x value, a float32) value {
		return negative(x, ops.Scale(x, a))
	}),
	"ThresholdedRelu": withAlpha(1, thresholded),
	"Swish": withAlpha(1, func(x value, a float32) value {
		return ops.Mul(x, ops.Sigmoid(ops.Scale(x, a)))
	}),
	"SwiGLU": swiGLU, "Selu": selu, "HardSigmoid": hardSigmoid, "Shrink": shrink, "Gelu": gelu,
	"PRelu": func(n *node) {
		x, slope := n.wide(0), n.wide(1)
		n.give(n.narrow(negative(x, ops.Mul(x, slope))))
	},

	"Add": two(ops.Add), "Sub": two(ops.Sub), "Mul": two(ops.Mul), "Div": two(ops.Div),
	"Pow": pow, "Clip": clip,
	"Max": fold(ops.Maximum), "Min": fold(ops.Minimum), "Sum": fold(ops.Add), "Mean": mean,
	"Equal": two(ops.Equal), "Less": two(ops.Less), "Greater": two(ops.Greater),
	"LessOrEqual": two(ops.LessEqual), "GreaterOrEqual": two(ops.GreaterEqual),
	"And": two(ops.And), "Or": two(ops.Or), "Xor": two(ops.Xor), "Not": one(ops.Not),
	"IsNaN": one(ops.IsNaN), "IsInf": isInf, "Mod": mod,
	"BitwiseAnd": two(ops.BitAnd), "BitwiseOr": two(ops.BitOr), "BitwiseXor": two(ops.BitXor),
	"BitwiseNot": one(ops.BitNot), "BitShift": bitShift, "BitCast": bitCast,
	"Tan":  wide(func(x value) value { return ops.Div(ops.Sin(x), ops.Cos(x)) }),
	"Atan": wide(arcTangent), "Asin": wide(arcSine),
	"Acos": wide(func(x value) value { return ops.Sub(like(x, math.Pi/2), arcSine(x)) }),
	"Sinh": wide(hyperbolicSine),
	"Cosh": wide(func(x value) value {
		return ops.Scale(ops.Add(ops.Exp(x), ops.Exp(ops.Neg(x))), 0.5)
	}),
	"Asinh": wide(areaSine), "Acosh": wide(areaCosine), "Atanh": wide(areaTangent),
	"Where": where, "Cast": cast, "CastLike": castLike,
})

func one(f unary) func(n *node) { return func(n *node) { n.give(f(n.x(0))) } }

func two(f binary) func(n *node) { return func(n *node) { n.give(f(n.x(0), n.x(1))) } }

// wide is a function of f32 that takes numbers of 16 bits too, and rounds once.
func wide(f unary) func(n *node) {
	return func(n *node) { n.give(n.narrow(f(n.wide(0)))) }
}

// withAlpha is a function with a parameter, which has a default.
func withAlpha(otherwise float32, f func(x value, alpha float32) value) func(n *node) {
	return func(n *node) { n.give(n.narrow(f(n.wide(0), n.float("alpha", otherwise)))) }
}

// scalarOf is a number of an element type.
func scalarOf(g *graph.Graph, d graph.DType, v float64) value {
	one := tensor.New(tensor.Of(tensor.F64))
	one.F64()[0] = v
	return g.Constant("number", one.To(d))
}

// like is a number of x's type.
func like(x value, v float64) value { return scalarOf(x.Graph(), x.Type().DType, v) }

// negative is x where it is at least 0, and y elsewhere.
func negative(x, y value) value { return ops.Where(ops.Less(x, like(x, 0)), y, x) }

func elu(x value, alpha float32) value {
	return ops.Scale(ops.Expm1(ops.Minimum(x, like(x, 0))), alpha)
}

func thresholded(x value, alpha float32) value {
	return ops.Where(ops.Greater(x, like(x, float64(alpha))), x, like(x, 0))
}

func selu(n *node) {
	alpha, gamma := n.float("alpha", 1.67326319217681884765625),
		n.float("gamma", 1.05070102214813232421875)
	x := n.wide(0)
	n.give(n.narrow(ops.Scale(negative(x, elu(x, alpha)), gamma)))
}

func hardSigmoid(n *node) {
	alpha, beta := n.float("alpha", 0.2), n.float("beta", 0.5)
	n.give(n.narrow(ops.Clip(ops.AddScalar(ops.Scale(n.wide(0), alpha), beta), 0, 1)))
}

func shrink(n *node) {
	bias, lambd := n.float("bias", 0), float64(n.float("lambd", 0.5))
	x := n.x(0)
	b := like(x, float64(bias))
	y := ops.Where(ops.Greater(x, like(x, lambd)), ops.Sub(x, b), like(x, 0))
	n.give(ops.Where(ops.Less(x, like(x, -lambd)), ops.Add(x, b), y))
}

func gelu(n *node) {
	form := n.text("approximate", "none")
	n.only("approximate", form, "none", "tanh")
	f := ops.Gelu
	if form == "tanh" {
		f = ops.GeluTanh
	}
	n.give(n.narrow(f(n.wide(0))))
}

// pow has the type of its base. It multiplies where the exponent is known to be 2 or 3, as that of
// squares in a norm, which takes a small part of the time.
func pow(n *node) {
	x := n.x(0)
	if p := n.in[1].known; p != nil && p.Type.Elems() == 1 && p.Type.Rank() <= x.Type().Rank() &&
		x.Type().DType == graph.F32 {
		if e := n.floats(1)[0]; e == 2 || e == 3 {
			n.give(ops.PowScalar(x, float32(e)))
			return
		}
	}
	n.give(ops.Pow(x, ops.Cast(n.x(1), x.Type().DType)))
}

func clip(n *node) {
	x := n.x(0)
	lo, hi := n.in0(1), n.in0(2)
	if n.version() < 11 {
		lo = like(x, float64(n.float("min", -math.MaxFloat32)))
		hi = like(x, float64(n.float("max", math.MaxFloat32)))
	}
	if lo.Valid() {
		x = ops.Maximum(x, lo)
	}
	if hi.Valid() {
		x = ops.Minimum(x, hi)
	}
	n.give(x)
}

// fold joins all operands, one after the other.
func fold(f binary) func(n *node) {
	return func(n *node) {
		y := n.x(0)
		for _, x := range n.xs(1) {
			y = f(y, x)
		}
		n.give(y)
	}
}

func mean(n *node) {
	y := n.wide(0)
	for i := 1; i < len(n.in); i++ {
		y = ops.Add(y, n.wide(i))
	}
	n.give(n.narrow(ops.Div(y, like(y, float64(len(n.in))))))
}

// where is one of two elements. Zeros in place of NaN in a Softmax are how PyTorch's attention
// writes one that may have rows with nothing to choose from: one that gives zeros there itself has
// a gradient, too, where that of NaN is NaN.
func where(n *node) {
	c, a, b := n.x(0), n.x(1), n.x(2)
	if c.Node.OpName() == "not-equal" && c.Node.In[0] == b && c.Node.In[1] == b &&
		b.Node.OpName() == "softmax" && zeros(n.in[1]) {
		x := ops.MaskedSoftmax(b.Node.In[0])
		c, b = ops.IsNaN(x), x
	}
	n.give(ops.Where(c, a, b))
}

// zeros reports whether an operand is known to be zeros.
func zeros(o operand) bool {
	return o.known != nil && !slices.ContainsFunc(o.known.To(tensor.F64).F64(),
		func(v float64) bool { return v != 0 })
}

func cast(n *node) {
	n.text("round_mode", "")
	n.int("saturate", 1) // of 8-bit floating-point numbers alone
	to, err := dtype(n.int("to", 0))
	if err != nil {
		fail("%w", err)
	}
	n.give(ops.Cast(n.x(0), to))
}

func castLike(n *node) {
	n.text("round_mode", "")
	n.int("saturate", 1)
	n.give(ops.Cast(n.x(0), n.x(1).Type().DType))
}

// swiGLU is a Swish of one operand that another is multiplied by.
func swiGLU(n *node) {
	x, alpha := n.wide(0), n.float("alpha", 1)
	n.give(n.narrow(ops.Mul(ops.Mul(x, ops.Sigmoid(ops.Scale(x, alpha))), n.wide(1))))
}

// isInf looks for infinities of either sign, or of one.
func isInf(n *node) {
	x := n.wide(0)
	up, down := n.flag("detect_positive", true), n.flag("detect_negative", true)
	high, low := ops.Equal(x, like(x, math.Inf(1))), ops.Equal(x, like(x, math.Inf(-1)))
	switch {
	case up && down:
		n.give(ops.Or(high, low))
	case up:
		n.give(high)
	case down:
		n.give(low)
	default:
		n.give(ops.And(high, low)) // nowhere
	}
}

func mod(n *node) {
	if n.flag("fmod", false) {
		n.give(ops.Remainder(n.x(0), n.x(1)))
		return
	}
	n.give(ops.Mod(n.x(0), n.x(1)))
}

func bitShift(n *node) {
	to := n.text("direction", "")
	n.only("direction", to, "LEFT", "RIGHT")
	if to == "LEFT" {
		n.give(ops.ShiftLeft(n.x(0), n.x(1)))
		return
	}
	n.give(ops.ShiftRight(n.x(0), n.x(1)))
}

func bitCast(n *node) {
	to, err := dtype(n.int("to", 0))
	if err != nil {
		fail("%w", err)
	}
	n.give(ops.BitCast(n.x(0), to))
}

package gomlx

import (
	"math"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
)

// functions are the operations on every element of one value.
type functions struct{ *computation }

// apply makes a function of x, whose element type GoMLX's rules must allow.
func (c functions) apply(t backends.OpType, x backends.Op, f func(graph.Value) graph.Value) (
	backends.Op, error) {
	v, err := c.values(t, x)
	if err != nil {
		return nil, err
	}
	if shapeinference.StandardUnaryOperations.Has(t) {
		if _, err := shapeinference.UnaryOp(t, shapeOf(v[0].Type())); err != nil {
			return nil, err
		}
	}
	return c.made(t, f(v[0]), nil)
}

// Abs is |x|.
func (c functions) Abs(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeAbs, x, ops.Abs)
}

// Ceil is the smallest integer not below x.
func (c functions) Ceil(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeCeil, x, ops.Ceil)
}

// Cos is the cosine.
func (c functions) Cos(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeCos, x, ops.Cos)
}

// Erf is the error function.
func (c functions) Erf(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeErf, x, wide(hlo.Erf, ops.Erf))
}

// Exp is eˣ.
func (c functions) Exp(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeExp, x, ops.Exp)
}

// Floor is the largest integer not above x.
func (c functions) Floor(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeFloor, x, ops.Floor)
}

// Log is the natural logarithm.
func (c functions) Log(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLog, x, ops.Log)
}

// Logistic is 1/(1+e⁻ˣ).
func (c functions) Logistic(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLogistic, x, ops.Sigmoid)
}

// Neg is −x.
func (c functions) Neg(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeNeg, x, ops.Neg)
}

// Round is the nearest integer, the even one of two.
func (c functions) Round(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeRound, x, ops.Round)
}

// Rsqrt is 1/√x.
func (c functions) Rsqrt(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeRsqrt, x, ops.Rsqrt)
}

// Sin is the sine.
func (c functions) Sin(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeSin, x, ops.Sin)
}

// Sqrt is √x.
func (c functions) Sqrt(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeSqrt, x, ops.Sqrt)
}

// Tanh is the hyperbolic tangent.
func (c functions) Tanh(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeTanh, x, ops.Tanh)
}

// Expm1 is eˣ−1.
func (c functions) Expm1(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeExpm1, x, wide(hlo.Expm1, ops.Expm1))
}

// Log1p is log(1+x).
func (c functions) Log1p(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLog1p, x, wide(hlo.Log1p, ops.Log1p))
}

// Sign is 1, −1, and what is neither above nor below zero as it is.
func (c functions) Sign(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeSign, x, sign)
}

// IsFinite is where x is neither infinite nor NaN.
func (c functions) IsFinite(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeIsFinite, x, finite)
}

// IsNaN is where x is NaN.
func (c functions) IsNaN(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeIsNaN, x, isNaN)
}

// LogicalNot is where x is false.
func (c functions) LogicalNot(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLogicalNot, x, ops.Not)
}

// BitwiseNot is the bits that x has not.
func (c functions) BitwiseNot(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeBitwiseNot, x, ops.BitNot)
}

// BitCount is how many bits are one.
func (c functions) BitCount(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeBitCount, x, hlo.BitCount)
}

// Clz is how many bits before the first one are zero.
func (c functions) Clz(x backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeClz, x, hlo.LeadingZeros)
}

// wide is a function of f64, and another of what else there is.
func wide(f hlo.Function, other func(graph.Value) graph.Value) func(graph.Value) graph.Value {
	return func(x graph.Value) graph.Value {
		if x.Type().DType == graph.F64 {
			return f.Apply(x)
		}
		return other(x)
	}
}

// sign keeps NaN and the sign of zeros.
func sign(x graph.Value) graph.Value {
	if !x.Type().DType.Floating() {
		return ops.Sign(x)
	}
	zero := scalar(x, 0)
	return ops.Where(ops.Or(ops.Less(x, zero), ops.Greater(x, zero)), ops.Sign(x), x)
}

// finite is where |x| is below infinity, which NaN is not.
func finite(x graph.Value) graph.Value {
	return ops.Less(ops.Abs(x), scalar(x, math.Inf(1)))
}

// isNaN is where x is not itself.
func isNaN(x graph.Value) graph.Value { return ops.NotEqual(x, x) }

// scalar is a constant of x's element type.
func scalar(x graph.Value, value float64) graph.Value {
	v := tensor.New(graph.Of(graph.F64))
	v.F64()[0] = value
	return x.Graph().Constant("scalar", v.To(x.Type().DType))
}

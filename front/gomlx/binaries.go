package gomlx

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// binaries are the operations on elements of two values, or more.
type binaries struct{ *computation }

// apply makes an operation on x and y, whose types GoMLX's rules must allow.
func (c binaries) apply(t backends.OpType, x, y backends.Op,
	f func(a, b graph.Value) graph.Value) (backends.Op, error) {
	v, err := c.values(t, x, y)
	if err != nil {
		return nil, err
	}
	a, b := shapeOf(v[0].Type()), shapeOf(v[1].Type())
	switch {
	case shapeinference.StandardBinaryOperations.Has(t):
		_, err = shapeinference.BinaryOp(t, a, b)
	case a.DType != b.DType || !a.DType.IsInt():
		err = fmt.Errorf("%s and %s, want integers of one type", a, b)
	}
	if err != nil {
		return nil, err
	}
	return c.made(t, f(v[0], v[1]), nil)
}

// Add is x + y.
func (c binaries) Add(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeAdd, x, y, ops.Add)
}

// Div is x / y.
func (c binaries) Div(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeDiv, x, y, ops.Div)
}

// Max is the larger of x and y, NaN where one is.
func (c binaries) Max(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeMax, x, y, larger)
}

// Min is the smaller of x and y.
func (c binaries) Min(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeMin, x, y, smaller)
}

// Mul is x · y.
func (c binaries) Mul(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeMul, x, y, c.multiply)
}

// Pow is x to the power of y.
func (c binaries) Pow(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypePow, x, y, ops.Pow)
}

// Rem is what is left of x / y, with x's sign.
func (c binaries) Rem(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeRem, x, y, ops.Remainder)
}

// Sub is x − y.
func (c binaries) Sub(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeSub, x, y, ops.Sub)
}

// BitwiseAnd is the bits that both have.
func (c binaries) BitwiseAnd(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeBitwiseAnd, x, y, ops.BitAnd)
}

// BitwiseOr is the bits that one has, or both.
func (c binaries) BitwiseOr(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeBitwiseOr, x, y, ops.BitOr)
}

// BitwiseXor is the bits that exactly one has.
func (c binaries) BitwiseXor(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeBitwiseXor, x, y, ops.BitXor)
}

// LogicalAnd is where both are true.
func (c binaries) LogicalAnd(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLogicalAnd, x, y, ops.And)
}

// LogicalOr is where one is true, or both.
func (c binaries) LogicalOr(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLogicalOr, x, y, ops.Or)
}

// LogicalXor is where exactly one is true.
func (c binaries) LogicalXor(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLogicalXor, x, y, ops.Xor)
}

// ShiftLeft is x with its bits y places further up.
func (c binaries) ShiftLeft(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeShiftLeft, x, y, ops.ShiftLeft)
}

// ShiftRightArithmetic is x with its bits y places further down, and its sign above.
func (c binaries) ShiftRightArithmetic(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeShiftRightArithmetic, x, y, arithmeticShift)
}

// ShiftRightLogical is x with its bits y places further down, and zeros above.
func (c binaries) ShiftRightLogical(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeShiftRightLogical, x, y, logicalShift)
}

// larger is the maximum, of truth values too.
func larger(a, b graph.Value) graph.Value {
	if a.Type().DType == graph.Bool {
		return ops.Or(a, b)
	}
	return ops.Maximum(a, b)
}

// smaller is the minimum, of truth values too.
func smaller(a, b graph.Value) graph.Value {
	if a.Type().DType == graph.Bool {
		return ops.And(a, b)
	}
	return ops.Minimum(a, b)
}

// logicalShift shifts bits as those of unsigned integers, and arithmeticShift as those of signed
// ones, whichever they are.
func logicalShift(a, b graph.Value) graph.Value {
	return shiftAs(a, b, map[graph.DType]graph.DType{graph.I8: graph.U8, graph.I16: graph.U16,
		graph.I32: graph.U32, graph.I64: graph.U64})
}

// arithmeticShift shifts bits as those of signed integers.
func arithmeticShift(a, b graph.Value) graph.Value {
	return shiftAs(a, b, map[graph.DType]graph.DType{graph.U8: graph.I8, graph.U16: graph.I16,
		graph.U32: graph.I32, graph.U64: graph.I64})
}

// shiftAs shifts bits to the right as those of another element type, if there is one.
func shiftAs(a, b graph.Value, as map[graph.DType]graph.DType) graph.Value {
	have := a.Type().DType
	to, ok := as[have]
	if !ok {
		return ops.ShiftRight(a, b)
	}
	return ops.BitCast(ops.ShiftRight(ops.BitCast(a, to), ops.BitCast(b, to)), have)
}

// Clamp is x, but low where it is below and high where it is above.
func (c binaries) Clamp(low, x, high backends.Op) (backends.Op, error) {
	v, err := c.values(backends.OpTypeClamp, low, x, high)
	if err != nil {
		return nil, err
	}
	return c.made(backends.OpTypeClamp, ops.Minimum(ops.Maximum(v[1], v[0]), v[2]), nil)
}

// Where is x where a truth value is true, and y elsewhere.
func (c binaries) Where(condition, x, y backends.Op) (backends.Op, error) {
	const t = backends.OpTypeWhere
	v, err := c.values(t, condition, x, y)
	if err != nil {
		return nil, err
	}
	_, err = shapeinference.WhereOp(shapeOf(v[0].Type()), shapeOf(v[1].Type()),
		shapeOf(v[2].Type()))
	if err != nil {
		return nil, err
	}
	return c.made(t, ops.Where(v[0], v[1], v[2]), nil)
}

// ConvertDType is x in another element type.
func (c binaries) ConvertDType(x backends.Op, to dtypes.DType) (backends.Op, error) {
	const t = backends.OpTypeConvertDType
	v, err := c.values(t, x)
	if err != nil {
		return nil, err
	}
	d, err := elementOf(to)
	if err != nil {
		return c.made(t, graph.Value{}, err)
	}
	return c.made(t, ops.Cast(v[0], d), nil)
}

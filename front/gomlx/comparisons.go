package gomlx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
)

// comparisons are the operations whose results are truth values. Those of a total order have −NaN
// below all numbers, −0 below +0, and NaN above all.
type comparisons struct{ *computation }

// apply compares x and y, whose types GoMLX's rules must allow.
func (c comparisons) apply(t backends.OpType, x, y backends.Op,
	f func(a, b graph.Value) graph.Value) (backends.Op, error) {
	v, err := c.values(t, x, y)
	if err != nil {
		return nil, err
	}
	a, b := shapeOf(v[0].Type()), shapeOf(v[1].Type())
	if _, err := shapeinference.ComparisonOp(t, a, b); err != nil {
		return nil, err
	}
	return c.made(t, f(v[0], v[1]), nil)
}

// total makes a comparison one of keys in a total order.
func total(f func(a, b graph.Value) graph.Value) func(a, b graph.Value) graph.Value {
	return func(a, b graph.Value) graph.Value { return f(key(a), key(b)) }
}

// key is integers in the total order of floating-point numbers: their bits, of which those below
// the sign are turned over where it is set. Integers are their own.
func key(x graph.Value) graph.Value {
	signed, bits := graph.I32, 31
	switch x.Type().DType {
	case graph.F32:
	case graph.F64:
		signed, bits = graph.I64, 63
	case graph.F16, graph.BF16:
		signed, bits = graph.I16, 15
	default:
		return x
	}
	i := ops.BitCast(x, signed)
	below := ops.BitNot(ops.ShiftLeft(scalar(i, 1), scalar(i, float64(bits))))
	return ops.BitXor(i, ops.BitAnd(ops.ShiftRight(i, scalar(i, float64(bits))), below))
}

// Equal is where x = y.
func (c comparisons) Equal(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeEqual, x, y, ops.Equal)
}

// EqualTotalOrder is where x = y in the total order.
func (c comparisons) EqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeEqualTotalOrder, x, y, total(ops.Equal))
}

// NotEqual is where x ≠ y.
func (c comparisons) NotEqual(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeNotEqual, x, y, ops.NotEqual)
}

// NotEqualTotalOrder is where x ≠ y in the total order.
func (c comparisons) NotEqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeNotEqualTotalOrder, x, y, total(ops.NotEqual))
}

// GreaterOrEqual is where x ≥ y.
func (c comparisons) GreaterOrEqual(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeGreaterOrEqual, x, y, ops.GreaterEqual)
}

// GreaterOrEqualTotalOrder is where x ≥ y in the total order.
func (c comparisons) GreaterOrEqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeGreaterOrEqualTotalOrder, x, y, total(ops.GreaterEqual))
}

// GreaterThan is where x > y.
func (c comparisons) GreaterThan(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeGreaterThan, x, y, ops.Greater)
}

// GreaterThanTotalOrder is where x > y in the total order.
func (c comparisons) GreaterThanTotalOrder(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeGreaterThanTotalOrder, x, y, total(ops.Greater))
}

// LessOrEqual is where x ≤ y.
func (c comparisons) LessOrEqual(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLessOrEqual, x, y, ops.LessEqual)
}

// LessOrEqualTotalOrder is where x ≤ y in the total order.
func (c comparisons) LessOrEqualTotalOrder(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLessOrEqualTotalOrder, x, y, total(ops.LessEqual))
}

// LessThan is where x < y.
func (c comparisons) LessThan(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLessThan, x, y, ops.Less)
}

// LessThanTotalOrder is where x < y in the total order.
func (c comparisons) LessThanTotalOrder(x, y backends.Op) (backends.Op, error) {
	return c.apply(backends.OpTypeLessThanTotalOrder, x, y, total(ops.Less))
}

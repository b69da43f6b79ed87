package gomlx

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// reductions are the operations that put the elements of some axes together, all of them if none
// are named.
type reductions struct{ *computation }

// apply makes a reduction, whose operand's element type is one of those that ok says.
func (c reductions) apply(t backends.OpType, x backends.Op, how hlo.How, axes []int,
	ok func(graph.DType) bool) (backends.Op, error) {
	v, err := c.values(t, x)
	if err != nil {
		return nil, err
	}
	if d := v[0].Type().DType; !ok(d) {
		return c.made(t, graph.Value{}, fmt.Errorf("of %s", shapeOf(v[0].Type())))
	}
	axes, err = axesOf(v[0].Type(), axes)
	if err != nil {
		return c.made(t, graph.Value{}, err)
	}
	if how == hlo.Sum {
		return c.made(t, c.sum(v[0], axes), nil)
	}
	return c.made(t, reduce(how, v[0], axes), nil)
}

func anything(graph.DType) bool    { return true }
func isNumber(d graph.DType) bool  { return d != graph.Bool }
func isTruth(d graph.DType) bool   { return d == graph.Bool }
func isInteger(d graph.DType) bool { return d != graph.Bool && !d.Floating() }

// axesOf are axes in order, all if none are given.
func axesOf(t graph.Type, axes []int) ([]int, error) {
	var out []int
	for i := range t.Rank() {
		if len(axes) == 0 || slices.Contains(axes, i) {
			out = append(out, i)
		}
	}
	if len(axes) > 0 && len(out) != len(axes) {
		return nil, fmt.Errorf("axes %v of %s", axes, t)
	}
	return out, nil
}

// reduce puts the elements of axes together: by graph/ops, where it has it.
func reduce(how hlo.How, x graph.Value, axes []int) graph.Value {
	d := x.Type().DType
	if len(axes) == 0 {
		return x
	}
	truth, some := d == graph.Bool, x.Type().Elems() > 0
	switch {
	case how == hlo.Sum:
		return ops.Sum(x, axes...)
	case how == hlo.Product:
		return ops.Prod(x, axes...)
	case how == hlo.Max && some:
		return ops.Max(x, axes...)
	case how == hlo.Min && some:
		return ops.Min(x, axes...)
	case how == hlo.And && truth:
		return ops.All(x, axes...)
	case how == hlo.Or && truth:
		return ops.Any(x, axes...)
	case small(d):
		return ops.Cast(hlo.Fold(how, lastAxis(ops.Cast(x, graph.F32), axes)), d)
	}
	return hlo.Fold(how, lastAxis(x, axes))
}

// small reports whether elements are computed in f32.
func small(d graph.DType) bool { return d == graph.F16 || d == graph.BF16 }

// lastAxis is x with some axes, in their order, as one, the last.
func lastAxis(x graph.Value, axes []int) graph.Value {
	var order, sizes []int
	for i := range x.Type().Rank() {
		if !slices.Contains(axes, i) {
			order = append(order, i)
			sizes = append(sizes, x.Type().Size(i))
		}
	}
	n := 1
	for _, a := range axes {
		n *= x.Type().Size(a)
	}
	return ops.ReshapeSizes(ordered(x, append(order, axes...)), append(sizes, n)...)
}

// ReduceSum adds up x.
func (c reductions) ReduceSum(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceSum, x, hlo.Sum, axes, isNumber)
}

// ReduceProduct multiplies x.
func (c reductions) ReduceProduct(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceProduct, x, hlo.Product, axes, isNumber)
}

// ReduceMax is the largest element, NaN if one is.
func (c reductions) ReduceMax(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceMax, x, hlo.Max, axes, anything)
}

// ReduceMin is the smallest element, NaN if one is.
func (c reductions) ReduceMin(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceMin, x, hlo.Min, axes, anything)
}

// ReduceBitwiseAnd is the bits that all elements have.
func (c reductions) ReduceBitwiseAnd(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceBitwiseAnd, x, hlo.And, axes, isInteger)
}

// ReduceBitwiseOr is the bits that some element has.
func (c reductions) ReduceBitwiseOr(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceBitwiseOr, x, hlo.Or, axes, isInteger)
}

// ReduceBitwiseXor is the bits that an odd number of elements have.
func (c reductions) ReduceBitwiseXor(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceBitwiseXor, x, hlo.Xor, axes, isInteger)
}

// ReduceLogicalAnd is whether all elements are true.
func (c reductions) ReduceLogicalAnd(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceLogicalAnd, x, hlo.And, axes, isTruth)
}

// ReduceLogicalOr is whether some element is true.
func (c reductions) ReduceLogicalOr(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceLogicalOr, x, hlo.Or, axes, isTruth)
}

// ReduceLogicalXor is whether an odd number of elements are true.
func (c reductions) ReduceLogicalXor(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReduceLogicalXor, x, hlo.Xor, axes, isTruth)
}

// ArgMinMax is where the smallest element along an axis is, or the largest: the first of equals, or
// the first NaN.
func (c reductions) ArgMinMax(x backends.Op, axis int, to dtypes.DType, least bool) (
	backends.Op, error) {
	const t = backends.OpTypeArgMinMax
	v, err := c.values(t, x)
	if err != nil {
		return nil, err
	}
	d, err := elementOf(to)
	if err != nil || axis < 0 || axis >= v[0].Type().Rank() || d == graph.Bool {
		return c.made(t, graph.Value{}, cmp.Or(err, fmt.Errorf("axis %d of %s as %s", axis,
			v[0].Type(), to)))
	}
	if least {
		return c.made(t, ops.Cast(ops.ArgMin(v[0], axis), d), nil)
	}
	return c.made(t, ops.Cast(ops.ArgMax(v[0], axis), d), nil)
}

package gomlx

import (
	"cmp"
	"fmt"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// moves are the operations that only move elements, or make them of nothing.
type moves struct{ *computation }

// apply makes an operation of one value, after a check of its shape.
func (c moves) apply(t backends.OpType, x backends.Op, rule func(shapes.Shape) error,
	f func(graph.Value) graph.Value) (backends.Op, error) {
	v, err := c.values(t, x)
	if err != nil {
		return nil, err
	}
	if err := rule(shapeOf(v[0].Type())); err != nil {
		return nil, err
	}
	return c.made(t, f(v[0]), nil)
}

// Reshape is x's elements with other axes.
func (c moves) Reshape(x backends.Op, sizes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReshape, x, func(s shapes.Shape) error {
		_, err := shapeinference.ReshapeOp(s, sizes)
		return err
	}, func(v graph.Value) graph.Value { return ops.ReshapeSizes(v, sizes...) })
}

// Transpose orders x's axes anew.
func (c moves) Transpose(x backends.Op, order ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeTranspose, x, func(s shapes.Shape) error {
		_, err := shapeinference.TransposeOp(s, order)
		return err
	}, func(v graph.Value) graph.Value { return ordered(v, order) })
}

// ordered is x with its axes in an order, which may be the one they have.
func ordered(x graph.Value, order []int) graph.Value {
	for i, a := range order {
		if i != a {
			return ops.Transpose(x, order...)
		}
	}
	return x
}

// BroadcastInDim repeats x until it has a shape, of which its axes are those listed.
func (c moves) BroadcastInDim(x backends.Op, shape shapes.Shape, axes []int) (backends.Op, error) {
	return c.apply(backends.OpTypeBroadcastInDim, x, func(s shapes.Shape) error {
		return shapeinference.BroadcastInDimOp(s, shape, axes)
	}, func(v graph.Value) graph.Value {
		return c.repeat(among(v, shape.Rank(), axes), shape.Dimensions)
	})
}

// among is x with axes of size 1 beside its own, which are those listed of so many.
func among(x graph.Value, rank int, axes []int) graph.Value {
	sizes := make([]int, rank)
	for i := range sizes {
		sizes[i] = 1
	}
	for i, a := range axes {
		sizes[a] = x.Type().Size(i)
	}
	return ops.ReshapeSizes(x, sizes...)
}

// Concatenate joins values along an axis.
func (c moves) Concatenate(axis int, operands ...backends.Op) (backends.Op, error) {
	const t = backends.OpTypeConcatenate
	v, err := c.values(t, operands...)
	if err != nil {
		return nil, err
	}
	var list []shapes.Shape
	for _, x := range v {
		list = append(list, shapeOf(x.Type()))
	}
	if _, err := shapeinference.ConcatenateOp(list, axis); err != nil {
		return nil, err
	}
	if len(v) == 1 {
		return operands[0], nil
	}
	return c.made(t, ops.Concat(axis, v...), nil)
}

// Slice is some elements along every axis: those from starts on and below limits, by steps, which
// are 1 if there are none.
func (c moves) Slice(x backends.Op, starts, limits, steps []int) (backends.Op, error) {
	return c.apply(backends.OpTypeSlice, x, func(s shapes.Shape) error {
		_, err := shapeinference.SliceOp(s, starts, limits, steps)
		return err
	}, func(v graph.Value) graph.Value {
		for a, lo := range starts {
			switch step := at(steps, a, 1); {
			case step != 1:
				v = ops.SliceStep(v, a, lo, limits[a], step)
			case lo != 0 || limits[a] != v.Type().Size(a):
				v = ops.Slice(v, a, lo, limits[a])
			}
		}
		return v
	})
}

// at is element i of x, or a default if there are none.
func at(x []int, i, none int) int {
	if len(x) == 0 {
		return none
	}
	return x[i]
}

// Reverse is x with the elements of some axes in the opposite order.
func (c moves) Reverse(x backends.Op, axes ...int) (backends.Op, error) {
	return c.apply(backends.OpTypeReverse, x, none, func(v graph.Value) graph.Value {
		if len(axes) == 0 {
			return v
		}
		return ops.Reverse(v, axes...)
	})
}

// none is the rule of what takes all shapes.
func none(shapes.Shape) error { return nil }

// Pad puts elements around x's, and between them.
func (c moves) Pad(x, fill backends.Op, axes ...backends.PadAxis) (backends.Op, error) {
	const t = backends.OpTypePad
	v, err := c.values(t, x, fill)
	if err != nil {
		return nil, err
	}
	rank := v[0].Type().Rank()
	if len(axes) > rank {
		return c.made(t, graph.Value{}, fmt.Errorf("%d axes of %s", len(axes), v[0].Type()))
	}
	lo, hi, inner := make([]int, rank), make([]int, rank), make([]int, rank)
	for i, a := range axes {
		lo[i], hi[i], inner[i] = a.Start, a.End, a.Interior
	}
	return c.made(t, hlo.Pad(v[0], v[1], lo, hi, inner), nil)
}

// Iota is the index along an axis, for every element of a shape.
func (c moves) Iota(shape shapes.Shape, axis int) (backends.Op, error) {
	const t = backends.OpTypeIota
	if _, err := c.values(t); err != nil {
		return nil, err
	}
	d, err := elementOf(shape.DType)
	if err != nil || d == graph.Bool {
		return c.made(t, graph.Value{}, cmp.Or(err, fmt.Errorf("indices as %s", shape)))
	}
	return c.made(t, ops.Cast(hlo.Iota(c.graph, shape.Dimensions, axis), d), nil)
}

// Bitcast is x's bits as elements of another type.
func (c moves) Bitcast(x backends.Op, to dtypes.DType) (backends.Op, error) {
	d, err := elementOf(to)
	if err != nil {
		return c.made(backends.OpTypeBitcast, graph.Value{}, err)
	}
	return c.apply(backends.OpTypeBitcast, x, none, func(v graph.Value) graph.Value {
		switch have := v.Type().DType; {
		case have == d:
			return v
		case have.Size() == d.Size() && have != graph.Bool && d != graph.Bool:
			return ops.BitCast(v, d)
		}
		return hlo.Reinterpret(v, d)
	})
}

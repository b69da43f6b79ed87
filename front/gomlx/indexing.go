package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
)

// indexing are the operations at places that are computed.
type indexing struct{ *computation }

// vectors are indices as i64[n k], k along axis of theirs, or 1 where that is one past the last;
// and the sizes of the other axes.
func vectors(indices graph.Value, axis int) (graph.Value, []int) {
	sizes := indices.Type().Sizes()
	k := 1
	if axis < len(sizes) {
		k = sizes[axis]
		sizes = slices.Delete(sizes, axis, axis+1)
		order := make([]int, 0, len(sizes)+1)
		for i := range len(sizes) + 1 {
			if i != axis {
				order = append(order, i)
			}
		}
		indices = ordered(indices, append(order, axis))
	}
	return ops.ReshapeSizes(ops.Cast(indices, graph.I64), product(sizes), k), sizes
}

// Gather is slices of x from the places that indices say.
func (c indexing) Gather(x, indices backends.Op, vectorAxis int, offset, collapsed, startMap,
	sizes []int, _ bool) (backends.Op, error) {
	const t = backends.OpTypeGather
	v, err := c.values(t, x, indices)
	if err != nil {
		return nil, err
	}
	err = gatherable(v[0].Type(), v[1].Type(), vectorAxis, offset, collapsed, sizes)
	if err != nil {
		return c.made(t, graph.Value{}, err)
	}
	at, batch := vectors(v[1], vectorAxis)
	shape, order := gathered(batch, offset, collapsed, sizes)
	blocks := hlo.Gather(v[0], at, startMap, sizes)
	return c.made(t, ordered(ops.ReshapeSizes(blocks, shape...), order), nil)
}

// gatherable rejects axes that there are none of. GoMLX's own rule holds the indices' axis against
// those of x.
func gatherable(x, indices graph.Type, vectorAxis int, offset, collapsed, sizes []int) error {
	out := indices.Rank() - 1 + len(offset)
	if vectorAxis == indices.Rank() {
		out++
	}
	outside := func(n int) func(int) bool {
		return func(a int) bool { return a < 0 || a >= n }
	}
	switch {
	case vectorAxis < 0 || vectorAxis > indices.Rank() || !isInteger(indices.DType):
		return fmt.Errorf("vectors along axis %d of %s", vectorAxis, indices)
	case len(sizes) != x.Rank() || len(offset)+len(collapsed) != x.Rank() ||
		slices.ContainsFunc(collapsed, outside(x.Rank())) ||
		slices.ContainsFunc(offset, outside(out)):
		return fmt.Errorf("slices %v, without axes %v, at axes %v, of %s", sizes, collapsed,
			offset, x)
	}
	for _, a := range collapsed {
		if sizes[a] != 1 {
			return fmt.Errorf("axis %d of slices %v is left out", a, sizes)
		}
	}
	return nil
}

// gathered are the sizes of gathered blocks, those of the batch first, without axes that are
// collapsed, and the order of their axes in the result, where those of blocks are at offset.
func gathered(batch, offset, collapsed, sizes []int) (shape, order []int) {
	shape = slices.Clone(batch)
	for a, n := range sizes {
		if !slices.Contains(collapsed, a) {
			shape = append(shape, n)
		}
	}
	first, block := 0, len(batch)
	for a := range shape {
		if slices.Contains(offset, a) {
			order = append(order, block)
			block++
		} else {
			order = append(order, first)
			first++
		}
	}
	return shape, order
}

// ScatterSum adds updates to x at the places that indices say.
func (c indexing) ScatterSum(x, indices, updates backends.Op, vectorAxis int, window, inserted,
	axes []int, _, _ bool) (backends.Op, error) {
	return c.scatter(backends.OpTypeScatterSum, hlo.Sum, []backends.Op{x, indices, updates},
		vectorAxis, window, inserted, axes)
}

// ScatterMax is ScatterSum with what is larger.
func (c indexing) ScatterMax(x, indices, updates backends.Op, vectorAxis int, window, inserted,
	axes []int, _, _ bool) (backends.Op, error) {
	return c.scatter(backends.OpTypeScatterMax, hlo.Max, []backends.Op{x, indices, updates},
		vectorAxis, window, inserted, axes)
}

// ScatterMin is ScatterSum with what is smaller.
func (c indexing) ScatterMin(x, indices, updates backends.Op, vectorAxis int, window, inserted,
	axes []int, _, _ bool) (backends.Op, error) {
	return c.scatter(backends.OpTypeScatterMin, hlo.Min, []backends.Op{x, indices, updates},
		vectorAxis, window, inserted, axes)
}

func (c indexing) scatter(t backends.OpType, how hlo.How, operands []backends.Op, vectorAxis int,
	window, inserted, axes []int) (backends.Op, error) {
	v, err := c.values(t, operands...)
	if err != nil {
		return nil, err
	}
	x, updates := v[0].Type(), v[2].Type()
	_, err = shapeinference.ScatterOp(shapeOf(x), shapeOf(v[1].Type()), shapeOf(updates),
		vectorAxis, window, inserted, axes)
	if err != nil {
		return nil, err
	}
	at, batch := vectors(v[1], vectorAxis)
	var order []int
	for a := range updates.Rank() {
		if !slices.Contains(window, a) {
			order = append(order, a)
		}
	}
	sizes, next := []int{product(batch)}, 0
	for a := range x.Rank() {
		if slices.Contains(inserted, a) {
			sizes = append(sizes, 1)
			continue
		}
		sizes = append(sizes, updates.Size(window[next]))
		next++
	}
	blocks := ops.ReshapeSizes(ordered(v[2], append(order, window...)), sizes...)
	return c.made(t, inF32(func(v ...graph.Value) graph.Value {
		return hlo.Scatter(how, v[0], v[1], v[2], axes)
	}, v[0], at, blocks), nil)
}

// DynamicSlice is a slice of x of the given sizes from a start, moved inside if it reaches out.
func (c indexing) DynamicSlice(x backends.Op, starts []backends.Op, sizes []int) (
	backends.Op, error) {
	const t = backends.OpTypeDynamicSlice
	v, err := c.values(t, append([]backends.Op{x}, starts...)...)
	if err != nil {
		return nil, err
	}
	at, along, err := corner(v[0], v[1:])
	if err != nil {
		return c.made(t, graph.Value{}, err)
	}
	if len(along) == 0 {
		return c.made(t, v[0], nil)
	}
	return c.made(t, ops.ReshapeSizes(hlo.Gather(v[0], at, along, sizes), sizes...), nil)
}

// corner is a place in x as a vector, i64[1 k], and the axes it is along: of scalars, one for each
// axis, or of one vector.
func corner(x graph.Value, starts []graph.Value) (at graph.Value, along []int, err error) {
	rank := x.Type().Rank()
	each := 1
	if len(starts) == 1 {
		each = rank
	}
	var wide []graph.Value
	for i, s := range starts {
		if s.Type().Elems() != each || !isInteger(s.Type().DType) {
			return at, nil, fmt.Errorf("start %d is %s, want %d integers", i, s.Type(), each)
		}
		wide = append(wide, ops.ReshapeSizes(ops.Cast(s, graph.I64), 1, each))
	}
	if len(starts)*each != rank {
		return at, nil, fmt.Errorf("%d starts in %s", len(starts), x.Type())
	}
	for a := range rank {
		along = append(along, a)
	}
	if len(wide) > 1 {
		return ops.Concat(1, wide...), along, nil
	}
	if rank > 0 {
		at = wide[0]
	}
	return at, along, nil
}

// DynamicUpdateSlice is x with an update from a start on, moved inside if it reaches out.
func (c indexing) DynamicUpdateSlice(x, update backends.Op, starts []backends.Op) (
	backends.Op, error) {
	const t = backends.OpTypeDynamicUpdateSlice
	v, err := c.values(t, append([]backends.Op{x, update}, starts...)...)
	if err != nil {
		return nil, err
	}
	at, along, err := corner(v[0], v[2:])
	if err != nil {
		return c.made(t, graph.Value{}, err)
	}
	if len(along) == 0 {
		return c.made(t, v[1], nil)
	}
	block := ops.ReshapeSizes(v[1], append([]int{1}, v[1].Type().Sizes()...)...)
	return c.made(t, hlo.Scatter(hlo.Put, v[0], at, block, along), nil)
}

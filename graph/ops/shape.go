package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// ExpandDims is x with new axes of size 1, at the given places of the result's axes; a
// negative one counts from their end. It costs nothing.
func ExpandDims(x graph.Value, axes ...int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	rank := t.Rank() + len(axes)
	added := make([]bool, rank)
	for _, a := range axes {
		i := axis(a, rank)
		if i < 0 || added[i] {
			x.Graph().Fail(fmt.Errorf("%s cannot have a new axis %d", t, a))
			return graph.Value{}
		}
		added[i] = true
	}
	shape, next := make([]graph.Dim, rank), 0
	for i := range shape {
		if shape[i].Size = 1; !added[i] {
			shape[i] = t.Shape[next]
			next++
		}
	}
	return Reshape(x, shape...)
}

// Squeeze is x without some axes of size 1, all of them if none are given. It costs
// nothing.
func Squeeze(x graph.Value, axes ...int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	gone := make([]bool, t.Rank())
	for i, d := range t.Shape {
		gone[i] = len(axes) == 0 && d.Size == 1
	}
	for _, a := range axes {
		i := axis(a, t.Rank())
		if i < 0 || t.Shape[i].Size != 1 {
			x.Graph().Fail(fmt.Errorf("%s has no axis %d of size 1", t, a))
			return graph.Value{}
		}
		gone[i] = true
	}
	var shape []graph.Dim
	for i, d := range t.Shape {
		if !gone[i] {
			shape = append(shape, d)
		}
	}
	return Reshape(x, shape...)
}

// Repeat is x with every element along an axis n times, one after the other: [a b] →
// [a a b b]. It is how the heads of keys and values serve groups of queries.
func Repeat(x graph.Value, along, n int) graph.Value {
	if !x.Valid() || n == 1 {
		return x
	}
	t := x.Type()
	i := axis(along, t.Rank())
	if i < 0 || n < 1 || n > 1<<30 {
		x.Graph().Fail(fmt.Errorf("%s cannot be repeated %d times along axis %d", t, n, along))
		return graph.Value{}
	}
	return repeated(x, i+1, i, n)
}

// Tile is x next to itself, so many times along each axis: [a b] → [a b a b]. Fewer
// numbers than axes are those of the last ones; more are of new leading ones.
func Tile(x graph.Value, times ...int) graph.Value {
	if !x.Valid() {
		return x
	}
	for x.Type().Rank() < len(times) {
		x = ExpandDims(x, 0)
	}
	lead := x.Type().Rank() - len(times)
	for i, n := range times {
		if n < 1 || n > 1<<30 {
			x.Graph().Fail(fmt.Errorf("%s cannot be tiled %d times along axis %d", x.Type(), n,
				lead+i))
			return graph.Value{}
		}
		if n > 1 {
			x = repeated(x, lead+i, lead+i, n)
		}
	}
	return x
}

// repeated gives x a new axis of n equal parts before axis at, and makes one of it and
// axis merged, which is beside it.
func repeated(x graph.Value, at, merged, n int) graph.Value {
	shape := x.Type().Shape
	outer := graph.Dim{Size: graph.Type{Shape: shape[:at]}.Elems()}
	inner := graph.Dim{Size: graph.Type{Shape: shape[at:]}.Elems()}
	x = BroadcastTo(Reshape(x, outer, graph.Dim{Size: 1}, inner), outer.Size, n, inner.Size)
	out := slices.Clone(shape)
	out[merged] = graph.Dim{Size: n * shape[merged].Size}
	return Reshape(x, out...)
}

package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// GridMode is how elements between others are made of them.
type GridMode uint8

// Of the four around a place by its distances, the one that is nearest (of two, the even one), or
// the sixteen around it by cubic polynomials, which are Keys' with −0.75.
const (
	GridBilinear GridMode = iota
	GridNearest
	GridBicubic
	numGridMode
)

// GridOutside is what is beyond the border.
type GridOutside uint8

// Zeros, the element of the border that is nearest, or the image again as in a mirror.
const (
	GridZeros GridOutside = iota
	GridBorder
	GridReflection
	numGridOutside
)

// Grid says what [GridSample] does.
type Grid struct {
	Mode    GridMode
	Outside GridOutside
	// AlignCorners has −1 and 1 name the centres of elements at the border, not their outer edges.
	AlignCorners bool
}

// GridSample is what images x f32[n c h w] have at the places of a grid f32[n oh ow 2], x and y
// from −1 to 1 across an image: f32[n c oh ow], as PyTorch's grid_sample has it. The gradient
// goes to the images and to the grid.
func GridSample(x, grid graph.Value, o Grid) graph.Value {
	if !x.Valid() || !grid.Valid() {
		return graph.Value{}
	}
	t, g := x.Type(), grid.Type()
	if t.Rank() != 4 || g.Rank() != 4 || g.Size(3) != 2 || t.Size(0) != g.Size(0) ||
		o.Mode >= numGridMode || o.Outside >= numGridOutside || t.Size(2)*t.Size(3) == 0 {
		x.Graph().Fail(fmt.Errorf("images %s at the places of %s, %+v: want f32[n c h w] and "+
			"f32[n oh ow 2]", t, g, o))
		return graph.Value{}
	}
	columns := o.taps(Slice(grid, 3, 0, 1), t.Size(3))
	rows := o.taps(Slice(grid, 3, 1, 2), t.Size(2))
	x = Transpose(x, 0, 2, 3, 1)
	var sum graph.Value
	for _, row := range rows {
		for _, column := range columns {
			part := GatherND(x, Concat(3, row.at, column.at), 1)
			part = Mul(part, Mul(row.weight, column.weight))
			if sum.Valid() {
				part = Add(sum, part)
			}
			sum = part
		}
	}
	return Transpose(sum, 0, 3, 1, 2)
}

// gridTap is an element along an axis, i32, and its weight.
type gridTap struct{ at, weight graph.Value }

// taps are the elements along an axis of so many that a place is made of.
func (o Grid) taps(place graph.Value, size int) []gridTap {
	n := float32(size)
	at := Scale(AddScalar(Scale(AddScalar(place, 1), n), -1), 0.5)
	if o.AlignCorners {
		at = Scale(AddScalar(place, 1), (n-1)/2)
	}
	if o.Mode != GridBicubic {
		at = o.inside(at, n)
	}
	switch o.Mode {
	case GridNearest:
		at = Round(at)
		return []gridTap{o.tap(at, Ones(at.Graph(), at.Type()), n)}
	case GridBilinear:
		low := Floor(at)
		part := Sub(at, low)
		return []gridTap{o.tap(low, AddScalar(Neg(part), 1), n), o.tap(AddScalar(low, 1), part, n)}
	}
	low := Floor(at)
	var list []gridTap
	for k, w := range cubic(Sub(at, low)) {
		list = append(list, o.tap(o.inside(AddScalar(low, float32(k-1)), n), w, n))
	}
	return list
}

// inside moves places that are outside an axis of n elements to what is there.
func (o Grid) inside(at graph.Value, n float32) graph.Value {
	switch o.Outside {
	case GridZeros:
		return at
	case GridReflection:
		at = o.reflected(at, n)
	}
	return Clip(at, 0, n-1)
}

// reflected is places as in mirrors at the centres, or the outer edges, of the elements at the
// border.
func (o Grid) reflected(at graph.Value, n float32) graph.Value {
	low, span := float32(-0.5), n
	if o.AlignCorners {
		low, span = 0, n-1
	}
	if span == 0 {
		return Scale(at, 0)
	}
	from := Abs(AddScalar(at, -low))
	flips := Floor(Scale(from, 1/span))
	rest := Sub(from, Scale(flips, span))
	odd := Sub(flips, Scale(Floor(Scale(flips, 0.5)), 2))
	return AddScalar(Add(rest, Mul(odd, AddScalar(Scale(rest, -2), span))), low)
}

// tap is an element, which has no weight outside, where it is the one at the border.
func (o Grid) tap(at, weight graph.Value, n float32) gridTap {
	is := Clip(at, 0, n-1)
	if o.Outside == GridZeros {
		weight = Mul(weight, Cast(Equal(at, is), graph.F32))
	}
	return gridTap{Cast(StopGradient(is), graph.I32), weight}
}

// cubic are the weights of the two elements before a place and the two behind it, of which the
// first is so far before.
func cubic(part graph.Value) []graph.Value {
	const a = -0.75
	near := func(x graph.Value) graph.Value { // up to 1 away
		return AddScalar(Mul(AddScalar(Scale(x, a+2), -(a+3)), Square(x)), 1)
	}
	far := func(x graph.Value) graph.Value { // up to 2 away
		return AddScalar(Mul(AddScalar(Mul(AddScalar(Scale(x, a), -5*a), x), 8*a), x), -4*a)
	}
	back := AddScalar(Neg(part), 1)
	return []graph.Value{far(AddScalar(part, 1)), near(part), near(back), far(AddScalar(back, 1))}
}

package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Pool says how a window moves over values x f32[batch channels spatial…] with one to three
// spatial axes. Lists have an element for each of these.
type Pool struct {
	Size          []int
	Stride        []int // nil means Size: windows side by side
	Dilation      []int // distance of a window's elements; nil means 1
	Before, After []int // how far windows reach out of each end; nil means not at all
	// Ceil has as many windows as begin inside or before x, though the last reaches out farther.
	Ceil bool
	// CountPad has means of windows that reach out count the zeros there, but not those that
	// only Ceil adds.
	CountPad bool
}

// MaxPool is the largest element of every window, as that of [MaxPool2D].
func MaxPool(x graph.Value, p Pool) graph.Value {
	w, ok := p.over(x)
	if !ok {
		return graph.Value{}
	}
	if w.plain() && w.small() {
		return w.twice(x, MaxPool2D)
	}
	return applyN(2, maxPoolND{w}, x)[0]
}

// AvgPool is the mean of every window: of its elements that are inside x, unless CountPad.
func AvgPool(x graph.Value, p Pool) graph.Value {
	w, ok := p.over(x)
	if !ok {
		return graph.Value{}
	}
	if w.plain() && !p.CountPad {
		return w.twice(x, AvgPool2D)
	}
	sizes, of := x.Type().Sizes(), w
	sizes[0], sizes[1] = 1, 1
	if p.CountPad {
		of = w.padded(sizes, p)
	}
	return Div(w.sums(x), of.sums(Ones(x.Graph(), tensor.Of(graph.F32, sizes...))))
}

// LpPool is the p-norm of every window: (Σ|x|^p)^(1/p). Its gradient is not a number where all
// of a window is 0, unless p is 1.
func LpPool(x graph.Value, norm int, p Pool) graph.Value {
	w, ok := p.over(x)
	if !ok {
		return graph.Value{}
	}
	switch {
	case norm < 1:
		x.Graph().Fail(fmt.Errorf("the %d-norm of windows: want 1 or more", norm))
		return graph.Value{}
	case norm == 1:
		return w.sums(Abs(x))
	case norm == 2:
		return Sqrt(w.sums(Square(x)))
	}
	return PowScalar(w.sums(PowScalar(Abs(x), float32(norm))), 1/float32(norm))
}

// sums are those of the elements of every window. Of windows with gaps they are products with
// ones.
func (w windows) sums(x graph.Value) graph.Value {
	if w.plain() {
		return w.twice(x, func(x graph.Value, w Window) graph.Value {
			return apply(windowSum{Window: w.defaults()}, x)
		})
	}
	t, c := x.Type(), ConvOptions{}
	filter := []int{1, 1}
	for _, s := range w.Axis[:w.N] {
		filter = append(filter, s.Size)
		c.Stride, c.Dilation = append(c.Stride, s.Stride), append(c.Dilation, s.Dilation)
		c.Before, c.After = append(c.Before, s.Before), append(c.After, s.After)
	}
	planes := t.Sizes()
	planes[0], planes[1] = t.Size(0)*t.Size(1), 1
	y := ConvN(ReshapeSizes(x, planes...), Ones(x.Graph(), tensor.Of(graph.F32, filter...)), c)
	return Reshape(y, append(t.Shape[:2:2], spatial(y)...)...)
}

// spatial are the axes of a value behind batch and channels.
func spatial(x graph.Value) []graph.Dim {
	if !x.Valid() {
		return nil
	}
	return x.Type().Shape[2:]
}

// twice pools by an operation on images: one axis is that of images of one row; of three, the
// last two are pooled first, for every index of the other one.
func (w windows) twice(x graph.Value, pool func(graph.Value, Window) graph.Value) graph.Value {
	t := x.Type()
	size := func(i int) graph.Dim { return graph.Dim{Size: t.Size(i)} }
	switch w.N {
	case 1:
		return Squeeze(pool(ExpandDims(x, 2), w.window(-1, 0)), 2)
	case 2:
		return pool(x, w.window(0, 1))
	}
	x = Reshape(x, t.Shape[0], graph.Dim{Size: t.Size(1) * t.Size(2)}, size(3), size(4))
	x = pool(x, w.window(1, 2))
	if !x.Valid() {
		return x
	}
	oh, ow := x.Type().Size(2), x.Type().Size(3)
	x = Reshape(x, t.Shape[0], t.Shape[1], size(2), graph.Dim{Size: oh * ow})
	if x = pool(x, w.window(0, -1)); !x.Valid() {
		return x
	}
	return Reshape(x, t.Shape[0], t.Shape[1], x.Type().Shape[2], graph.Dim{Size: oh},
		graph.Dim{Size: ow})
}

// window is that of images, of two axes; of -1 it has one element.
func (w windows) window(vertical, horizontal int) Window {
	out := Window{Size: [2]int{1, 1}, Stride: [2]int{1, 1}}
	for i, k := range []int{vertical, horizontal} {
		if k >= 0 {
			s := w.Axis[k]
			out.Size[i], out.Stride[i], out.Pad[i], out.Pad[i+2] = s.Size, s.Stride, s.Before,
				s.After
		}
	}
	return out
}

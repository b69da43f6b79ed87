package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// ConvOptions say how a filter moves over values with one to three spatial axes. Lists have an
// element for each of these.
type ConvOptions struct {
	Stride        []int // nil means 1
	Dilation      []int // distance of the filter's elements; nil means 1
	Before, After []int // zeros that are added at each end; nil means none
	Groups        int   // into which channels fall, without mixing; zero means 1
}

// ConvN is the convolution of values x f32[n c spatial…] with filters w f32[o c/groups taps…],
// as [Conv2D] is of images: f32[n o spatial…]. Along the first of three axes it is a sum over
// the filter's elements.
func ConvN(x, w graph.Value, c ConvOptions) graph.Value {
	axes, ok := c.axes(x, w)
	if !ok {
		return graph.Value{}
	}
	switch axes {
	case 1:
		return Squeeze(Conv2D(ExpandDims(x, 2), ExpandDims(w, 2), c.images(-1, 0)), 2)
	case 2:
		return Conv2D(x, w, c.images(0, 1))
	}
	return c.deep(x, w)
}

// ConvTransposeN is the transpose of ConvN as a linear map, as [ConvTranspose2D] is of images:
// from x f32[n o spatial…] and filters w f32[o c/groups taps…] to f32[n c spatial…], of
// (size−1)·stride + dilation·(taps−1) + 1 − before − after + more elements along each axis.
// more is nil for none.
func ConvTransposeN(x, w graph.Value, c ConvOptions, more []int) graph.Value {
	axes, ok := c.axes(x, w)
	if !ok {
		return graph.Value{}
	}
	if err := perAxis("more elements", axes, more); err != nil {
		x.Graph().Fail(err)
		return graph.Value{}
	}
	beyond := make([]int, axes) // what no element of x reaches
	after := make([]int, axes)
	for i := range axes {
		k := setting(c.After, i, 0) - setting(more, i, 0)
		after[i], beyond[i] = max(0, k), max(0, -k)
	}
	c.After = after
	var y graph.Value
	switch axes {
	case 1:
		y = Squeeze(ConvTranspose2D(ExpandDims(x, 2), ExpandDims(w, 2), c.images(-1, 0),
			[2]int{}), 2)
	case 2:
		y = ConvTranspose2D(x, w, c.images(0, 1), [2]int{})
	default:
		y = c.deepTranspose(x, w)
	}
	for i, n := range beyond {
		if n > 0 {
			y = Pad(y, 2+i, 0, n)
		}
	}
	return y
}

// axes checks the operands, and is how many spatial axes they have.
func (c ConvOptions) axes(x, w graph.Value) (axes int, ok bool) {
	if !x.Valid() || !w.Valid() {
		return 0, false
	}
	axes = x.Type().Rank() - 2
	err := perAxis("a convolution", axes, c.Stride, c.Dilation, c.Before, c.After)
	if axes < 1 || axes > maxSpatial || w.Type().Rank() != axes+2 {
		err = fmt.Errorf("a convolution of %s by filters %s, want batch, channels and up to %d "+
			"other axes of both", x.Type(), w.Type(), maxSpatial)
	}
	if err == nil && axes == 3 {
		err = c.sweep(w, 0).conv()
	}
	if err != nil {
		x.Graph().Fail(err)
	}
	return axes, err == nil
}

// sweep is how the filters move along an axis.
func (c ConvOptions) sweep(w graph.Value, i int) sweep {
	return sweep{w.Type().Size(2 + i), setting(c.Stride, i, 1), setting(c.Dilation, i, 1),
		setting(c.Before, i, 0), setting(c.After, i, 0)}
}

// conv rejects numbers that are out of range.
func (s sweep) conv() error {
	if min(s.Size, s.Stride, s.Dilation) < 1 || min(s.Before, s.After) < 0 {
		return fmt.Errorf("a convolution by %d elements %d apart, stride %d, padded by %d and %d",
			s.Size, s.Dilation, s.Stride, s.Before, s.After)
	}
	return nil
}

// images is how the filters move along two axes; -1 is an axis of one element.
func (c ConvOptions) images(vertical, horizontal int) Conv {
	out := Conv{Groups: c.Groups}
	for i, k := range []int{vertical, horizontal} {
		if k >= 0 {
			out.Stride[i], out.Dilation[i] = setting(c.Stride, k, 1), setting(c.Dilation, k, 1)
			out.Pad[i], out.Pad[i+2] = setting(c.Before, k, 0), setting(c.After, k, 0)
		}
	}
	return out
}

// deep is a sum of convolutions of images, over the filter's first axis. Images of all indices
// of an axis are a batch.
func (c ConvOptions) deep(x, w graph.Value) graph.Value {
	s, t := c.sweep(w, 0), x.Type()
	depth := t.Size(2) + s.Before + s.After
	if depth < s.length() {
		x.Graph().Fail(fmt.Errorf("a convolution: the filter spans %d elements along axis 2 of "+
			"the padded %s, which has %d", s.length(), t, depth))
		return graph.Value{}
	}
	n := s.count(t.Size(2))
	x = Transpose(x, 0, 2, 1, 3, 4)
	if s.Before+s.After > 0 {
		x = Pad(x, 1, s.Before, s.After)
	}
	var sum graph.Value
	for k := range s.Size {
		first := k * s.Dilation
		taken := SliceStep(x, 1, first, first+(n-1)*s.Stride+1, s.Stride)
		part := Conv2D(pages(taken), tap(w, k), c.images(1, 2))
		if k > 0 {
			part = Add(sum, part)
		}
		sum = part
	}
	return bound(sum, t.Shape[0], n)
}

// deepTranspose puts what each of the filter's elements along the first axis makes of x where
// deep takes it from.
func (c ConvOptions) deepTranspose(x, w graph.Value) graph.Value {
	s, t := c.sweep(w, 0), x.Type()
	n := t.Size(2)
	whole := (n-1)*s.Stride + s.length()
	if n < 1 || s.Before+s.After >= whole {
		x.Graph().Fail(fmt.Errorf("a transposed convolution of %s without %d and %d elements of "+
			"%d along axis 2", t, s.Before, s.After, whole))
		return graph.Value{}
	}
	x = pages(Transpose(x, 0, 2, 1, 3, 4))
	var sum graph.Value
	for k := range s.Size {
		y := ConvTranspose2D(x, tap(w, k), c.images(1, 2), [2]int{})
		part := bound(y, t.Shape[0], n)
		if part.Valid() && whole > n {
			part = apply(unstride{stride{2, k * s.Dilation, s.Stride, n}, whole}, part)
		}
		if k > 0 {
			part = Add(sum, part)
		}
		sum = part
	}
	return Slice(sum, 2, s.Before, whole-s.After)
}

// tap is the filters' element along the first axis of three.
func tap(w graph.Value, k int) graph.Value { return Squeeze(Slice(w, 2, k, k+1), 2) }

// pages are values [n d c h w] as n·d images.
func pages(x graph.Value) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	return ReshapeSizes(x, t.Size(0)*t.Size(1), t.Size(2), t.Size(3), t.Size(4))
}

// bound are images of d indices each as values [n c d h w].
func bound(x graph.Value, batch graph.Dim, d int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	x = Reshape(x, batch, graph.Dim{Size: d}, graph.Dim{Size: t.Size(1)},
		graph.Dim{Size: t.Size(2)}, graph.Dim{Size: t.Size(3)})
	return Transpose(x, 0, 2, 1, 3, 4)
}

package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph/ops"
)

// filters are the windows of filters w over an image x.
func filters(n *node, x, w value) sliding {
	sizes, kernel := x.Type().Sizes(), w.Type().Sizes()
	if len(sizes) < 3 || len(sizes) != len(kernel) {
		fail("filters %s of images %s", w.Type(), x.Type())
	}
	if list := n.list("kernel_shape"); list != nil && !slices.Equal(list, kernel[2:]) {
		fail("kernel_shape is %v, and the filters are %s", list, w.Type())
	}
	return windows(n, sizes[2:], kernel[2:], false)
}

func conv(n *node) {
	x, w := n.wide(0), n.wide(1)
	y := convolved(x, w, filters(n, x, w), n.int("group", 1))
	if n.has(2) {
		y = ops.Add(y, channels(n.wide(2), y.Type().Rank()))
	}
	n.give(n.narrow(y))
}

// filter is one of package ops, which has two axes: the last ones.
func (s sliding) filter(groups int) ops.Conv {
	c := ops.Conv{Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: groups}
	many := len(s.have)
	for k := range 2 {
		if i := many - 2 + k; i >= 0 {
			c.Stride[k], c.Dilation[k] = s.stride[i], s.dilation[i]
			c.Pad[k], c.Pad[k+2] = s.before[i], s.after[i]
		}
	}
	return c
}

// convolved is a convolution over one, two or three axes. Over three it is the sum of those over
// two, of the slices of an image that are samples then, by the slices of a filter.
func convolved(x, w value, s sliding, groups int) value {
	c := s.filter(groups)
	if len(s.have) == 1 {
		w = ops.ExpandDims(w, 2)
	}
	if len(s.have) < 3 {
		return twoAxes(x, func(x value) value { return ops.Conv2D(x, w, c) })
	}
	if len(s.have) > 3 {
		fail("%s has %d axes behind its channels: want at most 3", x.Type(), len(s.have))
	}
	x = ops.Transpose(ops.Pad(x, 2, s.before[0], s.after[0]), 0, 2, 1, 3, 4)
	t := x.Type()
	var sum value
	for k := range s.kernel[0] {
		lo := k * s.dilation[0]
		part := ops.SliceStep(x, 1, lo, lo+(s.want[0]-1)*s.stride[0]+1, s.stride[0])
		part = ops.ReshapeSizes(part, t.Size(0)*s.want[0], t.Size(2), t.Size(3), t.Size(4))
		part = ops.Conv2D(part, ops.Squeeze(ops.Slice(w, 2, k, k+1), 2), c)
		if sum.Valid() {
			part = ops.Add(sum, part)
		}
		sum = part
	}
	y := ops.ReshapeSizes(sum, t.Size(0), s.want[0], w.Type().Size(0), s.want[1], s.want[2])
	return ops.Transpose(y, 0, 2, 1, 3, 4)
}

// convTranspose is the transpose of a convolution as a linear map, over one or two axes.
func convTranspose(n *node) {
	x, w := n.wide(0), n.wide(1)
	many := x.Type().Rank() - 2
	if many < 1 || many > 2 || w.Type().Rank() != many+2 {
		fail("filters %s of images %s: want one axis or two behind the channels", w.Type(),
			x.Type())
	}
	s := transposed(n, x.Type().Sizes()[2:], w.Type().Sizes()[2:])
	size := [2]int{1, s.want[many-1]}
	if many == 2 {
		size[0] = s.want[0]
	} else {
		w = ops.ExpandDims(w, 2)
	}
	c := s.filter(n.int("group", 1))
	y := twoAxes(x, func(x value) value { return ops.ConvTranspose2D(x, w, c, size) })
	if n.has(2) {
		y = ops.Add(y, channels(n.wide(2), y.Type().Rank()))
	}
	n.give(n.narrow(y))
}

// transposed are the windows of a transposed convolution: want is larger than have.
func transposed(n *node, sizes, kernel []int) sliding {
	many := len(sizes)
	if list := n.list("kernel_shape"); list != nil && !slices.Equal(list, kernel) {
		fail("kernel_shape is %v, and the filters have %v", list, kernel)
	}
	s := sliding{kernel: kernel, have: sizes, stride: ones(n, "strides", many, 1),
		dilation: ones(n, "dilations", many, 1), want: n.list("output_shape")}
	list, auto := ones(n, "pads", 2*many, 0), n.text("auto_pad", "NOTSET")
	n.only("auto_pad", auto, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
	more := ones(n, "output_padding", many, 0)
	s.before, s.after = slices.Clone(list[:many]), slices.Clone(list[many:])
	given := s.want != nil
	if given {
		s.want = slices.Clone(s.want[max(0, len(s.want)-many):])
	} else {
		s.want = make([]int, many)
	}
	for i, have := range sizes {
		full := s.stride[i]*(have-1) + s.span(i) + more[i]
		switch {
		case given:
		case auto == "SAME_UPPER" || auto == "SAME_LOWER":
			s.want[i] = have * s.stride[i]
		default:
			s.want[i] = full - s.before[i] - s.after[i]
			continue
		}
		total := max(0, full-s.want[i])
		s.before[i], s.after[i] = total-total/2, total/2
		if auto == "SAME_UPPER" {
			s.before[i], s.after[i] = s.after[i], s.before[i]
		}
	}
	return s
}

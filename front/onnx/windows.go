package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph/ops"
)

// sliding says how windows move over the axes of an image.
type sliding struct{ kernel, stride, dilation, before, after []int }

// ones is a list of attributes, of so many, where that is left out of a number.
func ones(n *node, name string, many, number int) []int {
	list := n.list(name)
	if list == nil {
		list = slices.Repeat([]int{number}, many)
	}
	if len(list) != many {
		fail("%s are %v, of %d axes", name, list, many)
	}
	return list
}

// windows are of a kernel over so many axes, with the pads that the file has, and how it would
// have them instead.
func windows(n *node, kernel []int, many int) (s sliding, auto string) {
	if len(kernel) != many || slices.Min(kernel) < 1 {
		fail("a kernel of %v for an image of %d axes", kernel, many)
	}
	list := ones(n, "pads", 2*many, 0)
	s = sliding{kernel: kernel, stride: ones(n, "strides", many, 1),
		dilation: ones(n, "dilations", many, 1), before: slices.Clone(list[:many]),
		after: slices.Clone(list[many:])}
	if slices.Min(s.stride) < 1 || slices.Min(s.dilation) < 1 {
		fail("windows %v apart, dilated by %v", s.stride, s.dilation)
	}
	auto = n.text("auto_pad", "NOTSET")
	n.only("auto_pad", auto, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
	if auto == "VALID" {
		clear(s.before)
		clear(s.after)
	}
	return s, auto
}

// span is how many elements a window is long.
func (s sliding) span(i int) int { return s.dilation[i]*(s.kernel[i]-1) + 1 }

// fitted are windows over an image of sizes: as many as strides fit into it, if it pads by itself.
func fitted(n *node, sizes, kernel []int) sliding {
	s, auto := windows(n, kernel, len(sizes))
	if auto == "SAME_UPPER" || auto == "SAME_LOWER" {
		for i, have := range sizes {
			want := (have + s.stride[i] - 1) / s.stride[i]
			s.pad(i, max(0, (want-1)*s.stride[i]+s.span(i)-have), auto == "SAME_UPPER")
		}
	}
	return s
}

// pad pads an axis by so many elements, of which an odd one is behind, or before.
func (s sliding) pad(i, total int, behind bool) {
	s.before[i], s.after[i] = total-total/2, total/2
	if behind {
		s.before[i], s.after[i] = s.after[i], s.before[i]
	}
}

// conv are the options of a convolution.
func (s sliding) conv(groups int) ops.ConvOptions {
	return ops.ConvOptions{Stride: s.stride, Dilation: s.dilation, Before: s.before,
		After: s.after, Groups: groups}
}

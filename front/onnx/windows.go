package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph/ops"
)

// sliding says how windows move over the axes of an image.
type sliding struct {
	kernel, stride, dilation []int
	have, want               []int // elements of the image and of the result
	before, after            []int // how far windows reach out of the image
}

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

// windows are of a kernel over an image of sizes; a last window may be cut off, if ceil.
func windows(n *node, sizes, kernel []int, ceil bool) sliding {
	many := len(sizes)
	s := sliding{kernel: kernel, have: sizes, stride: ones(n, "strides", many, 1),
		dilation: ones(n, "dilations", many, 1), want: make([]int, many)}
	if len(kernel) != many {
		fail("a kernel of %v for an image of %v", kernel, sizes)
	}
	list, auto := ones(n, "pads", 2*many, 0), n.text("auto_pad", "NOTSET")
	n.only("auto_pad", auto, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
	if auto == "VALID" {
		list, ceil = make([]int, 2*many), false
	}
	s.before, s.after = slices.Clone(list[:many]), slices.Clone(list[many:])
	for i, have := range sizes {
		if kernel[i] < 1 || s.stride[i] < 1 || s.dilation[i] < 1 || s.before[i] < 0 ||
			s.after[i] < 0 {
			fail("windows of %v, %v apart, dilated by %v, with pads %v", kernel, s.stride,
				s.dilation, list)
		}
		if auto == "SAME_UPPER" || auto == "SAME_LOWER" {
			s.want[i] = (have + s.stride[i] - 1) / s.stride[i]
			total := max(0, (s.want[i]-1)*s.stride[i]+s.span(i)-have)
			s.before[i], s.after[i] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				s.before[i], s.after[i] = s.after[i], s.before[i]
			}
			continue
		}
		room := have + s.before[i] + s.after[i] - s.span(i)
		if room < 0 {
			fail("windows of %d do not fit into %d with pads %v", s.span(i), have, list)
		}
		s.want[i] = room/s.stride[i] + 1
		if ceil && room%s.stride[i] > 0 && s.want[i]*s.stride[i] < have+s.before[i] {
			s.want[i]++
		}
	}
	return s
}

// span is how many elements a window is long.
func (s sliding) span(i int) int { return s.dilation[i]*(s.kernel[i]-1) + 1 }

// reach is how far the last window reaches out of the image.
func (s sliding) reach(i int) int {
	return max(0, (s.want[i]-1)*s.stride[i]+s.span(i)-s.have[i]-s.before[i])
}

// flat reports whether windows are those of package ops, which know two axes, or one.
func (s sliding) flat() bool {
	for i := range s.have {
		if s.dilation[i] != 1 || s.before[i] >= s.kernel[i] || s.reach(i) >= s.kernel[i] {
			return false
		}
	}
	return len(s.have) <= 2
}

// window is one of package ops.
func (s sliding) window() ops.Window {
	w := ops.Window{Size: [2]int{1, 1}, Stride: [2]int{1, 1}}
	for i := range s.have {
		k := 2 - len(s.have) + i
		w.Size[k], w.Stride[k] = s.kernel[i], s.stride[i]
		w.Pad[k], w.Pad[k+2] = s.before[i], s.reach(i)
	}
	return w
}

// twoAxes does something of images of two axes to those that may have one.
func twoAxes(x value, f unary) value {
	if x.Type().Rank() == 3 {
		return ops.Squeeze(f(ops.ExpandDims(x, 2)), 2)
	}
	return f(x)
}

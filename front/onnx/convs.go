package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// filters is the kernel of filters w of an image x.
func filters(n *node, x, w value) (sizes, kernel []int) {
	sizes, kernel = x.Type().Sizes(), w.Type().Sizes()
	if len(sizes) < 3 || len(sizes) != len(kernel) {
		fail("filters %s of images %s", w.Type(), x.Type())
	}
	if list := n.list("kernel_shape"); list != nil && !slices.Equal(list, kernel[2:]) {
		fail("kernel_shape is %v, and the filters are %s", list, w.Type())
	}
	return sizes[2:], kernel[2:]
}

// biased adds operand i, if it is there, to channels.
func biased(n *node, y value, i int) value {
	if n.has(i) {
		y = ops.Add(y, channels(n.wide(i), y.Type().Rank()))
	}
	return n.narrow(y)
}

func conv(n *node) {
	x := n.wide(0)
	w, bias, normed := n.scaled(0)
	if !normed {
		w = n.wide(1)
	}
	sizes, kernel := filters(n, x, w)
	y := ops.ConvN(x, w, fitted(n, sizes, kernel).conv(n.int("group", 1)))
	if normed {
		n.give(ops.Add(y, channels(bias, y.Type().Rank())))
		return
	}
	n.give(biased(n, y, 2))
}

// convTranspose is of the size that the file says, or that its pads leave.
func convTranspose(n *node) {
	x, w := n.wide(0), n.wide(1)
	sizes, kernel := filters(n, x, w)
	s, auto := windows(n, kernel, len(sizes))
	more, want := slices.Clone(ones(n, "output_padding", len(sizes), 0)), n.list("output_shape")
	for i, have := range sizes {
		size := have * s.stride[i]
		switch {
		case want != nil:
			size = want[max(0, len(want)-len(sizes))+i]
		case auto == "NOTSET" || auto == "VALID":
			continue
		}
		total := s.stride[i]*(have-1) + s.span(i) + more[i] - size
		more[i] += max(0, -total)
		s.pad(i, max(0, total), auto == "SAME_UPPER")
	}
	y := ops.ConvTransposeN(x, w, s.conv(n.int("group", 1)), more)
	n.give(biased(n, y, 2))
}

// columnsToImage adds up blocks of an image: the transpose of a convolution that takes each element
// of a block to a channel of its own.
func columnsToImage(n *node) {
	x, image, kernel := n.wide(0), n.ints(1), n.ints(2)
	s, _ := windows(n, kernel, len(image))
	t, block := x.Type(), elems(kernel)
	sizes, more := make([]int, len(image)), make([]int, len(image))
	for i, want := range image {
		room := want + s.before[i] + s.after[i] - s.span(i)
		if room < 0 {
			fail("blocks of %d do not fit into %v", s.span(i), image)
		}
		sizes[i], more[i] = room/s.stride[i]+1, room%s.stride[i]
	}
	if t.Rank() != 3 || t.Size(1)%block != 0 || t.Size(2) != elems(sizes) {
		fail("%s is not of %v blocks of %v", t, sizes, kernel)
	}
	many := t.Size(1) / block
	w := tensor.New(tensor.Of(tensor.F32, append([]int{t.Size(1), 1}, kernel...)...))
	for i := range t.Size(1) {
		w.F32()[i*block+i%block] = 1
	}
	x = ops.ReshapeSizes(x, append([]int{t.Size(0), t.Size(1)}, sizes...)...)
	n.give(n.narrow(ops.ConvTransposeN(x, n.b.g.Constant("blocks", w), s.conv(many), more)))
}

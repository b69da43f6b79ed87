package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Window says how a pooling window moves over an image. Pairs are vertical and
// horizontal. What a window has outside the image does not count.
type Window struct {
	Size   [2]int
	Stride [2]int // zero means Size: windows side by side
	Pad    [4]int // how far windows reach out above, left of, below and right of the image
}

// blocked is a window of k×k elements, side by side.
func blocked(k int) Window { return Window{Size: [2]int{k, k}}.defaults() }

// defaults replaces zeros by what they mean.
func (w Window) defaults() Window {
	for i := range w.Stride {
		if w.Stride[i] == 0 {
			w.Stride[i] = w.Size[i]
		}
	}
	return w
}

// check rejects windows of no elements, or which lie outside the image.
func (w Window) check() error {
	const most = 1 << 15
	for i := range w.Size {
		before, after := w.Pad[i], w.Pad[i+2]
		switch {
		case w.Size[i] < 1 || w.Size[i] > most || w.Stride[i] < 1 || w.Stride[i] > most:
			return fmt.Errorf("windows of %v elements, %v apart", w.Size, w.Stride)
		case before < 0 || before >= w.Size[i] || after < 0 || after >= w.Size[i]:
			return fmt.Errorf("padding %v is not between 0 and the window's %v", w.Pad, w.Size)
		}
	}
	return nil
}

// pooled is the size of images x, f32[n c h w], after pooling.
func (w Window) pooled(x graph.Type) (graph.Type, error) {
	if err := w.check(); err != nil {
		return graph.Type{}, err
	}
	if x.Rank() != 4 {
		return graph.Type{}, fmt.Errorf("operand is %s, want four axes", x)
	}
	size := [2]int{}
	for i := range size {
		if x.Size(2+i) == 0 {
			return graph.Type{}, fmt.Errorf("the images of %s have no elements", x)
		}
		room := x.Size(2+i) + w.Pad[i] + w.Pad[i+2] - w.Size[i]
		if room < 0 {
			return graph.Type{}, fmt.Errorf("windows of %v do not fit into %s with padding %v",
				w.Size, x, w.Pad)
		}
		size[i] = room/w.Stride[i] + 1
	}
	return framed(x, size[0], size[1]), nil
}

// framed is a type of images of another size.
func framed(x graph.Type, h, w int) graph.Type {
	return tensor.Named(x.DType, x.Shape[0], x.Shape[1], graph.Dim{Size: h}, graph.Dim{Size: w})
}

// unpooled checks that images of h×w elements are pooled to those of type y, and
// is the type of the former.
func (w Window) unpooled(y graph.Type, height, width int) (graph.Type, error) {
	if y.Rank() != 4 || height < 1 || width < 1 || height > 1<<30 || width > 1<<30 {
		return graph.Type{}, fmt.Errorf("%s is not images pooled from %d×%d", y, height, width)
	}
	x := framed(y, height, width)
	pooled, err := w.pooled(x)
	if err != nil {
		return x, err
	}
	if !pooled.SameShape(y) {
		return x, fmt.Errorf("%s is pooled to %s, not to %s", x, pooled, y)
	}
	return x, nil
}

// frame is the geometry of images of h×w elements and of their oh×ow windows.
type frame struct {
	Window
	h, w, oh, ow int
}

func (w Window) frame(image, pooled graph.Type) frame {
	return frame{w, image.Size(2), image.Size(3), pooled.Size(2), pooled.Size(3)}
}

// planes visits the planes of all images, in parallel: f gets the offset of an
// image's plane and that of its windows.
func (f frame) planes(c *kernel.Call, total int, visit func(image, window int)) {
	size := f.h * f.w
	c.Pool.For(total/size, max(1, grain/4/size), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			visit(i*size, i*f.oh*f.ow)
		}
	})
}

// extent is what of window i is inside along an axis of so many elements.
func extent(i, stride, pad, size, elements int) (first, end int) {
	at := i*stride - pad
	return max(0, at), min(elements, at+size)
}

// planesWithRow visits the planes of images x, in parallel: visit gets a plane's
// number, and a row of scratch of which there is one for each of planeBlocks.
func planesWithRow(c *kernel.Call, x graph.Type, width int, visit func(plane int, row []float32)) {
	planes, blocks := x.Size(0)*x.Size(1), planeBlocks(x)
	c.Pool.Run(blocks, func(b int) {
		row := floats(c.Scratch)[b*width : (b+1)*width]
		lo, hi := block(b, blocks, planes)
		for i := lo; i < hi; i++ {
			visit(i, row)
		}
	})
}

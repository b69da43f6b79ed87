package ops

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
)

// MaxPool2D is the largest element of every window of images x f32[n c h w], the
// first of equals, and NaN if there is one; +0 is above −0. The gradient goes to that element,
// whose place in the window is kept in a byte, so a window has 256 elements at
// most.
func MaxPool2D(x graph.Value, w Window) graph.Value {
	return applyN(2, maxPool{w.defaults()}, x)[0]
}

// maxPool has the places as its second result.
type maxPool struct{ Window }

func (maxPool) Name() string { return "max-pool" }

func (o maxPool) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	t, err := o.pooled(in[0])
	if err != nil {
		return nil, err
	}
	if o.Size[0]*o.Size[1] > 256 {
		return nil, fmt.Errorf("a window of %v has more than 256 elements", o.Size)
	}
	return []graph.Type{t, {DType: graph.U8, Shape: t.Shape}}, nil
}

// Cost: the scratch holds a row of an image, as integers, for every block.
func (o maxPool) Cost(in, out []graph.Type) graph.Cost {
	c := streaming(in, out, int64(o.Size[0])*int64(o.Size[1]))
	c.Scratch = 8 * int64(planeBlocks(in[0])) * int64(in[0].Size(3))
	return c
}

// planeBlocks is the number of blocks into which an operation divides the planes
// of images.
func planeBlocks(x graph.Type) int {
	size := x.Size(2) * x.Size(3)
	return blocksOf(x.Elems()/size, size, 1)
}

func (o maxPool) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{apply(maxPoolGrad{o.Window, h, w}, n.Value(1), dout[0])}
}

func maxPoolCPU(o maxPool, c *kernel.Call) error {
	x, out, places := c.In[0].F32(), c.Out[0].F32(), c.Out[1].U8()
	f := o.frame(c.In[0].Type, c.Out[0].Type)
	size, windows, blocks := f.h*f.w, f.oh*f.ow, planeBlocks(c.In[0].Type)
	c.Pool.Run(blocks, func(b int) {
		keys := longs(c.Scratch)[b*f.w : (b+1)*f.w]
		lo, hi := block(b, blocks, len(x)/size)
		for i := lo; i < hi; i++ {
			f.largest(out[i*windows:(i+1)*windows], places[i*windows:], x[i*size:(i+1)*size], keys)
		}
	})
	return nil
}

// longs is scratch memory as 64-bit integers; it is aligned to 64 bytes.
func longs(scratch []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(scratch))), len(scratch)/8)
}

// largest finds the largest elements of a plane's windows, first in the columns of
// a row of windows, then in each window. Elements are compared together with
// their places as integers, without a branch: which is the largest cannot be
// predicted.
func (f frame) largest(out []float32, places []uint8, plane []float32, keys []int64) {
	for i := range f.oh {
		f.columns(keys, plane, i*f.Stride[0]-f.Pad[0])
		for j := range f.ow {
			x := j*f.Stride[1] - f.Pad[1]
			best := int64(math.MinInt64)
			for col := max(0, x); col < min(f.w, x+f.Size[1]); col++ {
				best = max(best, keys[col]-int64(col-x))
			}
			out[i*f.ow+j], places[i*f.ow+j] = unorder(best>>8), uint8(255-best&255)
		}
	}
}

// columns gives every column the key of its largest element from row y on: the
// number of the element in the order of floats, and 255 less its place in a window
// that begins in that column.
func (f frame) columns(keys []int64, plane []float32, y int) {
	for i := range keys {
		keys[i] = math.MinInt64
	}
	for row := max(0, y); row < min(f.h, y+f.Size[0]); row++ {
		place := int64(255 - (row-y)*f.Size[1])
		for i, v := range plane[row*f.w : (row+1)*f.w] {
			keys[i] = max(keys[i], order(v)<<8|place)
		}
	}
}

// order numbers floats in their order, NaN last.
func order(v float32) int64 {
	if v != v {
		return math.MaxInt32
	}
	b := int32(math.Float32bits(v))
	return int64(b ^ b>>31&math.MaxInt32)
}

// unorder is the float of a number.
func unorder(n int64) float32 {
	b := int32(n)
	return math.Float32frombits(uint32(b ^ b>>31&math.MaxInt32))
}

// elements visits the places in a plane's windows: visit gets a window's number
// and the element of the plane, or -1 if there is none.
func (f frame) elements(places []uint8, visit func(i, element int)) {
	width := uint32(f.Size[1]) // not 64 bits, for a faster division
	for i := range f.oh {
		top := i*f.Stride[0] - f.Pad[0]
		for j := range f.ow {
			p := uint32(places[i*f.ow+j])
			dy, dx := int(p/width), int(p%width)
			y, x := top+dy, j*f.Stride[1]-f.Pad[1]+dx
			element := y*f.w + x
			if dy >= f.Size[0] || y < 0 || y >= f.h || x < 0 || x >= f.w {
				element = -1
			}
			visit(i*f.ow+j, element)
		}
	}
}

// checkPlaces reports a place outside its window or the image.
func (f frame) checkPlaces(places []uint8) (err error) {
	n := f.oh * f.ow
	for at := 0; at < len(places) && err == nil; at += n {
		f.elements(places[at:at+n], func(i, element int) {
			if element < 0 && err == nil {
				err = fmt.Errorf("place %d at position %d is outside the image or the window of %v",
					places[at+i], at+i, f.Size)
			}
		})
	}
	return err
}

// maxPoolGrad adds every element of operand 1 to that element of an image of H×W
// which operand 0, u8, names. It and maxPoolPick are linear in f32 operands and
// each other's gradients.
type maxPoolGrad struct {
	Window
	H, W int
}

func (maxPoolGrad) Name() string { return "max-pool-grad" }

func (o maxPoolGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.U8, graph.F32); err != nil {
		return nil, err
	}
	if !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("operands differ in shape")
	}
	t, err := o.unpooled(in[1], o.H, o.W)
	if err != nil {
		return nil, err
	}
	return []graph.Type{t}, nil
}

func (maxPoolGrad) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[1].Elems()), Bytes: bytes(in, out)}
}

func (o maxPoolGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, apply(maxPoolPick{o.Window}, n.In[0], dout[0])}
}

func maxPoolGradCPU(o maxPoolGrad, c *kernel.Call) error {
	places, d, out := c.In[0].U8(), c.In[1].F32(), c.Out[0].F32()
	f := o.frame(c.Out[0].Type, c.In[1].Type)
	if err := f.checkPlaces(places); err != nil {
		return err
	}
	f.planes(c, len(out), func(image, window int) {
		plane := out[image : image+f.h*f.w]
		clear(plane)
		f.elements(places[window:], func(i, element int) { plane[element] += d[window+i] })
	})
	return nil
}

// maxPoolPick takes from every window of operand 1 the element at the place that
// operand 0, u8, names.
type maxPoolPick struct{ Window }

func (maxPoolPick) Name() string { return "max-pool-pick" }

func (o maxPoolPick) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.U8, graph.F32); err != nil {
		return nil, err
	}
	t, err := o.pooled(in[1])
	if err != nil {
		return nil, err
	}
	if !t.SameShape(in[0]) {
		return nil, fmt.Errorf("places %s of %s", in[0], t)
	}
	return []graph.Type{t}, nil
}

func (maxPoolPick) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: bytes(in, out)}
}

func (o maxPoolPick) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[1].Type())
	return []graph.Value{{}, apply(maxPoolGrad{o.Window, h, w}, n.In[0], dout[0])}
}

func maxPoolPickCPU(o maxPoolPick, c *kernel.Call) error {
	places, x, out := c.In[0].U8(), c.In[1].F32(), c.Out[0].F32()
	f := o.frame(c.In[1].Type, c.Out[0].Type)
	if err := f.checkPlaces(places); err != nil {
		return err
	}
	f.planes(c, len(x), func(image, window int) {
		f.elements(places[window:], func(i, element int) { out[window+i] = x[image+element] })
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, maxPoolCPU)
	kernel.Register(kernel.CPU, maxPoolGradCPU)
	kernel.Register(kernel.CPU, maxPoolPickCPU)
	for _, s := range windowVariants() {
		w := s.Op.(windowSum).Window
		register(Sample{Op: maxPool{w}, In: s.In, Fill: fills{0: spaced(0)}, Results: []int{0},
			Second: true, Eps: 1e-3})
	}
	// Operands of type u8 are ones: the second element of every window.
	w := blocked(2)
	x := framed(windowVariants()[0].In[0], 4, 6)
	y, err := w.pooled(x)
	if err != nil {
		panic(err)
	}
	places := graph.Type{DType: graph.U8, Shape: y.Shape}
	register(
		Sample{Op: maxPoolGrad{w, 4, 6}, In: []graph.Type{places, y}, NoGrad: []int{0},
			Second: true},
		Sample{Op: maxPoolPick{w}, In: []graph.Type{places, x}, NoGrad: []int{0}, Second: true},
	)
}

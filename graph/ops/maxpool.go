package ops

import (
	"fmt"
	"math"

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

func (o maxPool) Cost(in, out []graph.Type) graph.Cost {
	return streaming(in, out, int64(o.Size[0])*int64(o.Size[1]))
}

func (o maxPool) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{apply(maxPoolGrad{o.Window, h, w}, n.Value(1), dout[0])}
}

func maxPoolCPU(o maxPool, c *kernel.Call) error {
	x, out, places := c.In[0].F32(), c.Out[0].F32(), c.Out[1].U8()
	f := o.frame(c.In[0].Type, c.Out[0].Type)
	f.planes(c, len(x), func(image, window int) {
		plane := x[image : image+f.h*f.w]
		f.windows(func(p part) {
			out[window+p.i], places[window+p.i] = f.largest(plane, p)
		})
	})
	return nil
}

// largest is the largest element of a window and its place. Elements are compared
// together with their places as integers, without a branch: which is the largest
// cannot be predicted.
func (f frame) largest(plane []float32, p part) (value float32, place uint8) {
	best := int64(math.MinInt64)
	for y := p.top; y < p.bottom; y++ {
		place := int64(255 - (y-p.y)*f.Size[1] - (p.left - p.x))
		for _, v := range plane[y*f.w+p.left : y*f.w+p.right] {
			best = max(best, order(v)<<8|place)
			place--
		}
	}
	return unorder(best >> 8), uint8(255 - best&255)
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

// corner is the first element of window i, which may be outside the image.
func (f frame) corner(i int) (y, x int) {
	return i/f.ow*f.Stride[0] - f.Pad[0], i%f.ow*f.Stride[1] - f.Pad[1]
}

// element is the element of a plane at a place in window i, or -1 if there is
// none.
func (f frame) element(i int, place uint8) int {
	y, x := f.corner(i)
	y += int(place) / f.Size[1]
	x += int(place) % f.Size[1]
	if int(place) >= f.Size[0]*f.Size[1] || y < 0 || y >= f.h || x < 0 || x >= f.w {
		return -1
	}
	return y*f.w + x
}

// checkPlaces reports a place outside its window or the image.
func (f frame) checkPlaces(places []uint8) error {
	n := f.oh * f.ow
	for i, p := range places {
		if f.element(i%n, p) < 0 {
			return fmt.Errorf("place %d at position %d is outside the image or the window of %v", p, i, f.Size)
		}
	}
	return nil
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
		for i := range f.oh * f.ow {
			plane[f.element(i, places[window+i])] += d[window+i]
		}
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
		for i := range f.oh * f.ow {
			out[window+i] = x[image+f.element(i, places[window+i])]
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, maxPoolCPU)
	kernel.Register(kernel.CPU, maxPoolGradCPU)
	kernel.Register(kernel.CPU, maxPoolPickCPU)
	for _, s := range windowVariants() {
		w := s.Op.(windowSum).Window
		register(Sample{Op: maxPool{w}, In: s.In, Fill: fills{0: spaced(0)}, Results: []int{0}, Second: true, Eps: 1e-3})
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
		Sample{Op: maxPoolGrad{w, 4, 6}, In: []graph.Type{places, y}, NoGrad: []int{0}, Second: true},
		Sample{Op: maxPoolPick{w}, In: []graph.Type{places, x}, NoGrad: []int{0}, Second: true},
	)
}

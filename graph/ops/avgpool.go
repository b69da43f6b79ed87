package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/tensor"
)

// AvgPool2D is the mean of every window of images x f32[n c h w]. Where a window
// reaches out of the image, the mean is of the elements inside.
func AvgPool2D(x graph.Value, w Window) graph.Value {
	return apply(windowSum{Window: w.defaults(), Mean: true}, x)
}

// GlobalMean is the mean of every channel of images x f32[n c h w] → f32[n c].
func GlobalMean(x graph.Value) graph.Value { return Mean(x, 2, 3) }

// ResizeNearest repeats every element of images x f32[n c h w] in a block of
// factor×factor.
func ResizeNearest(x graph.Value, factor int) graph.Value {
	if !x.Valid() {
		return x
	}
	if h, w := frameSize(x.Type()); factor >= 1 && factor <= 1<<15 {
		return apply(windowSpread{Window: blocked(factor), H: h * factor, W: w * factor}, x)
	}
	return apply(windowSpread{Window: blocked(factor)}, x) // its shape rule says what is wrong
}

// frameSize is the height and the width of images, zero if they are none.
func frameSize(t graph.Type) (h, w int) {
	if t.Rank() != 4 {
		return 0, 0
	}
	return t.Size(2), t.Size(3)
}

// windowSum is the sum, or the mean, of every window. It and windowSpread are
// linear and each other's gradients.
type windowSum struct {
	Window
	Mean bool
}

func (o windowSum) Name() string {
	if o.Mean {
		return "avg-pool"
	}
	return "sum-pool"
}

func (o windowSum) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	t, err := o.pooled(in[0])
	if err != nil {
		return nil, err
	}
	return []graph.Type{t}, nil
}

func (o windowSum) Cost(in, out []graph.Type) graph.Cost {
	return streaming(in, out, int64(o.Size[0])*int64(o.Size[1]))
}

func (o windowSum) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{apply(windowSpread{o.Window, h, w, o.Mean}, dout[0])}
}

func windowSumCPU(o windowSum, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	f := o.frame(c.In[0].Type, c.Out[0].Type)
	f.planes(c, len(x), func(image, window int) {
		plane := x[image : image+f.h*f.w]
		f.windows(func(p part) {
			var sum float32
			for y := p.top; y < p.bottom; y++ {
				for _, v := range plane[y*f.w+p.left : y*f.w+p.right] {
					sum += v
				}
			}
			out[window+p.i] = sum * o.share(p)
		})
	})
	return nil
}

// share is the weight of each element of a window.
func (o windowSum) share(p part) float32 {
	if !o.Mean {
		return 1
	}
	return 1 / float32(p.elems())
}

// windowSpread gives every element of an image of H×W the sum of the windows that
// it is in, or of their shares of it.
type windowSpread struct {
	Window
	H, W int
	Mean bool
}

func (o windowSpread) Name() string { return windowSum{Mean: o.Mean}.Name() + "-grad" }

func (o windowSpread) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	t, err := o.unpooled(in[0], o.H, o.W)
	if err != nil {
		return nil, err
	}
	return []graph.Type{t}, nil
}

func (o windowSpread) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[0].Elems()) * int64(o.Size[0]) * int64(o.Size[1]), Bytes: bytes(in, out)}
}

func (o windowSpread) VJP(_ *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(windowSum{o.Window, o.Mean}, dout[0])}
}

func windowSpreadCPU(o windowSpread, c *kernel.Call) error {
	d, out := c.In[0].F32(), c.Out[0].F32()
	f := o.frame(c.Out[0].Type, c.In[0].Type)
	sum := windowSum{Mean: o.Mean}
	f.planes(c, len(out), func(image, window int) {
		plane := out[image : image+f.h*f.w]
		clear(plane)
		f.windows(func(p part) {
			v := d[window+p.i] * sum.share(p)
			for y := p.top; y < p.bottom; y++ {
				addScalar(plane[y*f.w+p.left:y*f.w+p.right], v)
			}
		})
	})
	return nil
}

// addScalar adds v to every element of a short or a long run.
func addScalar(x []float32, v float32) {
	if len(x) >= 16 {
		vec.AddScalar(x, x, v)
		return
	}
	for i := range x {
		x[i] += v
	}
}

// windowVariants are windows with images that they fit.
func windowVariants() []Sample {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	return []Sample{
		{Op: windowSum{Window: blocked(2)}, In: []graph.Type{f(2, 3, 4, 6)}},
		{Op: windowSum{Window: blocked(2)}, In: []graph.Type{f(1, 1, 5, 3)}},
		{Op: windowSum{Window: Window{Size: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [4]int{0, 0, 1, 1}}}, In: []graph.Type{f(3, 2, 6, 4)}},
		{Op: windowSum{Window: Window{Size: [2]int{3, 2}, Stride: [2]int{1, 3}, Pad: [4]int{2, 1, 1, 0}}}, In: []graph.Type{f(1, 3, 5, 7)}},
		{Op: windowSum{Window: Window{Size: [2]int{2, 17}, Stride: [2]int{3, 5}}}, In: []graph.Type{f(1, 3, 5, 23)}},
		{Op: windowSum{Window: blocked(1)}, In: []graph.Type{f(1, 1, 1, 3)}},
	}
}

func init() {
	kernel.Register(kernel.CPU, windowSumCPU)
	kernel.Register(kernel.CPU, windowSpreadCPU)
	for _, s := range windowVariants() {
		for _, mean := range []bool{false, true} {
			o := windowSum{s.Op.(windowSum).Window, mean}
			pooled, err := o.pooled(s.In[0])
			if err != nil {
				panic(err)
			}
			h, w := frameSize(s.In[0])
			register(
				Sample{Op: o, In: s.In, Second: true},
				Sample{Op: windowSpread{o.Window, h, w, mean}, In: []graph.Type{pooled}, Second: true},
			)
		}
	}
}

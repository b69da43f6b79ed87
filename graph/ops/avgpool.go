package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
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
	c := streaming(in, out, int64(o.Size[0])*int64(o.Size[1]))
	c.Scratch = 4 * int64(planeBlocks(in[0])) * int64(in[0].Size(3))
	return c
}

func (o windowSum) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{apply(windowSpread{o.Window, h, w, o.Mean}, dout[0])}
}

func windowSumCPU(o windowSum, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	f := o.frame(c.In[0].Type, c.Out[0].Type)
	size, windows := f.h*f.w, f.oh*f.ow
	planesWithRow(c, c.In[0].Type, f.w, func(i int, row []float32) {
		f.sums(out[i*windows:(i+1)*windows], x[i*size:(i+1)*size], row, o.Mean)
	})
	return nil
}

// sums adds up a plane's windows: the rows of a row of windows, and then the columns
// of each.
func (f frame) sums(out, plane, row []float32, mean bool) {
	for i := range f.oh {
		top, bottom := extent(i, f.Stride[0], f.Pad[0], f.Size[0], f.h)
		copy(row, plane[top*f.w:(top+1)*f.w])
		for y := top + 1; y < bottom; y++ {
			vec.Add(row, row, plane[y*f.w:(y+1)*f.w])
		}
		f.sumColumns(out[i*f.ow:(i+1)*f.ow], row)
		if mean {
			f.divide(out[i*f.ow:(i+1)*f.ow], out[i*f.ow:(i+1)*f.ow], bottom-top)
		}
	}
}

// sumColumns adds up the columns of a row of windows, column by column.
func (f frame) sumColumns(out, row []float32) {
	clear(out)
	for k := range f.Size[1] {
		first, end, at := f.column(k)
		for i := range out[first:end] {
			out[first+i] += row[at+i*f.Stride[1]]
		}
	}
}

// column is which windows of a row have their column k inside, and where the first
// of them has it.
func (f frame) column(k int) (first, end, at int) {
	stride, pad := f.Stride[1], f.Pad[1]
	first = min(f.ow, max(0, (pad-k+stride-1)/stride))
	end = max(first, min(f.ow, (f.w-1+pad-k+stride)/stride))
	return first, end, first*stride - pad + k
}

// divide divides a row of windows of so many rows by the number of their elements.
func (f frame) divide(out, in []float32, rows int) {
	if f.Pad[1] == 0 && f.Pad[3] == 0 { // all windows are inside
		vec.MulScalar(out, in, 1/float32(rows*f.Size[1]))
		return
	}
	for j := range out {
		left, right := extent(j, f.Stride[1], f.Pad[1], f.Size[1], f.w)
		out[j] = in[j] * (1 / float32(rows*(right-left)))
	}
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
	return graph.Cost{
		FLOPs: int64(in[0].Elems()) * int64(o.Size[0]) * int64(o.Size[1]), Bytes: bytes(in, out),
		Scratch: 4 * int64(planeBlocks(out[0])) * int64(out[0].Size(3)+in[0].Size(3)),
	}
}

func (o windowSpread) VJP(_ *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(windowSum{o.Window, o.Mean}, dout[0])}
}

func windowSpreadCPU(o windowSpread, c *kernel.Call) error {
	d, out := c.In[0].F32(), c.Out[0].F32()
	f := o.frame(c.Out[0].Type, c.In[0].Type)
	size, windows := f.h*f.w, f.oh*f.ow
	planesWithRow(c, c.Out[0].Type, f.w+f.ow, func(i int, row []float32) {
		f.spread(out[i*size:(i+1)*size], d[i*windows:(i+1)*windows], row[:f.w], row[f.w:], o.Mean)
	})
	return nil
}

// spread gives a plane what its windows have, a row of windows at a time.
func (f frame) spread(plane, d, row, shares []float32, mean bool) {
	clear(plane)
	for i := range f.oh {
		top, bottom := extent(i, f.Stride[0], f.Pad[0], f.Size[0], f.h)
		values := d[i*f.ow : (i+1)*f.ow]
		if mean {
			f.divide(shares, values, bottom-top)
			values = shares
		}
		f.spreadColumns(row, values)
		for y := top; y < bottom; y++ {
			to := plane[y*f.w : (y+1)*f.w]
			if f.Size[0] <= f.Stride[0] {
				copy(to, row)
				continue
			}
			vec.Add(to, to, row)
		}
	}
}

// spreadColumns gives a row what a row of windows has, column by column.
func (f frame) spreadColumns(row, d []float32) {
	clear(row)
	for k := range f.Size[1] {
		first, end, at := f.column(k)
		for i, v := range d[first:end] {
			row[at+i*f.Stride[1]] += v
		}
	}
}

// windowVariants are windows with images that they fit.
func windowVariants() []Sample {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	return []Sample{
		{Op: windowSum{Window: blocked(2)}, In: []graph.Type{f(2, 3, 4, 6)}},
		{Op: windowSum{Window: blocked(2)}, In: []graph.Type{f(1, 1, 5, 3)}},
		{Op: windowSum{Window: Window{Size: [2]int{3, 3}, Stride: [2]int{2, 2},
			Pad: [4]int{0, 0, 1, 1}}}, In: []graph.Type{f(3, 2, 6, 4)}},
		{Op: windowSum{Window: Window{Size: [2]int{3, 2}, Stride: [2]int{1, 3},
			Pad: [4]int{2, 1, 1, 0}}}, In: []graph.Type{f(1, 3, 5, 7)}},
		{Op: windowSum{Window: Window{Size: [2]int{2, 17}, Stride: [2]int{3, 5}}},
			In: []graph.Type{f(1, 3, 5, 23)}},
		{Op: windowSum{Window: Window{Size: [2]int{5, 4}, Stride: [2]int{3, 2},
			Pad: [4]int{4, 3, 3, 3}}}, In: []graph.Type{f(1, 2, 2, 1)}},
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
				Sample{Op: windowSpread{o.Window, h, w, mean}, In: []graph.Type{pooled},
					Second: true},
			)
		}
	}
}

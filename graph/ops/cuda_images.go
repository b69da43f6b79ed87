package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// channelParts are the parts of a channel's elements, each for a team.
func channelParts(t tensor.Type) partial {
	p := planesOf(t)
	const enough, least = 1 << 11, 1 << 12
	return reduction{outer: p.c, n: p.n * p.s, inner: 1}.inParts(min(enough/max(1, p.c),
		p.n*p.s/least))
}

// channelScratch has two numbers for each part, and behind them as many as three for each channel.
func channelScratch(t tensor.Type) int64 {
	p := channelParts(t)
	return int64(bytesOf(p.outer * (2*p.parts + 3)))
}

func batchNormCUDA(o batchNorm, c *cuda.Call) ([]cuda.Command, error) {
	x, n := c.In[0], elems(c.In[0])
	p, g := channelParts(x.Type), planesOf(x.Type)
	factors := c.Scratch + bytesOf(2*g.c*p.parts)
	return []cuda.Command{
		overRows(kernelOf("batch_parts", x), g.c*p.parts, p.per, p.args(c.Scratch, x, g.c, g.s)...),
		overElements("batch_moments", g.c, p.args(c.Out[1], c.Out[2], factors, c.Scratch, c.In[1],
			g.c, o.Eps)...),
		overElements(kernelOf("batch_norm", x), n, c.Out[0], x, c.In[2], c.Out[1], factors, n, g.c,
			g.s),
	}, nil
}

func batchNormGradCUDA(o batchNormGrad, c *cuda.Call) ([]cuda.Command, error) {
	x, scale, mean, variance, d := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	n, p, g := elems(x), channelParts(x.Type), planesOf(x.Type)
	if n == 0 {
		return []cuda.Command{wiped(c.Out[1]), wiped(c.Out[2])}, nil
	}
	slopes := c.Scratch + bytesOf(2*g.c*p.parts)
	return []cuda.Command{
		overRows(kernelOf("batch_grad_parts", x), g.c*p.parts, p.per,
			p.args(c.Scratch, x, d, mean, g.c, g.s)...),
		overElements("batch_grad_sums", g.c, p.args(c.Out[1], c.Out[2], slopes, c.Scratch, variance,
			g.c, o.Eps)...),
		overElements(kernelOf("batch_norm_grad", x), n, c.Out[0], x, d, scale, mean, slopes, n, g.c,
			g.s),
	}, nil
}

// windowArgs are the geometry of windows as kernels take it, and more.
func windowArgs(w Window, image, pooled tensor.Type, more ...any) []any {
	f := w.frame(image, pooled)
	return append([]any{w.Size[0], w.Size[1], w.Stride[0], w.Stride[1], w.Pad[0], w.Pad[1], f.h,
		f.w, f.oh, f.ow}, more...)
}

// overWindows launches a thread for each element of the result.
func overWindows(name string, w Window, image, pooled tensor.Type, n int,
	list ...any) ([]cuda.Command, error) {
	return only(overElements(name, n, windowArgs(w, image, pooled, list...)...))
}

func windowSumCUDA(o windowSum, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return overWindows(kernelOf("window_sum", c.In[0]), o.Window, c.In[0].Type, c.Out[0].Type, n,
		c.Out[0], c.In[0], n, o.Mean)
}

func windowSpreadCUDA(o windowSpread, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return overWindows(kernelOf("window_spread", c.In[0]), o.Window, c.Out[0].Type, c.In[0].Type, n,
		c.Out[0], c.In[0], n, o.Mean)
}

func maxPoolCUDA(o maxPool, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return overWindows(kernelOf("max_pool", c.In[0]), o.Window, c.In[0].Type, c.Out[0].Type, n,
		c.Out[0], c.Out[1], c.In[0], n)
}

func maxPoolGradCUDA(o maxPoolGrad, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return overWindows(kernelOf("max_pool_grad", c.In[1]), o.Window, c.Out[0].Type, c.In[1].Type, n,
		c.Out[0], c.In[0], c.In[1], n)
}

func maxPoolPickCUDA(o maxPoolPick, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return overWindows("max_pool_pick", o.Window, c.In[1].Type, c.Out[0].Type, n, c.Out[0],
		c.In[0], c.In[1], n)
}

func maxPoolNDCUDA(o maxPoolND, c *cuda.Call) ([]cuda.Command, error) {
	b, n := o.box(c.In[0].Type, c.Out[0].Type), elems(c.Out[0])
	var list []any
	for _, of := range []func(i int) int{
		func(i int) int { return b.axis[i].Size }, func(i int) int { return b.axis[i].Stride },
		func(i int) int { return b.axis[i].Dilation }, func(i int) int { return b.axis[i].Before },
		func(i int) int { return b.in[i] }, func(i int) int { return b.out[i] },
	} {
		for i := range maxSpatial {
			list = append(list, of(i))
		}
	}
	return only(overElements("max_pool_nd", n, append(list, c.Out[0], c.Out[1], c.In[0], n)...))
}

func bilinearCUDA(_ bilinear, c *cuda.Call) ([]cuda.Command, error) {
	s, n := scalingOf(c.In[0].Type, c.Out[0].Type), elems(c.Out[0])
	return only(overElements("bilinear", n, c.Out[0], c.In[0], n, s.h, s.w, s.oh, s.ow))
}

func bilinearGradCUDA(_ bilinearGrad, c *cuda.Call) ([]cuda.Command, error) {
	s, n := scalingOf(c.Out[0].Type, c.In[0].Type), elems(c.Out[0])
	return only(overElements("bilinear_grad", n, c.Out[0], c.In[0], n, s.h, s.w, s.oh, s.ow))
}

func init() {
	cuda.Register(batchNormCUDA, func(_ batchNorm, in, _ []graph.Type) int64 {
		return channelScratch(in[0])
	})
	cuda.Register(batchNormGradCUDA, func(_ batchNormGrad, in, _ []graph.Type) int64 {
		return channelScratch(in[0])
	})
	cuda.Register(windowSumCUDA, nil)
	cuda.Register(windowSpreadCUDA, nil)
	cuda.Register(maxPoolCUDA, nil)
	cuda.Register(maxPoolGradCUDA, nil)
	cuda.Register(maxPoolPickCUDA, nil)
	cuda.Register(maxPoolNDCUDA, nil)
	cuda.Register(bilinearCUDA, nil)
	cuda.Register(bilinearGradCUDA, nil)
}

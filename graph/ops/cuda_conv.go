package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/conv"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// convArgs are a convolution's geometry as kernels take it, and more.
func convArgs(s conv.Shape, more ...any) []any {
	return append([]any{s.Batch, s.Groups, s.InC / s.Groups, s.InH, s.InW, s.OutC / s.Groups,
		s.OutH(), s.OutW(), s.KH, s.KW, s.StrideH, s.StrideW, s.DilH, s.DilW, s.PadTop,
		s.PadLeft}, more...)
}

// tileSide is the rows, and the columns, of results that a block computes.
const tileSide = 64

func tilesOf(n int) int { return (n + tileSide - 1) / tileSide }

// pixelwise reports whether a convolution multiplies every element of an image alone.
func pixelwise(s conv.Shape) bool {
	return s.KH == 1 && s.KW == 1 && s.StrideH == 1 && s.StrideW == 1 && s.Groups == 1 &&
		s.PadTop == 0 && s.PadLeft == 0 && s.PadBottom == 0 && s.PadRight == 0
}

// pixels is the product of a filter, or its transpose, and each image.
func pixels(filter, images, out cuda.Operand, s conv.Shape, back bool) []cuda.Command {
	m, k, size := s.OutC, s.InC, s.InH*s.InW
	if back {
		m, k = k, m
	}
	return multiplied(cuda.Gemm{A: filter.Addr, B: images.Addr, C: out.Addr, TransA: back, M: m,
		N: size, K: k, LdA: s.InC, LdB: size, LdC: size, Batch: s.Batch,
		StrideB: int64(k * size), StrideC: int64(m * size),
		HalfIn: images.Type.DType == graph.BF16, HalfOut: out.Type.DType == graph.BF16})
}

// convolved is a convolution by the library that the plan names, or by kernels of our own.
func convolved(c *cuda.Call, pass cuda.Pass, s conv.Shape, images, filters, results cuda.Operand,
	own ...cuda.Command) []cuda.Command {
	if c.Library == "" {
		return own
	}
	return []cuda.Command{cuda.Conv{Pass: pass, Shape: s, Images: images.Addr,
		Filters: filters.Addr, Results: results.Addr, Scratch: c.Scratch, Room: c.Room,
		Half: images.Type.DType == graph.BF16}}
}

// libraryConv is a convolution that a library may be asked for, of operands of a type.
func libraryConv(pass cuda.Pass, s conv.Shape, err error, of graph.Type) (cuda.Conv, bool) {
	return cuda.Conv{Pass: pass, Shape: s, Half: of.DType == graph.BF16},
		err == nil && symmetric(s)
}

// symmetric reports whether a convolution is one of images with as many zeros below as above
// and right as left: those that no window reaches make no difference.
func symmetric(s conv.Shape) bool {
	same := s
	same.PadBottom, same.PadRight = s.PadTop, s.PadLeft
	return same.OutH() == s.OutH() && same.OutW() == s.OutW()
}

func conv2DCUDA(o conv2D, c *cuda.Call) ([]cuda.Command, error) {
	s, err := o.shape(inF32(typesOf(c.In)))
	if err != nil || pixelwise(s) {
		return pixels(c.In[1], c.In[0], c.Out[0], s, false), err
	}
	blocks := s.Groups * tilesOf(s.OutC/s.Groups) * tilesOf(s.Batch*s.OutH()*s.OutW())
	own := launched(kernelOf("conv_forward", c.In[0]), blocks, convArgs(s, c.Out[0], c.In[0],
		c.In[1])...)
	return convolved(c, cuda.Forward, s, c.In[0], c.In[1], c.Out[0], own), nil
}

// convChainCUDA is the convolution, and the chain over it in place.
func convChainCUDA(o convChain, c *cuda.Call) ([]cuda.Command, error) {
	images := *c
	images.In = c.In[:2]
	list, err := conv2DCUDA(o.Conv, &images)
	if err != nil {
		return nil, err
	}
	launch, err := o.Chain.launch(append([]cuda.Operand{c.Out[0]}, c.In[2:]...), c.Out[0])
	return append(list, launch), err
}

func convInputGradCUDA(o convInputGrad, c *cuda.Call) ([]cuda.Command, error) {
	s, err := o.shape(inF32(typesOf(c.In)))
	if err != nil || pixelwise(s) {
		return pixels(c.In[1], c.In[0], c.Out[0], s, true), err
	}
	blocks := s.Groups * tilesOf(s.InC/s.Groups) * tilesOf(s.Batch*s.InH*s.InW)
	own := launched(kernelOf("conv_input", c.In[0]), blocks, convArgs(s, c.Out[0], c.In[0],
		c.In[1])...)
	return convolved(c, cuda.ToImages, s, c.Out[0], c.In[1], c.In[0], own), nil
}

// filterParts are those of the sum over all results: as many as occupy a GPU.
func filterParts(s conv.Shape) partial {
	const enough, least = 264, 256
	n := s.InC / s.Groups * s.KH * s.KW
	tiles := s.Groups * tilesOf(s.OutC/s.Groups) * tilesOf(n)
	k := s.Batch * s.OutH() * s.OutW()
	return reduction{outer: 1, n: k, inner: s.OutC * n}.inParts(min(enough/tiles, k/least))
}

// convFilterGradCUDA adds up in f32: filters of bfloat16 are made in the scratch, before the sum's
// parts, and rounded.
func convFilterGradCUDA(o convFilterGrad, c *cuda.Call) ([]cuda.Command, error) {
	s, err := o.shape(inF32(typesOf(c.In)))
	if err != nil {
		return nil, err
	}
	made, parts, half := c.Out[0].Addr, c.Scratch, c.Out[0].Type.DType == graph.BF16
	if half {
		made, parts = parts, parts+uint64(wideFilters(c.Out[0].Type))
	}
	p, to := filterParts(s), made
	if p.parts > 1 {
		to = parts
	}
	blocks := p.parts * s.Groups * tilesOf(s.OutC/s.Groups) * tilesOf(p.inner/s.OutC)
	list := []cuda.Command{launched(kernelOf("conv_filter", c.In[0]), blocks, convArgs(s, to,
		c.In[0], c.In[1], p.per, p.parts)...)}
	if p.parts > 1 {
		f := p.folded()
		list = append(list, overElements("sum_columns", f.inner, f.args(made, to, f.inner)...))
	}
	if half {
		n := elems(c.Out[0])
		list = append(list, overElements("narrow", n, c.Out[0], made, n))
	}
	return convolved(c, cuda.ToFilters, s, c.In[0], c.Out[0], c.In[1], list...), nil
}

// wideFilters is the scratch of filters of bfloat16 in f32.
func wideFilters(t graph.Type) int64 { return padded(4 * int64(t.Elems())) }

func convFilterGradScratch(o convFilterGrad, in, out []graph.Type) int64 {
	s, err := o.shape(inF32(in))
	if err != nil {
		return 0
	}
	bytes := filterParts(s).scratch(4)
	if out[0].DType == graph.BF16 {
		bytes += wideFilters(out[0])
	}
	return bytes
}

func init() {
	cuda.Register(conv2DCUDA, nil)
	cuda.Register(convChainCUDA, nil)
	cuda.Register(convInputGradCUDA, nil)
	cuda.Register(convFilterGradCUDA, convFilterGradScratch)
	forward := func(o conv2D, in, _ []graph.Type) (cuda.Conv, bool) {
		s, err := o.shape(inF32(in))
		c, ok := libraryConv(cuda.Forward, s, err, in[0])
		return c, ok && !pixelwise(s)
	}
	cuda.Convolves(forward)
	cuda.Convolves(func(o convChain, in, out []graph.Type) (cuda.Conv, bool) {
		return forward(o.Conv, in[:2], out)
	})
	cuda.Convolves(func(o convInputGrad, in, _ []graph.Type) (cuda.Conv, bool) {
		s, err := o.shape(inF32(in))
		c, ok := libraryConv(cuda.ToImages, s, err, in[0])
		return c, ok && !pixelwise(s)
	})
	cuda.Convolves(func(o convFilterGrad, in, _ []graph.Type) (cuda.Conv, bool) {
		s, err := o.shape(inF32(in))
		return libraryConv(cuda.ToFilters, s, err, in[0])
	})
}

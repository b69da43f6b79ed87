package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// A norm over a batch needs all of its operand before it makes any of its result. In stages, each
// of which is cut between images, it has the bits of the whole: what is added up image by image
// stays in f64. None has a gradient, since they are made after differentiation.

// InStages: thin planes are added up across channels, in f32 and more than once.
func (batchNorm) InStages(in []graph.Type) bool {
	return planesOf(in[0]).n > 1 && !planesOf(in[0]).thin()
}

// Stages are the moments, the statistics that they come to, and the result.
func (o batchNorm) Stages(in []graph.Value, u graph.Unfolder) []graph.Value {
	x, scale, bias := u.Whole(in[0]), u.Whole(in[1]), u.Whole(in[2])
	moments := u.Node(1, "moments", batchMoments{}, x)[0]
	stats := u.Node(2, "statistics", batchStatistics{planesOf(in[0].Type()).elements()}, moments)
	y := u.Node(1, "applied", batchApply(o), x, scale, bias, stats[0], stats[1])[0]
	return []graph.Value{y, stats[0], stats[1]}
}

// InStages is that of the norm.
func (batchNormGrad) InStages(in []graph.Type) bool { return batchNorm{}.InStages(in) }

// Stages are the sums, the gradients that they come to, and the gradient of x.
func (o batchNormGrad) Stages(in []graph.Value, u graph.Unfolder) []graph.Value {
	x, scale, mean, variance, d := u.Whole(in[0]), u.Whole(in[1]), u.Whole(in[2]), u.Whole(in[3]),
		u.Whole(in[4])
	sums := u.Node(1, "sums", batchSums{}, x, mean, d)[0]
	ends := u.Node(2, "ends", batchEnds(o), sums, variance)
	back := batchBack{o.Eps, planesOf(in[0].Type()).elements()}
	dx := u.Node(1, "back", back, x, scale, mean, variance, sums, d)[0]
	return []graph.Value{dx, ends[0], ends[1]}
}

// elements are those of a channel.
func (p planes) elements() int { return p.n * p.s }

// channelled64 is what is kept of channels c in f64: two numbers of each.
func channelled64(c int) graph.Type { return tensor.Of(graph.F64, 2, c) }

// batchMoments are the means of the channels of images and the sums of the squares of what differs
// from them, f64[2 c]. From images were there before: operand 0 is what those come to.
type batchMoments struct{ From int }

func (batchMoments) Name() string { return "batch-moments" }

func (o batchMoments) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.From < 0 {
		return nil, fmt.Errorf("%d images before", o.From)
	}
	return kept64(in, o.From > 0, 0)
}

// kept64 checks for what is kept, if there is any, images, so many vectors of their channels, and
// then images again if there are vectors.
func kept64(in []graph.Type, begun bool, vectors int) ([]graph.Type, error) {
	rest := in[min(len(in), flag(begun)):]
	list := []bool{false}
	for range vectors {
		list = append(list, true)
	}
	if vectors > 0 {
		list = append(list, false)
	}
	c, err := channelled(rest, 1, 0, list...)
	if err != nil {
		return nil, err
	}
	kept := channelled64(c.Elems())
	if begun && !in[0].Equal(kept) {
		return nil, fmt.Errorf("sums are %s, want %s%s", in[0], kept, convertible(in[0], graph.F64))
	}
	return []graph.Type{kept}, nil
}

// Cost: the scratch holds a plane for every block of channels.
func (o batchMoments) Cost(in, out []graph.Type) graph.Cost { return stageCost(in, out, 4) }

// stageCost is that of a stage whose last operand is images.
func stageCost(in, out []graph.Type, flops int64) graph.Cost {
	p := planesOf(in[len(in)-1])
	return graph.Cost{FLOPs: flops * int64(p.n*p.c*p.s), Bytes: bytes(in, out),
		Scratch: 4 * int64(p.blocks()) * int64(p.s)}
}

// InPlace: images are added to where the sums are.
func (o batchMoments) InPlace(_, _ []graph.Type) []int { return []int{0}[:flag(o.From > 0)] }

func (batchMoments) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

// Cut is between images.
func (o batchMoments) Cut(in, _ []graph.Type) (graph.Cut, bool) { return cutStage(in, o.From == 0) }

// cutStage is the cut of a sum over images, which some of the operands are; one of parts is not
// cut again.
func cutStage(in []graph.Type, whole bool) (graph.Cut, bool) {
	c, ok := cutRows(in, in, 1)
	for i, t := range in {
		if t.Rank() == 1 {
			c.In[i] = 0
		}
	}
	c.Out = []int{0}
	return c, ok && whole
}

// Part has the images before it.
func (batchMoments) Part(_, _ []graph.Type, lo, _ int) graph.Op { return batchMoments{lo} }

func batchMomentsCPU(o batchMoments, c *kernel.Call) error {
	x, sums := c.In[len(c.In)-1], begun64(c, o.From > 0)
	p := planesOf(x.Type)
	p.channels(c, func(ch int, buf []float32) {
		m := &moments{n: o.From * p.s, mean: sums[ch], squares: sums[p.c+ch]}
		p.each(ch, func(lo, hi int) { m.add(x.F32()[lo:hi], buf) })
		sums[ch], sums[p.c+ch] = m.mean, m.squares
	})
	return nil
}

// begun64 is the result, with what operand 0 has if there is one, or zeros.
func begun64(c *kernel.Call, begun bool) []float64 {
	sums := c.Out[0].F64()
	if !begun {
		clear(sums)
	} else if kept := c.In[0].F64(); &kept[0] != &sums[0] {
		copy(sums, kept)
	}
	return sums
}

// batchStatistics are the mean and the variance of channels of Count elements, of their moments.
type batchStatistics struct{ Count int }

func (batchStatistics) Name() string { return "batch-statistics" }

func (o batchStatistics) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F64); err != nil {
		return nil, err
	}
	if o.Count < 1 {
		return nil, fmt.Errorf("%d elements, want 1 or more", o.Count)
	}
	return twoVectors(in[0])
}

// twoVectors are those of two numbers of every channel.
func twoVectors(kept graph.Type) ([]graph.Type, error) {
	if kept.Rank() != 2 || kept.Size(0) != 2 {
		return nil, fmt.Errorf("operand 0 is %s, want two rows", kept)
	}
	v := tensor.Of(graph.F32, kept.Size(1))
	return []graph.Type{v, v}, nil
}

func (batchStatistics) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (batchStatistics) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func batchStatisticsCPU(o batchStatistics, c *kernel.Call) error {
	kept, mean, variance := c.In[0].F64(), c.Out[0].F32(), c.Out[1].F32()
	for ch := range mean {
		mean[ch] = float32(kept[ch])
		variance[ch] = float32(kept[len(mean)+ch] / float64(o.Count))
	}
	return nil
}

// batchApply is a norm of which the mean and the variance are known: of x, scale, bias, mean and
// variance.
type batchApply struct{ Eps float32 }

func (batchApply) Name() string { return "batch-apply" }

func (o batchApply) Infer(in []graph.Type) ([]graph.Type, error) {
	if _, err := channelled(in, 1, o.Eps, false, true, true, true, true); err != nil {
		return nil, err
	}
	return in[:1:1], nil
}

func (batchApply) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 3) }

// InPlace: a channel is read before it is overwritten.
func (batchApply) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (batchApply) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

// Cut is between images.
func (batchApply) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, 1, 1, 2, 3, 4)
}

// Part is the operation itself.
func (o batchApply) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func batchApplyCPU(o batchApply, c *kernel.Call) error {
	x, scale, bias, mean, variance := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32(),
		c.In[4].F32()
	p := planesOf(c.In[0].Type)
	c.Pool.Run(p.blocks(), func(b int) {
		lo, hi := block(b, p.blocks(), p.c)
		for ch := lo; ch < hi; ch++ {
			factor := scale[ch] * inverse(variance[ch], o.Eps)
			p.each(ch, func(lo, hi int) {
				vec.Affine(c.Out[0].F32()[lo:hi], x[lo:hi], mean[ch], factor, bias[ch])
			})
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, batchMomentsCPU)
	kernel.Register(kernel.CPU, batchStatisticsCPU)
	kernel.Register(kernel.CPU, batchApplyCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: batchMoments{}, In: []graph.Type{f(3, 5, 4, 3)}, NoGrad: []int{0}},
		Sample{Op: batchMoments{2}, In: []graph.Type{channelled64(5), f(3, 5, 4, 3)},
			NoGrad: []int{0, 1}},
		Sample{Op: batchStatistics{330}, In: []graph.Type{channelled64(5)}, NoGrad: []int{0}},
		Sample{Op: batchApply{0.1}, In: []graph.Type{f(3, 5, 4, 3), f(5), f(5), f(5), f(5)},
			Fill: fills{4: positive}, NoGrad: []int{0, 1, 2, 3, 4}},
	)
}

package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// batchSums are the sums of a norm's gradient over images, f64[2 c]: of (x−μ)·d and of d, for
// operands x, mean and d. With Add operand 0 is what they are added to.
type batchSums struct{ Add bool }

func (batchSums) Name() string { return "batch-sums" }

func (o batchSums) Infer(in []graph.Type) ([]graph.Type, error) { return kept64(in, o.Add, 1) }

func (batchSums) Cost(in, out []graph.Type) graph.Cost { return stageCost(in, out, 4) }

// InPlace: images are added to where the sums are.
func (o batchSums) InPlace(_, _ []graph.Type) []int { return []int{0}[:flag(o.Add)] }

func (batchSums) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

// Cut is between images.
func (o batchSums) Cut(in, _ []graph.Type) (graph.Cut, bool) { return cutStage(in, !o.Add) }

// Part adds to the sums before.
func (batchSums) Part(_, _ []graph.Type, lo, _ int) graph.Op { return batchSums{lo > 0} }

func batchSumsCPU(o batchSums, c *kernel.Call) error {
	in, sums := c.In[len(c.In)-3:], begun64(c, o.Add)
	x, mean, d := in[0].F32(), in[1].F32(), in[2].F32()
	p := planesOf(in[0].Type)
	p.channels(c, func(ch int, buf []float32) {
		along, sum := sums[ch], sums[p.c+ch]
		p.each(ch, func(lo, hi int) { addSlopes(x[lo:hi], d[lo:hi], mean[ch], buf, &along, &sum) })
		sums[ch], sums[p.c+ch] = along, sum
	})
	return nil
}

// batchEnds are the gradients of scale and bias, of a norm's sums and its variance.
type batchEnds struct{ Eps float32 }

func (batchEnds) Name() string { return "batch-ends" }

func (o batchEnds) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F64, graph.F32); err != nil {
		return nil, err
	}
	out, err := twoVectors(in[0])
	if err == nil && !in[1].Equal(out[0]) {
		err = fmt.Errorf("the variance is %s, want %s", in[1], out[0])
	}
	return out, err
}

func (batchEnds) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (batchEnds) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func batchEndsCPU(o batchEnds, c *kernel.Call) error {
	sums, variance, dscale, dbias := c.In[0].F64(), c.In[1].F32(), c.Out[0].F32(), c.Out[1].F32()
	for ch := range dscale {
		dscale[ch] = float32(sums[ch] * float64(inverse(variance[ch], o.Eps)))
		dbias[ch] = float32(sums[len(dscale)+ch])
	}
	return nil
}

// batchBack is the gradient of a norm's x, of channels of Count elements, for operands x, scale,
// mean, variance, the sums and d.
type batchBack struct {
	Eps   float32
	Count int
}

func (batchBack) Name() string { return "batch-back" }

func (o batchBack) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 6); err != nil {
		return nil, err
	}
	c, err := channelled(append(in[:4:4], in[5]), 1, o.Eps, false, true, true, true, false)
	if err != nil {
		return nil, err
	}
	if kept := channelled64(c.Elems()); o.Count < 1 || !in[4].Equal(kept) {
		return nil, fmt.Errorf("sums of %d elements are %s, want %s of 1 or more%s", o.Count, in[4],
			kept, convertible(in[4], graph.F64))
	}
	return in[:1:1], nil
}

func (batchBack) Cost(in, out []graph.Type) graph.Cost { return stageCost(in, out, 5) }

// InPlace: a plane is read before it is overwritten.
func (batchBack) InPlace(_, _ []graph.Type) []int { return []int{5, 0} }

func (batchBack) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

// Cut is between images.
func (batchBack) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, 1, 1, 2, 3, 4)
}

// Part is the operation itself.
func (o batchBack) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func batchBackCPU(o batchBack, c *kernel.Call) error {
	x, scale, mean, variance, sums, d := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(),
		c.In[3].F32(), c.In[4].F64(), c.In[5].F32()
	p := planesOf(c.In[0].Type)
	p.channels(c, func(ch int, buf []float32) {
		s := newPlaneSlope(scale[ch], mean[ch], inverse(variance[ch], o.Eps), sums[ch],
			sums[p.c+ch], o.Count)
		p.each(ch, func(lo, hi int) { s.apply(c.Out[0].F32()[lo:hi], x[lo:hi], d[lo:hi], buf) })
	})
	return nil
}

// addSlopes adds a plane to a channel's sums.
func addSlopes(x, d []float32, mean float32, buf []float32, along, sum *float64) {
	vec.AddScalar(buf, x, -mean)
	*sum += float64(vec.Sum(d))
	*along += float64(vec.Dot(buf, d))
}

// planeSlope is what a channel's gradient is made by.
type planeSlope struct{ mean, factor, along, shift float32 }

// newPlaneSlope is that of a channel of so many elements, of its sums.
func newPlaneSlope(scale, mean, inverse float32, along, sum float64, elements int) planeSlope {
	inv, count := float64(inverse), float64(elements)
	factor := float64(scale) * inv
	return planeSlope{mean, float32(factor), float32(-factor * inv * (along * inv) / count),
		float32(-factor * sum / count)}
}

// apply is the gradient of a plane.
func (s planeSlope) apply(dx, x, d, buf []float32) {
	vec.Affine(buf, x, s.mean, s.along, s.shift)
	vec.MulScalar(dx, d, s.factor)
	vec.Add(dx, dx, buf)
}

func init() {
	kernel.Register(kernel.CPU, batchSumsCPU)
	kernel.Register(kernel.CPU, batchEndsCPU)
	kernel.Register(kernel.CPU, batchBackCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	x := f(3, 5, 4, 3)
	register(
		Sample{Op: batchSums{}, In: []graph.Type{x, f(5), x}, NoGrad: []int{0, 1, 2}},
		Sample{Op: batchSums{true}, In: []graph.Type{channelled64(5), x, f(5), x},
			NoGrad: []int{0, 1, 2, 3}},
		Sample{Op: batchEnds{0.1}, In: []graph.Type{channelled64(5), f(5)},
			Fill: fills{1: positive}, NoGrad: []int{0, 1}},
		Sample{Op: batchBack{0.1, 330}, In: []graph.Type{x, f(5), f(5), f(5), channelled64(5), x},
			Fill: fills{3: positive}, NoGrad: []int{0, 1, 2, 3, 4, 5}},
	)
}

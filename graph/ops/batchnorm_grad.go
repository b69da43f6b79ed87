package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// batchNormGrad is the gradient of batchNorm by x, scale and bias, for operands
// x, scale, mean, variance and the gradient d of the result. With y the
// normalised channel, inv its inverse deviation and means over the channel:
// scale·inv·(d − mean(d) − y·mean(d·y)), Σ d·y and Σ d.
type batchNormGrad struct{ Eps float32 }

func (batchNormGrad) Name() string { return "batch-norm-grad" }

func (o batchNormGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	c, err := channelled(in, 1, o.Eps, false, true, true, true, false)
	if err != nil {
		return nil, err
	}
	return []graph.Type{in[0], c, c}, nil
}

func (batchNormGrad) Cost(in, out []graph.Type) graph.Cost {
	return planesOf(in[0]).cost(in, out, 9)
}

// InPlace: a channel's sums are made before it is overwritten.
func (batchNormGrad) InPlace(_, _ []graph.Type) []int { return []int{4, 0} }

// VJP counts the dependence on the mean and the variance as one on x, of which
// they are.
func (o batchNormGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, scale, mean, variance, d := n.In[0], n.In[1], n.In[2], n.In[3], n.In[4]
	axes := append([]int{0}, axesFrom(2, x.Type().Rank())...)
	s := normSecond{x: x, scale: scale, d: d, channel: 1, axes: axes, eps: o.Eps}
	s.again = func(scale, d graph.Value) graph.Value {
		return applyN(3, o, x, scale, mean, variance, d)[0]
	}
	dx, dscale, dd := s.gradients(dout)
	return []graph.Value{dx, dscale, {}, {}, dd}
}

func batchNormGradCPU(o batchNormGrad, c *kernel.Call) error {
	x, scale, mean, variance, d := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32(),
		c.In[4].F32()
	out, dscale, dbias := c.Out[0].F32(), c.Out[1].F32(), c.Out[2].F32()
	p := planesOf(c.In[0].Type)
	if len(x) == 0 {
		clear(dscale)
		clear(dbias)
		return nil
	}
	if p.thin() {
		p.columns(c, func(t columns) {
			t.gradient(out, x, d, scale, mean, variance, dscale, dbias, o.Eps)
		})
		return nil
	}
	p.channels(c, func(ch int, buf []float32) {
		inv := inverse(variance[ch], o.Eps)
		var sum, along float64
		p.each(ch, func(lo, hi int) { addSlopes(x[lo:hi], d[lo:hi], mean[ch], buf, &along, &sum) })
		s := newPlaneSlope(scale[ch], mean[ch], inv, along, sum, p.elements())
		p.each(ch, func(lo, hi int) { s.apply(out[lo:hi], x[lo:hi], d[lo:hi], buf) })
		dscale[ch], dbias[ch] = float32(along*float64(inv)), float32(sum)
	})
	return nil
}

// normSecond is the gradient of the gradients of a norm: of J·(scale·d), Σ d·y
// and Σ d, where y is x normalised over some axes, J its derivative, which is
// symmetric, and the scale lies along an axis of x.
type normSecond struct {
	x, scale, d graph.Value
	channel     int   // the axis of the scale
	axes        []int // normalised over
	eps         float32
	again       func(scale, d graph.Value) graph.Value // J·(scale·d)
}

func (s normSecond) gradients(dout []graph.Value) (dx, dscale, dd graph.Value) {
	along := func(v graph.Value) graph.Value { return alongAxis(v, s.channel, s.x) }
	inv := Rsqrt(AddScalar(s.mean(Square(s.center(s.x))), s.eps))
	if e := dout[0]; e.Valid() {
		je := s.again(Ones(s.x.Graph(), s.scale.Type()), e)
		dx = curvature(s.center(s.x), s.center(e), s.center(Mul(s.d, along(s.scale))), inv,
			s.axes...)
		dscale = Reshape(reduceTo(Mul(je, s.d), along(s.scale).Type()), s.scale.Type().Shape...)
		dd = Mul(je, along(s.scale))
	}
	if e := dout[1]; e.Valid() {
		dx = plus(dx, s.again(e, s.d))
		dd = plus(dd, Mul(Mul(s.center(s.x), inv), along(e)))
	}
	if e := dout[2]; e.Valid() {
		dd = plus(dd, BroadcastTo(along(e), s.x.Type().Sizes()...))
	}
	return dx, dscale, dd
}

// mean keeps the axes.
func (s normSecond) mean(v graph.Value) graph.Value { return meanKeep(v, s.axes...) }

func (s normSecond) center(v graph.Value) graph.Value { return Sub(v, s.mean(v)) }

// meanKeep is Mean that keeps the axes with size 1.
func meanKeep(x graph.Value, axes ...int) graph.Value {
	sum := SumKeep(x, axes...)
	if !sum.Valid() {
		return sum
	}
	return Scale(sum, share(sum.Type(), x.Type()))
}

func init() {
	kernel.Register(kernel.CPU, batchNormGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	// The gradient is that for a mean and a variance that are those of x: it is
	// checked as the second gradient of batchNorm.
	all := []int{0, 1, 2, 3, 4}
	register(
		Sample{Op: batchNormGrad{0.1},
			In:     []graph.Type{f(3, 5, 4, 3), f(5), f(5), f(5), f(3, 5, 4, 3)},
			NoGrad: all, Fill: fills{3: positive}},
		Sample{Op: batchNormGrad{0.1}, In: []graph.Type{f(7, 3), f(3), f(3), f(3), f(7, 3)},
			NoGrad: all, Fill: fills{3: positive}},
		Sample{Op: batchNormGrad{0.1},
			In:     []graph.Type{f(3, 5, 11, 10), f(5), f(5), f(5), f(3, 5, 11, 10)},
			NoGrad: all, Fill: fills{3: positive}},
	)
}

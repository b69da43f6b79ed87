package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// GeluTanh is the approximation of Gelu by a hyperbolic tangent (Hendrycks and Gimpel
// 2016), which GPT-2 was trained with: x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
func GeluTanh(x graph.Value) graph.Value { return apply(geluTanh{}, x) }

// geluTanh is computed as x·σ(u), with u = geluSlope·(x + geluBend·x³), which is the
// same function.
type geluTanh struct{}

const (
	geluSlope = 2 * math.Sqrt2 / 1.7724538509055160273 // 2·√(2/π)
	geluBend  = 0.044715
	// geluFlat is where σ(u) is 0 or 1 and so nothing bends any more. What would be 0·∞ beyond
	// is avoided in the operand.
	geluFlat = 16
)

func (geluTanh) Name() string { return "gelu-tanh" }

func (geluTanh) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	return in[:1:1], nil
}

func (geluTanh) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 18) }

// InPlace: every element depends on its own operand alone.
func (geluTanh) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (geluTanh) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(geluTanhGrad{}, n.In[0], dout[0])}
}

func (geluTanh) tile(dst, x, _ []float32, _ []int32, _ int) {
	var room [narrow]float32
	pieces(0, len(dst), func(lo, hi int) {
		s := room[:hi-lo]
		gate(s, x[lo:hi])
		vec.Mul(dst[lo:hi], x[lo:hi], s)
	})
}

// gate is σ(u).
func gate(s, x []float32) {
	vec.Square(s, x)
	vec.Affine(s, s, 0, geluSlope*geluBend, geluSlope)
	vec.Mul(s, s, x)
	vec.Sigmoid(s, s)
}

// Cut is between any elements.
func (geluTanh) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o geluTanh) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func geluTanhCPU(o geluTanh, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) { o.tile(out[lo:hi], x[lo:hi], nil, nil, lo) })
	return nil
}

// geluTanhGrad is d·(s + x·(s − s²)·u') with s = σ(u), for operands x and d.
type geluTanhGrad struct{}

func (geluTanhGrad) Name() string { return "gelu-tanh-grad" }

func (geluTanhGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	if !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("operands differ in shape")
	}
	return in[:1:1], nil
}

func (geluTanhGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 26) }

// InPlace: the gradient first, since it is seldom needed again.
func (geluTanhGrad) InPlace(_, _ []graph.Type) []int { return []int{1, 0} }

// VJP: linear in d; in x the derivative is p·(2·u' + x·((1 − 2s)·u'² + u”)), with p = s −
// s².
func (geluTanhGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	d, e := n.In[1], dout[0]
	x := Clip(n.In[0], -geluFlat, geluFlat)
	square := Square(x)
	s := Sigmoid(Mul(x, AddScalar(Scale(square, geluSlope*geluBend), geluSlope)))
	slope := AddScalar(Scale(square, 3*geluSlope*geluBend), geluSlope)
	bend := Scale(x, 6*geluSlope*geluBend)
	inner := Add(Mul(AddScalar(Scale(s, -2), 1), Square(slope)), bend)
	second := Mul(Sub(s, Square(s)), Add(Scale(slope, 2), Mul(x, inner)))
	return []graph.Value{Mul(Mul(d, e), second), apply(geluTanhGrad{}, n.In[0], e)}
}

func (geluTanhGrad) tile(dst, x, d []float32, _ []int32, _ int) {
	var gates, slopes, squares [narrow]float32
	pieces(0, len(dst), func(lo, hi int) {
		x := x[lo:hi]
		s, f, u := gates[:hi-lo], slopes[:hi-lo], squares[:hi-lo]
		gate(s, x)
		vec.SigmoidGrad(f, s, x) // x·(s − s²)
		vec.Square(u, x)
		vec.MinScalar(u, u, math.MaxFloat32) // f is 0 there, and is to stay
		vec.Affine(u, u, 0, 3*geluSlope*geluBend, geluSlope)
		vec.Mul(f, f, u)
		vec.Add(f, f, s)
		vec.Mul(dst[lo:hi], d[lo:hi], f)
	})
}

// Cut is between any elements.
func (geluTanhGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o geluTanhGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func geluTanhGradCPU(o geluTanhGrad, c *kernel.Call) error {
	x, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		o.tile(out[lo:hi], x[lo:hi], d[lo:hi], nil, lo)
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, geluTanhCPU)
	kernel.Register(kernel.CPU, geluTanhGradCPU)
	x := tensor.Of(graph.F32, 3, 17)
	register(
		Sample{Op: geluTanh{}, In: []graph.Type{x}, Second: true},
		Sample{Op: geluTanhGrad{}, In: []graph.Type{x, x}, Second: true},
	)
}

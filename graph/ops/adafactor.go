package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/libm"
)

// AdafactorConfig has the constants of [Adafactor]. A zero number means its
// default.
type AdafactorConfig struct {
	Decay  float32 // second moments decay by 1−step^(−Decay); default 0.8
	Eps1   float32 // added to squared gradients; default 1e-30
	Eps2   float32 // least scale of a parameter; default 1e-3
	Clip   float32 // largest root mean square of an update before scaling; default 1
	MinDim int     // least size of both axes that are factored; default 128
	// Absolute leaves lr as it is, rather than multiplying it by the root mean
	// square of the parameter.
	Absolute bool
}

// defaultMinDim is where factoring begins to be worth its error.
const defaultMinDim = 128

func (c AdafactorConfig) withDefaults() AdafactorConfig {
	for _, f := range []struct {
		at    *float32
		value float32
	}{{&c.Decay, 0.8}, {&c.Eps1, 1e-30}, {&c.Eps2, 1e-3}, {&c.Clip, 1}} {
		if *f.at == 0 {
			*f.at = f.value
		}
	}
	if c.MinDim == 0 {
		c.MinDim = defaultMinDim
	}
	return c
}

// Adafactor is a step of Shazeer and Stern's optimizer (2018) without first
// moment, as Mesh-TensorFlow has it:
//
//	d ← 1 − step^(−0.8)
//	v ← d·v + (1−d)·(grad² + eps1)
//	u ← grad/√v
//	w ← w − lr·max(eps2, RMS(w)) · u/max(1, RMS(u)/clip)
//
// where v of a parameter whose two largest axes both have at least MinDim
// elements is kept as the product of its means over either axis, divided by
// its mean over both. state has the types that [AdafactorState] gives.
func Adafactor(w graph.Value, state []graph.Value, grad, lr, step graph.Value,
	cfg AdafactorConfig, gate ...Gate) *graph.Node {
	vars := append([]graph.Value{w}, state...)
	return behind(gate, adafactor{cfg.withDefaults()}, vars, grad, lr, step)
}

// AdafactorState is the optimizer state for a parameter of type t: the means
// over the later and over the earlier of its two largest axes, or, where these
// are below minDim (zero means 128), one second moment per element.
func AdafactorState(t graph.Type, minDim int) []graph.Type {
	if minDim == 0 {
		minDim = defaultMinDim
	}
	p, q, ok := AdafactorAxes(t, minDim)
	if !ok {
		return []graph.Type{t}
	}
	return []graph.Type{without(t, q), without(t, p)}
}

// AdafactorAxes are the axes that [Adafactor] factors: the two largest axes, the
// earlier one first, if both have minDim elements. Among axes of one size, the
// earlier counts as larger.
func AdafactorAxes(t graph.Type, minDim int) (p, q int, ok bool) {
	if t.Rank() < 2 {
		return 0, 0, false
	}
	first, second := -1, -1
	for i, d := range t.Shape {
		switch {
		case first < 0 || d.Size > t.Size(first):
			first, second = i, first
		case second < 0 || d.Size > t.Size(second):
			second = i
		}
	}
	return min(first, second), max(first, second), t.Size(second) >= minDim
}

// without is t without an axis.
func without(t graph.Type, axis int) graph.Type {
	u := graph.Type{DType: t.DType}
	u.Shape = append(u.Shape, t.Shape[:axis]...)
	u.Shape = append(u.Shape, t.Shape[axis+1:]...)
	return u
}

type adafactor struct{ AdafactorConfig }

func (adafactor) Name() string { return "adafactor" }

func (o adafactor) Infer(in []graph.Type) ([]graph.Type, error) {
	if !(o.Decay > 0 && o.Eps1 > 0 && o.Eps2 > 0 && o.Clip > 0 && o.MinDim > 0) {
		return nil, fmt.Errorf("a constant is not positive: %+v", o.AdafactorConfig)
	}
	if len(in) == 0 {
		return nil, arity(in, 5)
	}
	want := append([]graph.Type{in[0]}, AdafactorState(in[0], o.MinDim)...)
	scalar := tensor.Of(graph.F32)
	want = append(want, in[0], scalar, scalar)
	if err := arity(in, len(want)); err != nil {
		return nil, err
	}
	for i, t := range want {
		if t.DType = graph.F32; !in[i].Equal(t) {
			return nil, fmt.Errorf("operand %d is %s, want %s%s", i, in[i], t,
				convertible(in[i], t.DType))
		}
	}
	return nil, nil
}

func (o adafactor) Cost(in, _ []graph.Type) graph.Cost {
	n, size := int64(in[0].Elems()), in[0].Bytes()
	if n == 0 {
		return graph.Cost{}
	}
	if p, q, ok := AdafactorAxes(in[0], o.MinDim); ok {
		return graph.Cost{FLOPs: 12 * n, Bytes: 6 * size,
			Scratch: 4 * int64(newFactors(in[0], p, q).scratch())}
	}
	return graph.Cost{FLOPs: 16 * n, Bytes: 8 * size, Scratch: 8 * int64(spans(int(n)))}
}

func (adafactor) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func adafactorCPU(o adafactor, c *kernel.Call) error {
	scalars := c.In[len(c.In)-2:]
	lr, step := scalars[0].F32()[0], float64(scalars[1].F32()[0])
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	if c.In[0].Type.Elems() == 0 {
		return nil
	}
	decay := float32(1 - libm.Pow(step, -float64(o.Decay)))
	if p, q, ok := AdafactorAxes(c.In[0].Type, o.MinDim); ok {
		o.factored(c, newFactors(c.In[0].Type, p, q), lr, decay)
	} else {
		o.unfactored(c, lr, decay)
	}
	return nil
}

// span is the number of elements that are worked on at a time, in a buffer that
// stays in the first-level cache.
const span = 1024

func spans(n int) int { return (n + span - 1) / span }

// inSpans calls f in parallel for every span of n elements, with a buffer.
func inSpans(c *kernel.Call, n int, f func(i, lo, hi int, buf []float32)) {
	c.Pool.For(spans(n), grain/span, func(first, end int) {
		buf := make([]float32, span)
		for i := first; i < end; i++ {
			f(i, i*span, min(n, (i+1)*span), buf)
		}
	})
}

// rate is the factor of the updates u, given the sums of their squares and of
// those of the parameter's n elements.
func (o adafactor) rate(lr float32, updates, weights []float32, n int) float32 {
	size := 1.0
	if !o.Absolute {
		size = max(float64(o.Eps2), math.Sqrt(total(weights, len(weights), 1)/float64(n)))
	}
	rms := math.Sqrt(total(updates, len(updates), 1) / float64(n))
	return float32(float64(lr) * size / max(1, rms/float64(o.Clip)))
}

// total adds up n numbers, a step apart, as a GPU's block can: number i in lane i mod 1024, and
// lanes by halves.
func total(x []float32, n, step int) float64 {
	var lanes [1024]float64
	for i := range n {
		lanes[i%len(lanes)] += float64(x[i*step])
	}
	width := len(lanes)
	for width > 1 && width/2 >= n { // the upper half is zeros
		width /= 2
	}
	for width /= 2; width > 0; width /= 2 {
		for i := range width {
			lanes[i] += lanes[i+width]
		}
	}
	return lanes[0]
}

// unfactored keeps a second moment per element. The updates are computed twice
// because their root mean square has to be known before they are applied.
func (o adafactor) unfactored(c *kernel.Call, lr, decay float32) {
	w, v, g := c.In[0].F32(), c.In[1].F32(), c.In[2].F32()
	n := spans(len(w))
	updates, weights := floats(c.Scratch)[:n], floats(c.Scratch)[n:2*n]
	inSpans(c, len(w), func(i, lo, hi int, buf []float32) {
		u, v, g := buf[:hi-lo], v[lo:hi], g[lo:hi]
		vec.Square(u, g)
		vec.AddScalar(u, u, o.Eps1)
		vec.MulScalar(v, v, decay)
		vec.Axpy(v, 1-decay, u)
		vec.Rsqrt(u, v)
		vec.Mul(u, u, g)
		updates[i], weights[i] = vec.SumSquares(u), vec.SumSquares(w[lo:hi])
	})
	rate := o.rate(lr, updates, weights, len(w))
	inSpans(c, len(w), func(_, lo, hi int, buf []float32) {
		u := buf[:hi-lo]
		vec.Rsqrt(u, v[lo:hi])
		vec.Mul(u, u, g[lo:hi])
		vec.Axpy(w[lo:hi], -rate, u)
	})
}

func init() {
	kernel.Register(kernel.CPU, adafactorCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for _, w := range []graph.Type{f(), f(17), f(3, 5), f(1025), f(4, 5), f(35, 1100), f(3, 17, 33),
		f(17, 3, 19), f(19, 33, 3), f(2, 17, 3, 65, 3)} {
		o := adafactor{AdafactorConfig{MinDim: 4}.withDefaults()}
		state := AdafactorState(w, o.MinDim)
		in := append(append([]graph.Type{w}, state...), w, f(), f())
		fill := fills{len(in) - 1: ones}
		for i := range state {
			fill[i+1] = positive
		}
		register(Sample{Op: o, In: in, Update: 1 + len(state), Fill: fill})
	}
}

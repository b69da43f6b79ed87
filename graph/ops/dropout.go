package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Dropout keeps each element with probability 1−rate, multiplied by
// 1/(1−rate), and zeroes the others (Srivastava et al. 2014). Which ones
// depends on seed, i32[2], and on name, which is to be the layer's: two random
// operations of one name and seed are an error of the graph. Axes listed in
// shared share the noise of their first element. The noise is never stored: the
// gradient draws it again. A rate of zero gives x itself.
func Dropout(x, seed graph.Value, rate float32, name string, shared ...int) graph.Value {
	if rate == 0 || !x.Valid() {
		return x
	}
	o := dropout{Rate: rate, Salt: claimed(seed, name)}
	for _, i := range shared {
		if i = axis(i, x.Type().Rank()); i < 0 {
			i = maxAxes
		}
		o.Shared |= 1 << i
	}
	return apply(o, x, seed)
}

// maxAxes bounds the axes that a set of axes can name; its bit marks an axis
// that does not exist.
const maxAxes = 31

type dropout struct {
	Rate   float32
	Salt   uint64
	Shared uint32 // set of axes
}

func (dropout) Name() string { return "dropout" }

func (o dropout) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if err := checkSeed(in[1]); err != nil {
		return nil, err
	}
	if !(o.Rate >= 0 && o.Rate < 1) {
		return nil, fmt.Errorf("dropout rate %v is outside [0, 1)", o.Rate)
	}
	if rank := in[0].Rank(); rank >= maxAxes || o.Shared>>rank != 0 {
		return nil, fmt.Errorf("noise shared along an axis that %s does not have", in[0])
	}
	return in[:1:1], nil
}

// Cost: the scratch holds noise that elements share.
func (o dropout) Cost(in, out []graph.Type) graph.Cost {
	c := streaming(in, out, 4)
	if t := o.noise(in[0]); t.Elems() < in[0].Elems() {
		c.Scratch = t.Bytes()
	}
	return c
}

// InPlace: every element depends on its own operand alone.
func (dropout) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: the same noise on the gradient.
func (o dropout) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(o, dout[0], n.In[1]), {}}
}

// noise is the type of the noise for a value of type t: shared axes are 1.
func (o dropout) noise(t tensor.Type) tensor.Type {
	sizes := t.Sizes()
	for i := range sizes {
		if o.Shared>>i&1 == 1 {
			sizes[i] = 1
		}
	}
	return tensor.Of(tensor.F32, sizes...)
}

func dropoutCPU(o dropout, c *kernel.Call) error {
	x, seed, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	switch {
	case o.noise(c.In[0].Type).Elems() < len(x):
		o.shared(c)
	case far(c):
		key := streamKey(seed, o.Salt)
		c.Pool.For(len(out), grain, func(lo, hi int) {
			vec.DropoutFar(out[lo:hi], x[lo:hi], 1-o.Rate, key, uint64(lo))
		})
	default:
		c.Pool.For(len(out), grain, func(lo, hi int) {
			o.tile(out[lo:hi], x[lo:hi], nil, seed, lo)
		})
	}
	return nil
}

// shared draws noise that elements share once, as factors, and multiplies by it.
func (o dropout) shared(c *kernel.Call) {
	o.multiply(c, func(noise []float32, key uint64, lo int) {
		vec.Dropout(noise, noise, 1-o.Rate, key, uint64(lo))
	})
}

// multiply multiplies by noise that draw makes of ones, from element lo on: what is dropped is
// 0, whatever it was.
func (o dropout) multiply(c *kernel.Call, draw func(noise []float32, key uint64, lo int)) {
	x, out, key := c.In[0].F32(), c.Out[0].F32(), streamKey(c.In[1].I32(), o.Salt)
	t := o.noise(c.Out[0].Type)
	noise := floats(c.Scratch)[:t.Elems()]
	c.Pool.For(len(noise), grain, func(lo, hi int) {
		repeat(noise[lo:hi], 1)
		draw(noise[lo:hi], key, lo)
	})
	walk(c, c.Out[0].Type, []tensor.Type{t}, func(at, n int, from, step each) {
		if step[0] == 1 {
			keepWhere(out[at:at+n], x[at:at+n], noise[from[0]:from[0]+n])
			return
		}
		weighRight(out[at:at+n], x[at:at+n], noise[from[0]])
	})
}

// keepWhere multiplies by factors of which those that are not 0 are one number.
func keepWhere(out, x, noise []float32) {
	pieces(0, len(out), func(lo, hi int) {
		kept := vec.MaxOf(noise[lo:hi])
		vec.ReluGrad(out[lo:hi], noise[lo:hi], x[lo:hi])
		vec.MulScalar(out[lo:hi], out[lo:hi], kept)
	})
}

// Jitter multiplies each element by a number uniform in [1−eps, 1+eps), drawn
// as for [Dropout]. An eps of zero gives x itself.
func Jitter(x, seed graph.Value, eps float32, name string) graph.Value {
	if eps == 0 || !x.Valid() {
		return x
	}
	return apply(jitter{Eps: eps, Salt: claimed(seed, name)}, x, seed)
}

type jitter struct {
	Eps  float32
	Salt uint64
}

func (jitter) Name() string { return "jitter" }

func (o jitter) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if err := checkSeed(in[1]); err != nil {
		return nil, err
	}
	if !(o.Eps >= 0 && o.Eps <= 1) {
		return nil, fmt.Errorf("jitter %v is outside [0, 1]", o.Eps)
	}
	return in[:1:1], nil
}

func (jitter) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 4) }

// InPlace: every element depends on its own operand alone.
func (jitter) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: the same noise on the gradient.
func (o jitter) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(o, dout[0], n.In[1]), {}}
}

func jitterCPU(o jitter, c *kernel.Call) error {
	x, seed, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) { o.tile(out[lo:hi], x[lo:hi], nil, seed, lo) })
	return nil
}

func init() {
	kernel.Register(kernel.CPU, dropoutCPU)
	kernel.Register(kernel.CPU, jitterCPU)
	seed := tensor.Of(graph.I32, 2)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for _, shared := range []uint32{0, 0b001, 0b010, 0b100, 0b101, 0b111} {
		o := dropout{Rate: 0.4, Salt: 7, Shared: shared}
		register(Sample{Op: o, In: []graph.Type{f(2, 5, 17), seed}, NoGrad: []int{1}, Second: true})
	}
	register(
		Sample{Op: dropout{Rate: 0.1, Salt: 3}, In: []graph.Type{f(), seed}, NoGrad: []int{1},
			Second: true},
		Sample{Op: jitter{Eps: 0.01, Salt: 5}, In: []graph.Type{f(3, 101), seed}, NoGrad: []int{1},
			Second: true},
	)
}

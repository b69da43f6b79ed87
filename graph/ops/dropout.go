package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/tensor"
)

// Dropout keeps each element with probability 1−rate, multiplied by
// 1/(1−rate), and zeroes the others (Srivastava et al. 2014). Which ones
// depends on seed, i32[2], and on name, which should be the layer's. Axes
// listed in shared share the noise of their first element. The noise is never
// stored: the gradient draws it again. A rate of zero gives x itself.
func Dropout(x, seed graph.Value, rate float32, name string, shared ...int) graph.Value {
	if rate == 0 || !x.Valid() {
		return x
	}
	o := dropout{Rate: rate, Salt: salt(name)}
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

func (dropout) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 4) }

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
	x, out := c.In[0].F32(), c.Out[0].F32()
	key, keep := streamKey(c.In[1].I32(), o.Salt), 1-o.Rate
	if o.Shared == 0 {
		c.Pool.For(len(out), grain, func(lo, hi int) {
			vec.Dropout(out[lo:hi], x[lo:hi], keep, key, uint64(lo))
		})
		return nil
	}
	noise := o.noise(c.Out[0].Type)
	walk(c, c.Out[0].Type, []tensor.Type{noise}, func(at, n int, from, step []int) {
		dst, src := out[at:at+n], x[at:at+n]
		if step[0] == 1 {
			vec.Dropout(dst, src, keep, key, uint64(from[0]))
			return
		}
		first := src[0] // may be dst's
		dst[0] = 1
		vec.Dropout(dst[:1], dst[:1], keep, key, uint64(from[0]))
		factor := dst[0]
		dst[0] = first * factor
		vec.MulScalar(dst[1:], src[1:], factor)
	})
	return nil
}

// Jitter multiplies each element by a number uniform in [1−eps, 1+eps), drawn
// as for [Dropout]. An eps of zero gives x itself.
func Jitter(x, seed graph.Value, eps float32, name string) graph.Value {
	if eps == 0 || !x.Valid() {
		return x
	}
	return apply(jitter{Eps: eps, Salt: salt(name)}, x, seed)
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
	x, out := c.In[0].F32(), c.Out[0].F32()
	key := streamKey(c.In[1].I32(), o.Salt)
	c.Pool.For(len(out), grain, func(lo, hi int) {
		var words [256]uint32
		for at := lo; at < hi; at += len(words) {
			n := min(len(words), hi-at)
			vec.Philox(words[:n], key, uint64(at))
			for i, w := range words[:n] {
				out[at+i] = x[at+i] * (1 + o.Eps*(2*unit(w)-1))
			}
		}
	})
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
		Sample{Op: dropout{Rate: 0.1, Salt: 3}, In: []graph.Type{f(), seed}, NoGrad: []int{1}, Second: true},
		Sample{Op: jitter{Eps: 0.01, Salt: 5}, In: []graph.Type{f(3, 101), seed}, NoGrad: []int{1}, Second: true},
	)
}

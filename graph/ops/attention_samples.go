package ops

import (
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// attentionSamples are of every mask, and of what a gradient has to do with each.
func attentionSamples() []Sample {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	numbers := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	q, kv := f(2, 5, 4, 3), f(2, 5, 2, 3)
	o := attention{Scale: 0.5}
	var list []Sample
	add := func(o attention, in ...graph.Type) {
		s := Sample{Op: o, In: in, Second: true, Tol: 2e-2}
		for i := 3; i < len(in); i++ {
			s.NoGrad = append(s.NoGrad, i)
		}
		list = append(list, s)
	}
	vary := func(f func(o *attention)) attention {
		o := o
		f(&o)
		return o
	}
	add(o, q, kv, kv)
	add(o, f(1, 1, 1, 1), f(1, 7, 1, 1), f(1, 7, 1, 2))
	add(vary(func(o *attention) { o.HeadsFirst = true }), f(2, 4, 5, 3), f(2, 4, 3, 3),
		f(2, 4, 3, 2))
	add(vary(func(o *attention) { o.Causal = true }), f(1, 4, 2, 3), f(1, 6, 1, 3), f(1, 6, 1, 3))
	add(vary(func(o *attention) { o.Causal, o.Window, o.Sinks = true, 2, 1 }), q, kv, kv)
	add(vary(func(o *attention) { o.Causal, o.Softcap = true, 3 }), q, kv, kv)
	add(vary(func(o *attention) { o.Padded = true }), q, kv, kv, numbers(2, 5))
	add(vary(func(o *attention) { o.Causal, o.Documented = true, true }), q, kv, kv, numbers(2, 5))
	placed := vary(func(o *attention) { o.Causal, o.Placed = true, true })
	add(placed, f(2, 2, 4, 3), kv, kv, numbers(2))
	add(placed, f(2, 1, 4, 3), kv, kv, numbers())
	add(vary(func(o *attention) { o.Rate, o.Salt, o.Shared = 0.4, 3, 0b100 }), q, kv, kv,
		numbers(2))
	all := vary(func(o *attention) {
		o.Causal, o.Padded, o.Documented, o.Softcap, o.Rate, o.Salt = true, true, true, 2, 0.3, 5
		o.HeadsFirst = true
	})
	add(all, f(2, 4, 5, 3), f(2, 2, 6, 3), f(2, 2, 6, 4), numbers(2, 6), numbers(2, 6), numbers(2))
	for _, s := range list {
		list = append(list, gradSample(s))
	}
	list = append(list,
		Sample{Op: attention{Scale: 0.1, Causal: true}, In: []graph.Type{f(1, 300, 2, 8),
			f(1, 300, 1, 8), f(1, 300, 1, 8)}},
		Sample{Op: attentionMask{all, 2, 5, 6}, In: []graph.Type{numbers(2, 6), numbers(2, 6)},
			NoGrad: []int{0, 1}})
	return list
}

// gradSample is the sample of the gradient: sums are near what an attention computes, so that
// weights are neither all nor nothing.
func gradSample(s Sample) Sample {
	o := s.Op.(attention)
	out, _ := o.Infer(s.In)
	g := Sample{Op: attentionGrad{o}, Second: true, Tol: 2e-2,
		In: append(append(s.In[:3:3], out[1], out[0], out[1]), s.In[3:]...),
		Fill: map[int]func(*rand.Rand, any){3: func(rng *rand.Rand, x any) {
			for i, to := 0, x.([]float32); i < len(to); i++ {
				to[i] = 1.5 + float32(rng.Float32()) // not fused with what it is made by
			}
		}}}
	for _, i := range s.NoGrad {
		g.NoGrad = append(g.NoGrad, i+3)
	}
	return g
}

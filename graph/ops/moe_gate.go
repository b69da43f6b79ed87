package ops

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Top2 chooses two experts for each token, given its gates f32[… e]: the one
// with the largest gate and, with probability min(1, p/threshold), the one with
// the second largest, p being its gate divided by the sum of both. A second
// choice that is not kept is −1. This is the "random" policy of
// Mesh-TensorFlow, in training as in evaluation. Of equal gates the first wins.
// Chance is drawn as for [Dropout]; a threshold of zero leaves nothing to it. The
// choices, i32[…], have no gradient.
func Top2(gates, seed graph.Value, name string, threshold float32) (idx1, idx2 graph.Value) {
	o := top2{Threshold: threshold, Salt: salt(name)}
	if threshold > 0 {
		o.Salt = claimed(seed, name)
	}
	out := applyN(2, o, gates, seed)
	return out[0], out[1]
}

type top2 struct {
	Threshold float32
	Salt      uint64
}

func (top2) Name() string { return "top2" }

func (o top2) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if err := checkSeed(in[1]); err != nil {
		return nil, err
	}
	if t := in[0]; t.Rank() == 0 || t.Size(-1) < 2 {
		return nil, fmt.Errorf("two of the last axis of %s cannot be chosen", t)
	}
	if !(o.Threshold >= 0) {
		return nil, fmt.Errorf("threshold %v is negative", o.Threshold)
	}
	t := graph.Type{DType: graph.I32, Shape: slices.Clone(in[0].Shape[:in[0].Rank()-1])}
	return []graph.Type{t, t}, nil
}

func (top2) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 2 * int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (top2) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

func top2CPU(o top2, c *kernel.Call) error {
	t := o.tokens(c)
	c.Pool.For(len(t.first), max(1, grain/t.experts), func(lo, hi int) { t.choose(lo, hi-lo, lo) })
	return nil
}

// tokens is a choice for tokens with their gates.
type tokens struct {
	top2
	gates         []float32
	first, second []int32
	experts       int
	key           uint64
}

func (o top2) tokens(c *kernel.Call) tokens {
	return tokens{top2: o, gates: c.In[0].F32(), first: c.Out[0].I32(), second: c.Out[1].I32(),
		experts: c.In[0].Type.Size(-1), key: streamKey(c.In[1].I32(), o.Salt)}
}

// choose does n tokens from at on, whose chances are those from one of the stream on.
func (t tokens) choose(at, n, from int) {
	var words [256]uint32
	for ; n > 0; at, from, n = at+len(words), from+len(words), n-len(words) {
		some := min(len(words), n)
		vec.Philox(words[:some], t.key, uint64(from))
		for i := range some {
			gates := t.gates[(at+i)*t.experts : (at+i+1)*t.experts]
			t.first[at+i], t.second[at+i] = t.top2.choose(gates, unit(words[i]))
		}
	}
}

// choose does one token; chance is uniform in [0, 1).
func (o top2) choose(gates []float32, chance float32) (int32, int32) {
	first, second := 0, 1
	if gates[1] > gates[0] {
		first, second = 1, 0
	}
	for i := 2; i < len(gates); i++ {
		switch {
		case gates[i] > gates[first]:
			first, second = i, first
		case gates[i] > gates[second]:
			second = i
		}
	}
	const tiny = 1e-9 // both gates, or the threshold, may be zero
	p := gates[second] / (gates[first] + gates[second] + tiny)
	if chance < p/max(o.Threshold, tiny) {
		return int32(first), int32(second)
	}
	return int32(first), -1
}

// TakeLast is x[…, idx]: for x f32[… e] and idx i32[…] in [0, e), f32[…]; zero
// where idx is negative.
func TakeLast(x, idx graph.Value) graph.Value { return apply(takeLast{}, x, idx) }

type takeLast struct{}

func (takeLast) Name() string { return "take-last" }

func (takeLast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	k := in[1].Rank()
	if in[0].Rank() != k+1 || !in[1].SameShape(graph.Type{Shape: in[0].Shape[:k]}) {
		return nil, fmt.Errorf("one element per row of %s needs an index for each, not %s", in[0],
			in[1])
	}
	return []graph.Type{{DType: graph.F32, Shape: slices.Clone(in[1].Shape)}}, nil
}

func (takeLast) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: in[1].Bytes() + 2*out[0].Bytes()}
}

func (takeLast) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0].Type()
	return []graph.Value{PutLast(n.In[1], dout[0], x.Size(-1)), {}}
}

// checkChoices reports an index of n or more; negative ones mean no choice.
func checkChoices(ids []int32, n int) error {
	for i, id := range ids {
		if int(id) >= n {
			return fmt.Errorf("index %d at position %d is not below %d", id, i, n)
		}
	}
	return nil
}

// inRow is where a row begins in a whole one of so many places: the first of all, unless it
// is a part.
type inRow struct{ first, whole int }

// place is where place id of the whole is in a row of so many; ok is false if it is not in
// it, or none.
func (p inRow) place(id int32, size int) (at int, ok bool) {
	at = int(id) - p.first
	return at, id >= 0 && at >= 0 && at < size
}

func takeLastCPU(_ takeLast, c *kernel.Call) error {
	return inRow{whole: c.In[0].Type.Size(-1)}.take(c)
}

func (p inRow) take(c *kernel.Call) error {
	x, ids, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	e := c.In[0].Type.Size(-1)
	if err := checkChoices(ids, p.whole); err != nil {
		return err
	}
	c.Pool.For(len(ids), grain, func(lo, hi int) {
		for i, id := range ids[lo:hi] {
			i += lo
			out[i] = 0
			if at, ok := p.place(id, e); ok {
				out[i] = x[i*e+at]
			}
		}
	})
	return nil
}

// PutLast is the f32[… e] that has d at […, idx] and zeros elsewhere; d, f32[…],
// is left out where idx, i32[…], is negative.
func PutLast(idx, d graph.Value, e int) graph.Value { return apply(putLast{Size: e}, idx, d) }

type putLast struct{ Size int }

func (putLast) Name() string { return "put-last" }

func (o putLast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.F32); err != nil {
		return nil, err
	}
	if o.Size < 1 || !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("%s cannot be put into rows of %d at %s", in[1], o.Size, in[0])
	}
	shape := append(slices.Clone(in[1].Shape), graph.Dim{Size: o.Size})
	return []graph.Type{{DType: graph.F32, Shape: shape}}, nil
}

func (putLast) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (putLast) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, TakeLast(dout[0], n.In[0])}
}

func putLastCPU(o putLast, c *kernel.Call) error { return inRow{whole: o.Size}.put(c, o.Size) }

func (p inRow) put(c *kernel.Call, size int) error {
	ids, d, out := c.In[0].I32(), c.In[1].F32(), c.Out[0].F32()
	if err := checkChoices(ids, p.whole); err != nil {
		return err
	}
	c.Pool.For(len(ids), max(1, grain/size), func(lo, hi int) {
		clear(out[lo*size : hi*size])
		for i := lo; i < hi; i++ {
			if at, ok := p.place(ids[i], size); ok {
				out[i*size+at] = d[i]
			}
		}
	})
	return nil
}

// choices fills i32 elements from [-1, n): choices of which some are none.
func choices(n int) func(*rand.Rand, any) {
	return func(rng *rand.Rand, x any) {
		for i := range x.([]int32) {
			x.([]int32)[i] = rng.Int32N(int32(n+1)) - 1
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, top2CPU)
	kernel.Register(kernel.CPU, takeLastCPU)
	kernel.Register(kernel.CPU, putLastCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	register(
		Sample{Op: top2{Threshold: 0.2, Salt: 9}, In: []graph.Type{f(2, 17, 5), ids(2)},
			Fill: fills{0: positive}, NoGrad: []int{0, 1}},
		Sample{Op: top2{Salt: 9}, In: []graph.Type{f(301, 2), ids(2)}, Fill: fills{0: positive},
			NoGrad: []int{0, 1}},
		Sample{Op: takeLast{}, In: []graph.Type{f(2, 3, 5), ids(2, 3)}, Fill: fills{1: choices(5)},
			NoGrad: []int{1}, Second: true},
		Sample{Op: takeLast{}, In: []graph.Type{f(5), ids()}, Fill: fills{1: below(5)},
			NoGrad: []int{1}, Second: true},
		Sample{Op: putLast{Size: 5}, In: []graph.Type{ids(2, 3), f(2, 3)},
			Fill: fills{0: choices(5)}, NoGrad: []int{0}, Second: true},
	)
}

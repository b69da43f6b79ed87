package ops

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/libm"
)

// SmallAdamState is the types of the state of [SmallAdamW] for a parameter of type w, whose
// moments are bf16 or u8: the moments, and of u8 behind each of them the scales of its blocks.
func SmallAdamState(w graph.Type, moments graph.DType) []graph.Type {
	t := w
	t.DType = moments
	if moments != graph.U8 {
		return []graph.Type{t, t}
	}
	scales := tensor.Of(graph.F32, momentBlocks(w.Elems()))
	return []graph.Type{t, scales, t, scales}
}

// SmallAdamW is [AdamW], of a decay of 0 [Adam], whose moments are kept in few bits: in bfloat16,
// or in 8 bits with a scale for every 256 elements. The state is what [SmallAdamState] says. The
// step itself is computed in f32, by the moments before they are rounded.
//
// Moments are rounded up or down by random numbers, so that what is kept is on average what was
// to be kept: beta2·v + (1−beta2)·grad² differs from v by less than a step of either format, and
// rounded to the nearest number v would stay as it is. What is drawn depends on w's name, the
// step and an element's place.
//
// The 8 bits are a floating-point number of 3 bits behind the point, relative to a power of two
// for each block: of m a sign and 16 octaves, of v 32 octaves. So a moment is as exact beside a
// large one as alone, which a square root and a quotient ask for. (Dettmers et al. 2022 have
// tables with most of their numbers next to the largest of a block, and round to the nearest.)
// A moment that is not finite makes the others of its block what is no number.
//
// w may be bf16, rounded by random numbers, too, so that it moves, on average, by steps that are
// smaller than its own; its gradient is f32 then or bf16.
func SmallAdamW(w graph.Value, state []graph.Value, grad, lr, step graph.Value, beta1, beta2, eps,
	decay float32, gate ...Gate) *graph.Node {
	if !w.Valid() {
		return nil
	}
	o := adamW{adam: adam{Beta1: beta1, Beta2: beta2, Eps: eps}, Decay: decay}
	small := smallAdamW{adamW: o, Salt: salt(w.Node.Name)}
	vars := append([]graph.Value{w}, state...)
	if len(state) == 4 {
		return behind(gate, adamW8{small}, vars, grad, lr, step)
	}
	return behind(gate, adamW16{small}, vars, grad, lr, step)
}

func momentBlocks(n int) int { return (n + vec.MomentBlock - 1) / vec.MomentBlock }

// smallAdamW is what is common to both kinds of small moments.
type smallAdamW struct {
	adamW
	Salt uint64
	Win  window // whose elements these are; none: of the whole
}

// infer wants a variable with its state, a gradient like it, the learning rate and the step.
func (o smallAdamW) infer(in []graph.Type, moments graph.DType) ([]graph.Type, error) {
	if len(in) == 0 {
		return nil, arity(in, 1)
	}
	state := SmallAdamState(in[0], moments)
	vars := 1 + len(state)
	if err := arity(in, vars+3); err != nil {
		return nil, err
	}
	for i, want := range state {
		if t := in[1+i]; t.DType != want.DType || !t.SameShape(want) {
			return nil, fmt.Errorf("operand %d is %s, want %s for the moments of %s%s", 1+i, t,
				want, in[0], convertible(t, want.DType))
		}
	}
	if o.Win.N > 0 {
		if err := o.Win.check(in[0].Sizes()); err != nil {
			return nil, err
		}
	}
	w, grad := in[0], in[vars]
	if w.DType == graph.BF16 {
		w.DType = graph.F32
		if grad.DType == graph.BF16 {
			grad.DType = graph.F32
		}
	}
	return o.adamW.Infer([]graph.Type{w, w, w, grad, in[vars+1], in[vars+2]})
}

// cost is that of all bytes that are read, and those of variables that are written.
func (o smallAdamW) cost(in []graph.Type) graph.Cost {
	c := graph.Cost{FLOPs: 40 * int64(in[0].Elems())}
	for i, t := range in {
		c.Bytes += t.Bytes()
		if i < len(in)-3 {
			c.Bytes += t.Bytes()
		}
	}
	return c
}

// CheckData wants steps counted from 1.
func (smallAdamW) CheckData(in []tensor.View) error { return checkCount(in[len(in)-1]) }

// smallStep is one execution.
type smallStep struct {
	smallAdamW
	w, g                   numbers
	lr, corr1, corr2, keep float32
	key                    uint64
}

// numbers are elements of f32, or else of bfloat16.
type numbers struct {
	wide []float32
	half []uint16
}

func numbersOf(v tensor.View) numbers {
	if v.Type.DType == graph.BF16 {
		return numbers{half: v.U16()}
	}
	return numbers{wide: v.F32()}
}

// read is elements lo to hi-1, in a buffer where they are not f32.
func (x numbers) read(lo, hi int, buf []float32) []float32 {
	if x.half == nil {
		return x.wide[lo:hi]
	}
	vec.F32FromBF16(buf, x.half[lo:hi])
	return buf
}

func (o smallAdamW) begin(c *kernel.Call) (*smallStep, error) {
	if err := o.CheckData(c.In); err != nil {
		return nil, err
	}
	reads := c.In[len(c.In)-3:]
	lr, step := reads[1].F32()[0], float64(reads[2].F32()[0])
	return &smallStep{smallAdamW: o, w: numbersOf(c.In[0]), g: numbersOf(reads[0]), lr: lr,
		corr1: float32(1 - libm.Pow(float64(o.Beta1), step)),
		corr2: float32(1 - libm.Pow(float64(o.Beta2), step)),
		keep:  1 - float32(lr*o.Decay),
		key:   scramble(scramble(uint64(step)) ^ o.Salt)}, nil
}

// smallSpan is the part of a step that is worked on at a time, in the first-level cache.
type smallSpan struct {
	m, v, w, g []float32
	words      []uint32
}

// spans calls f in parallel for every span of elements, with buffers.
func (s *smallStep) spans(c *kernel.Call, f func(lo, hi int, b smallSpan)) {
	const size = span / 2 // of five buffers, which stay in the first-level cache
	n := c.In[0].Type.Elems()
	c.Pool.For((n+size-1)/size, grain/size, func(first, end int) {
		floats, words := make([]float32, 4*size), make([]uint32, size)
		for i := first; i < end; i++ {
			lo, hi := i*size, min(n, (i+1)*size)
			buf := func(k int) []float32 { return floats[k*size:][:hi-lo] }
			f(lo, hi, smallSpan{buf(0), buf(1), buf(2), buf(3), words[:hi-lo]})
		}
	})
}

// advance is the step of elements from lo on, whose moments b has, and draws what these are
// rounded by.
func (s *smallStep) advance(lo int, b smallSpan) {
	hi := lo + len(b.m)
	w, g := s.w.read(lo, hi, b.w), s.g.read(lo, hi, b.g)
	vec.MulScalar(w, w, s.keep)
	vec.Adam(w, b.m, b.v, g, s.lr, s.Beta1, s.Beta2, s.Eps, s.corr1, s.corr2)
	if s.w.half != nil {
		s.draw(b.words, scramble(s.key), lo)
		vec.BF16Low(s.w.half[lo:hi], w, b.words)
	}
	s.draw(b.words, s.key, lo)
}

// draw draws the words of elements from lo on.
func (s *smallStep) draw(words []uint32, key uint64, lo int) {
	if s.Win.N == 0 {
		vec.Philox(words, key, uint64(lo))
		return
	}
	s.Win.visit(lo, lo+len(words), func(at, n, from int) {
		vec.Philox(words[at-lo:at-lo+n], key, uint64(from))
	})
}

type adamW16 struct{ smallAdamW }

func (adamW16) Name() string { return "adamw-bf16" }

func (o adamW16) Infer(in []graph.Type) ([]graph.Type, error) { return o.infer(in, graph.BF16) }

func (o adamW16) Cost(in, _ []graph.Type) graph.Cost { return o.cost(in) }

func adamW16CPU(o adamW16, c *kernel.Call) error {
	s, err := o.begin(c)
	if err != nil {
		return err
	}
	m, v := c.In[1].U16(), c.In[2].U16()
	s.spans(c, func(lo, hi int, b smallSpan) {
		vec.F32FromBF16(b.m, m[lo:hi])
		vec.F32FromBF16(b.v, v[lo:hi])
		s.advance(lo, b)
		vec.BF16Low(m[lo:hi], b.m, b.words)
		vec.BF16High(v[lo:hi], b.v, b.words)
	})
	return nil
}

type adamW8 struct{ smallAdamW }

func (adamW8) Name() string { return "adamw-8bit" }

func (o adamW8) Infer(in []graph.Type) ([]graph.Type, error) { return o.infer(in, graph.U8) }

func (o adamW8) Cost(in, _ []graph.Type) graph.Cost { return o.cost(in) }

func adamW8CPU(o adamW8, c *kernel.Call) error {
	s, err := o.begin(c)
	if err != nil {
		return err
	}
	m, mScale, v, vScale := c.In[1].U8(), c.In[2].F32(), c.In[3].U8(), c.In[4].F32()
	s.spans(c, func(lo, hi int, b smallSpan) {
		inBlocks(lo, hi, func(i, lo, hi, at, end int) {
			vec.FromSigned8(b.m[at:end], m[lo:hi], mScale[i])
			vec.FromUnsigned8(b.v[at:end], v[lo:hi], vScale[i])
		})
		s.advance(lo, b)
		inBlocks(lo, hi, func(i, lo, hi, at, end int) {
			mScale[i] = vec.Signed8(m[lo:hi], b.m[at:end], b.words[at:end])
			vScale[i] = vec.Unsigned8(v[lo:hi], b.v[at:end], b.words[at:end])
		})
	})
	return nil
}

// inBlocks calls f for every block of moments that share a scale, of elements lo to hi-1, of which
// the first begins one: with the block's number, its elements, and where they are behind lo.
func inBlocks(lo, hi int, f func(i, lo, hi, at, end int)) {
	for from := lo; from < hi; from += vec.MomentBlock {
		to := min(hi, from+vec.MomentBlock)
		f(from/vec.MomentBlock, from, to, from-lo, to-lo)
	}
}

func init() {
	kernel.Register(kernel.CPU, adamW16CPU)
	kernel.Register(kernel.CPU, adamW8CPU)
	scalar := tensor.Of(graph.F32)
	o := smallAdamW{adamW: adamW{adam{Beta1: 0.9, Beta2: 0.98, Eps: 1e-9}, 0.1}, Salt: 7}
	halves := func(rng *rand.Rand, x any) {
		for i := range x.([]uint16) {
			x.([]uint16)[i] = tensor.ToBF16(rng.Float32())
		}
	}
	sample := func(op graph.Op, w graph.Type, moments graph.DType, fill fills) Sample {
		in := append([]graph.Type{w}, SmallAdamState(w, moments)...)
		fill[len(in)+2] = ones
		if w.DType == graph.BF16 {
			fill[0], fill[len(in)] = halves, halves
		}
		return Sample{Op: op, In: append(in, w, scalar, scalar), Update: len(in), Fill: fill}
	}
	for _, w := range []graph.Type{tensor.Of(graph.F32, 3, 307), tensor.Of(graph.F32, 8, 128),
		tensor.Of(graph.BF16, 8, 128)} {
		s := sample(adamW8{o}, w, graph.U8, fills{1: fromOne, 2: positive, 3: fromOne, 4: positive})
		register(sample(adamW16{o}, w, graph.BF16, fills{1: halves, 2: halves}), s)
		s.Op, s.In = every{Op: s.Op, N: 1}, append(slices.Clone(s.In), scalar)
		s.Fill = maps.Clone(s.Fill)
		s.Fill[len(s.In)-1] = ones
		register(s)
	}
}

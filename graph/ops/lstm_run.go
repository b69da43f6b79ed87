package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// fromInput sets gates to bias + x·w, each summed as in a sequence of so many steps. x may be
// in bfloat16.
func (s sequence) fromInput(c *kernel.Call, x tensor.View, w, bias, gates []float32, steps int) {
	width := 4 * s.n
	c.Pool.For(s.t*s.b, max(1, grain/width), func(lo, hi int) {
		for row := lo; row < hi; row++ {
			copy(gates[row*width:(row+1)*width], bias)
		}
	})
	p := gemm.Product{M: s.t * s.b, N: width, K: s.i, Alpha: 1, Beta: 1, A: matrixOf(x, 0, false),
		B: gemm.Matrix{F32: w, LD: width}, C: gates, LDC: width}
	if steps != s.t {
		p.As = gemm.Product{M: steps * s.b, N: width, K: s.i}.Order()
	}
	p.Compute(c.Pool)
}

// forward runs the steps, from h0 and c0: gates have what the input gives them, and get what the
// state does, with weights w. y and the states at the start may be in bfloat16; from step to step
// h is f32. It returns the last h and c.
func (s sequence) forward(c *kernel.Call, w, gates []float32, h0, c0, y tensor.View,
	states []float32) (h, state []float32) {
	width, r := 4*s.n, room{c, floats(c.Scratch)}
	h, state = r.wide(h0), r.wide(c0)
	wide := r.take(s.wideStep(y))
	var g, to, next []float32
	step := s.visiting(c, r.left, 1, func(row int, buf []float32) {
		s.stepRow(row, to, next, g, state, buf)
	})
	var rounded []uint16
	round := func(lo, hi int) { vec.BF16FromF32(rounded[lo:hi], wide[lo:hi]) }
	n := s.b * s.n
	for t := range s.t {
		g, to, next = s.gatesAt(gates, t), wide, s.at(states, t)
		gemm.F32(c.Pool, false, false, s.b, width, s.n, 1, h, s.n, w, width, 1, g, width)
		if !half(y.Type) {
			to = s.at(y.F32(), t)
		}
		step()
		if half(y.Type) {
			rounded = y.U16()[t*n : (t+1)*n]
			c.Pool.For(n, grain, round)
		}
		h, state = to, next
	}
	return h, state
}

// lstmBack is a sequence on its way back: the gradients of its gates.
type lstmBack struct {
	sequence
	call              *kernel.Call
	w                 []float32 // the rows for h
	c0, states, gates []float32
	dy                tensor.View
	step              []float32 // dy of a step as f32, if it is in bfloat16
	dh, dc            []float32 // of the step before the last that was visited
	dgates, scratch   []float32

	dg, up     []float32 // of the step that is visited: the gradients of its gates and of y
	up16       []uint16  // the latter in bfloat16, if it is
	from       cellStep
	widen, add func(lo, hi int)
	gradient   func()
}

// begin makes what is called at every step.
func (b *lstmBack) begin() {
	b.widen = func(lo, hi int) { vec.F32FromBF16(b.up[lo:hi], b.up16[lo:hi]) }
	b.add = func(lo, hi int) { vec.Add(b.dh[lo:hi], b.dh[lo:hi], b.up[lo:hi]) }
	b.gradient = b.visiting(b.call, b.scratch, 2, func(row int, buf []float32) {
		b.gradRow(row, b.dg, b.dc, b.from, buf)
	})
}

// steps computes the gradients of the gates of steps lo to hi-1, the last first;
// dh and dc go from step to step.
func (b *lstmBack) steps(lo, hi int) {
	width, n := 4*b.n, b.b*b.n
	for t := hi - 1; t >= lo; t-- {
		if b.up = b.step; half(b.dy.Type) {
			b.up16 = b.dy.U16()[t*n : (t+1)*n]
			b.call.Pool.For(n, grain, b.widen)
		} else {
			b.up = b.at(b.dy.F32(), t)
		}
		b.call.Pool.For(n, grain, b.add)
		b.dg = b.gatesAt(b.dgates, t-lo)
		b.from = cellStep{b.gatesAt(b.gates, t), b.before(b.states, b.c0, t), b.at(b.states, t),
			b.dh, b.dc}
		b.gradient()
		gemm.F32(b.call.Pool, false, true, b.b, b.n, width, 1, b.dg, width, b.w, width, 0,
			b.dh, b.n)
	}
}

// stepsOf is the elements of steps lo to hi-1 of a value.
func stepsOf(v tensor.View, lo, hi int) tensor.View {
	size := len(v.Data) / max(1, v.Type.Size(0))
	return tensor.View{Type: v.Type, Data: v.Data[lo*size : hi*size]}
}

// room is scratch of which parts are taken.
type room struct {
	call *kernel.Call
	left []float32
}

func (r *room) take(n int) []float32 {
	part := r.left[:n:n]
	r.left = r.left[n:]
	return part
}

// wide is a value as f32: itself, or converted.
func (r *room) wide(v tensor.View) []float32 {
	if !half(v.Type) {
		return v.F32()
	}
	x := r.take(v.Type.Elems())
	widen16(r.call, x, v)
	return x
}

// result is where a result is made as f32.
func (r *room) result(v tensor.View) []float32 {
	if !half(v.Type) {
		return v.F32()
	}
	return r.take(v.Type.Elems())
}

// widen16 converts a value in bfloat16; one in f32 is left where it is.
func widen16(c *kernel.Call, x []float32, v tensor.View) {
	if half(v.Type) {
		each16(c, v.U16(), x, vec.F32FromBF16)
	}
}

// narrow16 rounds to a value in bfloat16; what is f32 is there already.
func narrow16(c *kernel.Call, v tensor.View, x []float32) {
	if half(v.Type) {
		each16(c, v.U16(), x, func(x []float32, h []uint16) { vec.BF16FromF32(h, x) })
	}
}

func half(t graph.Type) bool { return t.DType == graph.BF16 }

// wideStep is the elements that a step of a value takes as f32, if it is in bfloat16.
func (s sequence) wideStep(v tensor.View) int {
	if half(v.Type) {
		return s.b * s.n
	}
	return 0
}

// room is the bytes that a step, or a state, of each of these takes as f32 if it is in bfloat16.
func (s sequence) room(types ...graph.Type) (bytes int64) {
	for _, t := range types {
		if half(t) {
			bytes += 4 * int64(s.b) * int64(s.n)
		}
	}
	return bytes
}

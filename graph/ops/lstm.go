package ops

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// LSTM runs an LSTM over a sequence: x f32[t b i], w f32[i+n 4n], bias f32[4n], h0
// and c0 f32[b n] → y f32[t b n], the h of every step, and states f32[t b n], its
// c. A step is LSTMCell with gates [x h]·w + bias: w has the rows for x first. The
// products with x are one matrix product for the whole sequence.
//
// The gradient goes through y; the states are for continuing the sequence. It
// keeps the gates, f32[t b 4n], which are a third result.
func LSTM(x, w, bias, h0, c0 graph.Value, forgetBias float32) (y, states graph.Value) {
	out := applyN(3, lstm{ForgetBias: forgetBias}, x, w, bias, h0, c0)
	return out[0], out[1]
}

type lstm struct{ ForgetBias float32 }

func (lstm) Name() string { return "lstm" }

// sequence is the geometry of an LSTM over t steps of b rows, from i to n
// elements.
type sequence struct {
	cells
	t, i int
}

// sequenceOf takes x and h0, which were checked.
func sequenceOf(x, h graph.Type, bias float32) sequence {
	return sequence{cells: cells{x.Size(1), h.Size(1), bias}, t: x.Size(0), i: x.Size(2)}
}

// checkSequence checks x and h0, and the other operands by them.
func checkSequence(in []graph.Type, x, h int, bias float32,
	others func(s sequence) []graph.Type) error {
	if in[x].Rank() != 3 || in[h].Rank() != 2 || in[h].Size(1) > 1<<40 {
		return fmt.Errorf("input %s and state %s, want three axes and two", in[x], in[h])
	}
	for i, want := range others(sequenceOf(in[x], in[h], bias)) {
		if !in[i].Equal(want) {
			return fmt.Errorf("operand %d is %s, want %s%s", i, in[i], want,
				convertible(in[i], want.DType))
		}
	}
	return checkBias(bias)
}

func (s sequence) types() (x, w, bias, h, y, gates graph.Type) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	return f(s.t, s.b, s.i), f(s.i+s.n, 4*s.n), f(4 * s.n), f(s.b, s.n), f(s.t, s.b, s.n),
		f(s.t, s.b, 4*s.n)
}

func (o lstm) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 5); err != nil {
		return nil, err
	}
	err := checkSequence(in, 0, 3, o.ForgetBias, func(s sequence) []graph.Type {
		x, w, bias, h, _, _ := s.types()
		return []graph.Type{x, w, bias, h, h}
	})
	if err != nil {
		return nil, err
	}
	t, b, n := in[0].Shape[0], in[0].Shape[1], in[3].Shape[1]
	n.Name = ""
	y := tensor.Named(graph.F32, t, b, n)
	return []graph.Type{y, y, tensor.Named(graph.F32, t, b, graph.Dim{Size: 4 * n.Size})}, nil
}

// Cost: the scratch is that of a step.
func (o lstm) Cost(in, out []graph.Type) graph.Cost {
	s := sequenceOf(in[0], in[3], 0)
	c := cellCost(s.b, s.n, 1, 60, bytes(in, out))
	c.FLOPs = int64(s.t) * (c.FLOPs + s.product())
	return c
}

func (lstm) form16() string { return "*ff**>*ff" }

// scratch16: beside, what of a step is in bfloat16 is in f32.
func (o lstm) scratch16(in, out []graph.Type) int64 {
	return o.Cost(in, out).Scratch + sequenceOf(in[0], in[3], 0).room(in[3], in[4], out[0])
}

// product is the number of operations of the matrix product of a step.
func (s sequence) product() int64 {
	return 8 * int64(s.b) * int64(s.i+s.n) * int64(s.n)
}

func (o lstm) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if dout[1].Valid() || dout[2].Valid() {
		n.Graph().Fail(fmt.Errorf("the state of %s (%s) has no gradient of its own", n.Name,
			n.Op.Name()))
		return none(5)
	}
	x, w, h0, c0 := n.In[0], n.In[1], n.In[3], n.In[4]
	return applyN(5, lstmGrad(o), x, w, h0, c0, n.Value(0), n.Value(1), n.Value(2), dout[0])
}

// before is the state before step t, given that at the start.
func (s cells) before(states, start []float32, t int) []float32 {
	if t == 0 {
		return start
	}
	return s.at(states, t-1)
}

// at is the state after step t.
func (s cells) at(states []float32, t int) []float32 {
	return states[t*s.b*s.n : (t+1)*s.b*s.n]
}

// gatesAt are the gates of step t.
func (s cells) gatesAt(gates []float32, t int) []float32 {
	return gates[4*t*s.b*s.n : 4*(t+1)*s.b*s.n]
}

func lstmCPU(o lstm, c *kernel.Call) error {
	s := sequenceOf(c.In[0].Type, c.In[3].Type, o.ForgetBias)
	w, gates := c.In[1].F32(), c.Out[2].F32()
	rows := s.i * 4 * s.n
	s.fromInput(c, c.In[0], w[:rows], c.In[2].F32(), gates, s.t)
	s.forward(c, w[rows:], gates, c.In[3], c.In[4], c.Out[0], c.Out[1].F32())
	return nil
}

// lstmGrad is the gradient of lstm by its operands, for operands x, w, h0, c0, y,
// states, gates and the gradient of y. The gradients of gates are made for a few
// steps at a time, from the last: enough to multiply by, but not for the
// whole sequence, of which they would be the largest value.
type lstmGrad struct{ ForgetBias float32 }

func (lstmGrad) Name() string { return "lstm-grad" }

func (o lstmGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 8); err != nil {
		return nil, err
	}
	var bias graph.Type
	err := checkSequence(in, 0, 2, o.ForgetBias, func(s sequence) []graph.Type {
		x, w, b, h, y, gates := s.types()
		bias = b
		return []graph.Type{x, w, h, h, y, y, gates, y}
	})
	if err != nil {
		return nil, err
	}
	return []graph.Type{in[0], in[1], bias, in[2], in[3]}, nil
}

// chunk is the number of steps whose gradients of gates are made at once, such
// that they have 512 rows: then a matrix product spends little time on loading
// and storing the gradient of w.
func (s sequence) chunk() int {
	const rows = 512
	return min(s.t, (rows+s.b-1)/max(1, s.b))
}

// Cost: the scratch holds a chunk's gradients of gates, and that of a step.
func (o lstmGrad) Cost(in, out []graph.Type) graph.Cost {
	s := sequenceOf(in[0], in[2], 0)
	c := cellCost(s.b, s.n, 2, 84, bytes(in, out))
	c.FLOPs = int64(s.t) * (c.FLOPs + 2*s.product())
	c.Scratch += 16 * int64(s.chunk()) * int64(s.b) * int64(s.n)
	return c
}

func (lstmGrad) form16() string { return "*f***ff*>*ff**" }

// scratch16: beside, what is in bfloat16 is in f32 for a step, and dx for a chunk.
func (o lstmGrad) scratch16(in, out []graph.Type) int64 {
	s := sequenceOf(in[0], in[2], 0)
	n := o.Cost(in, out).Scratch + s.room(in[3], in[7], out[3], out[4])
	if half(out[0]) {
		n += 4 * int64(s.chunk()) * int64(s.b) * int64(s.i)
	}
	return n
}

// VJP: there is none; a second gradient takes the composition.
func (lstmGrad) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

// lstmGradWork is the gradient of a sequence under way.
type lstmGradWork struct {
	lstmBack
	wx              []float32
	x, y, h0        tensor.View
	dx              tensor.View
	dw, dbias, room []float32
}

func lstmGradCPU(o lstmGrad, c *kernel.Call) error {
	s := sequenceOf(c.In[0].Type, c.In[2].Type, o.ForgetBias)
	w, rows, n := c.In[1].F32(), s.i*4*s.n, s.b*s.n
	r := room{c, floats(c.Scratch)}
	b := lstmGradWork{
		lstmBack: lstmBack{sequence: s, call: c, w: w[rows:], states: c.In[5].F32(),
			gates: c.In[6].F32(), dy: c.In[7], dgates: r.take(4 * s.chunk() * n),
			c0: r.wide(c.In[3]), step: r.take(s.wideStep(c.In[7])),
			dh: r.result(c.Out[3]), dc: r.result(c.Out[4])},
		wx: w[:rows], x: c.In[0], y: c.In[4], h0: c.In[2], dx: c.Out[0], dw: c.Out[1].F32(),
		dbias: c.Out[2].F32(),
	}
	if half(b.dx.Type) {
		b.room = r.take(s.chunk() * s.b * s.i)
	}
	b.scratch = r.left
	b.begin()
	for _, sum := range [][]float32{b.dw, b.dbias, b.dh, b.dc} {
		clear(sum)
	}
	for hi := s.t; hi > 0; hi -= s.chunk() {
		lo := max(0, hi-s.chunk())
		b.steps(lo, hi)
		b.products(lo, hi)
	}
	narrow16(c, c.Out[3], b.dh)
	narrow16(c, c.Out[4], b.dc)
	return nil
}

// products computes what follows from the gradients of the gates of steps lo to
// hi-1.
func (b *lstmGradWork) products(lo, hi int) {
	p, width := b.call.Pool, 4*b.n
	rows := (hi - lo) * b.b
	dg := b.dgates[:rows*width]
	x, dx := stepsOf(b.x, lo, hi), stepsOf(b.dx, lo, hi)
	to := b.room
	if !half(dx.Type) {
		to = dx.F32()
	}
	to = to[:rows*b.i]
	gemm.F32(p, false, true, rows, b.i, width, 1, dg, width, b.wx, width, 0, to, b.i)
	narrow16(b.call, dx, to)
	dwh := b.dw[b.i*width:]
	b.outer(x, dg, b.dw[:b.i*width], b.i, rows)
	if lo == 0 { // the state before is h0 rather than in y
		b.outer(b.h0, dg, dwh, b.n, b.b)
		dg, rows = dg[b.b*width:], rows-b.b
	}
	if rows > 0 {
		b.outer(stepsOf(b.y, max(lo, 1)-1, hi-1), dg, dwh, b.n, rows)
	}
	p.For(width, narrow, func(first, end int) {
		for row := range (hi - lo) * b.b {
			vec.Add(b.dbias[first:end], b.dbias[first:end], b.dgates[row*width+first:row*width+end])
		}
	})
}

// outer adds to dw the products of so many rows of m elements with those of dg.
func (b *lstmGradWork) outer(x tensor.View, dg, dw []float32, m, rows int) {
	width := 4 * b.n
	gemm.Product{M: m, N: width, K: rows, Alpha: 1, Beta: 1, A: matrixOf(x, 0, true),
		B: gemm.Matrix{F32: dg, LD: width}, C: dw, LDC: width}.Compute(b.call.Pool)
}

func init() {
	kernel.Register(kernel.CPU, lstmCPU)
	kernel.Register(kernel.CPU, lstmGradCPU)
	for _, s := range []sequence{
		{cells{2, 3, 1}, 4, 5}, {cells{1, 1, 0}, 1, 1}, {cells{3, 5, 1}, 1, 2}, {cells{3, 17, 1}, 5,
			4}, {cells{300, 1, 1}, 5, 1},
	} {
		x, w, bias, h, y, gates := s.types()
		small := fills{1: tenth}
		register(
			Sample{Op: lstm{s.bias}, In: []graph.Type{x, w, bias, h, h}, Fill: small,
				Results: []int{0}},
			Sample{Op: lstmGrad{s.bias}, In: []graph.Type{x, w, h, h, y, y, gates, y}, Fill: small,
				NoGrad: []int{0, 1, 2, 3, 4, 5, 6, 7}},
		)
	}
}

// tenth fills f32 elements with normal numbers of deviation 0.1.
func tenth(rng *rand.Rand, x any) {
	for i := range x.([]float32) {
		x.([]float32)[i] = 0.1 * float32(rng.NormFloat64())
	}
}

package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// LSTMCell is a step of an LSTM after its matrix product (Hochreiter and
// Schmidhuber 1997, with Gers' forget gate): gates f32[b 4n], of which the
// quarters are the input gate i, the candidate j, the forget gate f and the output
// gate o, as in TensorFlow; c f32[b n]. It gives, both f32[b n],
//
//	next = σ(f+forgetBias)·c + σ(i)·tanh(j)
//	h    = σ(o)·tanh(next)
//
// The gradient computes the gates' functions again rather than keep them.
func LSTMCell(gates, c graph.Value, forgetBias float32) (h, next graph.Value) {
	out := applyN(2, lstmCell{ForgetBias: forgetBias}, gates, c)
	return out[0], out[1]
}

type lstmCell struct{ ForgetBias float32 }

func (lstmCell) Name() string { return "lstm-cell" }

// checkBias rejects a forget bias that is no number.
func checkBias(bias float32) error {
	if b := float64(bias); math.IsNaN(b) || math.IsInf(b, 0) {
		return fmt.Errorf("forget bias is %g", bias)
	}
	return nil
}

// checkCell wants gates f32[b 4n] and states f32[b n].
func checkCell(in []graph.Type, states int, bias float32) error {
	if err := arity(in, 1+states); err != nil {
		return err
	}
	for i, t := range in {
		if t.DType != graph.F32 || t.Rank() != 2 || !t.SameShape(in[min(i, 1)]) {
			return fmt.Errorf("operand %d is %s, want f32 of two axes, states alike%s", i, t,
				convertible(t, graph.F32))
		}
	}
	if g, c := in[0], in[1]; g.Size(0) != c.Size(0) || g.Size(1)%4 != 0 ||
		g.Size(1)/4 != c.Size(1) {
		return fmt.Errorf("gates %s of states %s", g, c)
	}
	return checkBias(bias)
}

func (o lstmCell) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := checkCell(in, 1, o.ForgetBias); err != nil {
		return nil, err
	}
	return []graph.Type{in[1], in[1]}, nil
}

// Cost: the scratch holds a row for every block.
func (lstmCell) Cost(in, out []graph.Type) graph.Cost {
	return cellCost(in[1].Size(0), in[1].Size(1), 1, 60, bytes(in, out))
}

// cellCost is the cost of cells of b rows of n elements, of which every block has
// so many rows of scratch.
func cellCost(b, n, rows int, flops, traffic int64) graph.Cost {
	return graph.Cost{
		FLOPs:   flops * int64(b) * int64(n),
		Bytes:   traffic,
		Scratch: 4 * int64(cellBlocks(b, n)) * int64(rows) * int64(n),
	}
}

// cellBlocks is the number of blocks of rows that a cell is computed in. A row
// costs about sixteen times what a copy does.
func cellBlocks(b, n int) int { return blocksOf(b, 16*n, 1) }

func (o lstmCell) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	gates, c, next := n.In[0], n.In[1], n.Value(1)
	dh, dnext := orZeros(dout[0], n, 0), orZeros(dout[1], n, 1)
	return applyN(2, lstmCellGrad(o), gates, c, next, dh, dnext)
}

// orZeros is the gradient d of a result of n, zeros if it has none.
func orZeros(d graph.Value, n *graph.Node, result int) graph.Value {
	if d.Valid() {
		return d
	}
	return Zeros(n.Graph(), n.Out[result])
}

// cells is a number of rows of n elements of an LSTM.
type cells struct {
	b, n int
	bias float32
}

// rows visits the rows, in parallel, each with so many rows of scratch.
func (s cells) rows(c *kernel.Call, scratch []float32, rows int, f func(row int, buf []float32)) {
	s.visiting(c, scratch, rows, f)()
}

// visiting is rows to be called at every step: what a kernel allocates may not grow with them.
func (s cells) visiting(c *kernel.Call, scratch []float32, rows int,
	f func(row int, buf []float32)) func() {
	blocks := cellBlocks(s.b, s.n)
	visit := func(b int) {
		buf := scratch[b*rows*s.n : (b+1)*rows*s.n]
		lo, hi := block(b, blocks, s.b)
		for row := lo; row < hi; row++ {
			f(row, buf)
		}
	}
	return func() { c.Pool.Run(blocks, visit) }
}

// quarters are the four gates of a row.
func (s cells) quarters(gates []float32, row int) (i, j, f, o []float32) {
	g := gates[4*row*s.n : 4*(row+1)*s.n]
	return g[:s.n], g[s.n : 2*s.n], g[2*s.n : 3*s.n], g[3*s.n:]
}

// step computes all rows: h and next from gates and state. Scratch has a row for
// every block.
func (s cells) step(c *kernel.Call, h, next, gates, state, scratch []float32) {
	s.rows(c, scratch, 1, func(row int, buf []float32) {
		s.stepRow(row, h, next, gates, state, buf)
	})
}

func (s cells) stepRow(row int, h, next, gates, state, buf []float32) {
	i, j, f, o := s.quarters(gates, row)
	lo, hi := row*s.n, (row+1)*s.n
	h, next, state = h[lo:hi], next[lo:hi], state[lo:hi]
	vec.AddScalar(h, f, s.bias)
	vec.Sigmoid(h, h)
	vec.Mul(next, h, state)
	vec.Sigmoid(h, i)
	vec.Tanh(buf, j)
	vec.Fma(next, h, buf, next)
	vec.Sigmoid(buf, o)
	vec.Tanh(h, next)
	vec.Mul(h, h, buf)
}

func lstmCellCPU(o lstmCell, c *kernel.Call) error {
	t := c.In[1].Type
	s := cells{t.Size(0), t.Size(1), o.ForgetBias}
	s.step(c, c.Out[0].F32(), c.Out[1].F32(), c.In[0].F32(), c.In[1].F32(), floats(c.Scratch))
	return nil
}

// lstmCellGrad is the gradient of lstmCell by gates and c, for operands gates, c,
// next and the gradients of h and next.
type lstmCellGrad struct{ ForgetBias float32 }

func (lstmCellGrad) Name() string { return "lstm-cell-grad" }

func (o lstmCellGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := checkCell(in, 4, o.ForgetBias); err != nil {
		return nil, err
	}
	return []graph.Type{in[0], in[1]}, nil
}

// Cost: the scratch holds two rows for every block.
func (lstmCellGrad) Cost(in, out []graph.Type) graph.Cost {
	return cellCost(in[1].Size(0), in[1].Size(1), 2, 80, bytes(in, out))
}

// InPlace: a gate is read before it is overwritten.
func (lstmCellGrad) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP goes back through the gradient as a composition of other operations.
func (o lstmCellGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return through(n, dout, func() []graph.Value {
		gates, c, next, dh, dnext := n.In[0], n.In[1], n.In[2], n.In[3], n.In[4]
		size := c.Type().Size(1)
		gate := func(k int) graph.Value { return Slice(gates, 1, k*size, (k+1)*size) }
		i, j := Sigmoid(gate(0)), Tanh(gate(1))
		f, out := Sigmoid(AddScalar(gate(2), o.ForgetBias)), Sigmoid(gate(3))
		h := Tanh(next)
		dc := Add(apply(slope{tanh}, h, Mul(dh, out)), dnext)
		return []graph.Value{Concat(1, apply(slope{sigmoid}, i, Mul(dc, j)),
			apply(slope{tanh}, j, Mul(dc, i)), apply(slope{sigmoid}, f, Mul(dc, c)),
			apply(slope{sigmoid}, out, Mul(dh, h))), Mul(dc, f)}
	})
}

// cellStep is what the gradient of a step reads.
type cellStep struct{ gates, state, next, dh, dnext []float32 }

// grad computes the gradients of gates and state, which may be those of the
// gates and dnext. Scratch has two rows for every block.
func (s cells) grad(c *kernel.Call, dgates, dstate []float32, from cellStep, scratch []float32) {
	s.rows(c, scratch, 2, func(row int, buf []float32) {
		s.gradRow(row, dgates, dstate, from, buf)
	})
}

func (s cells) gradRow(row int, dgates, dstate []float32, from cellStep, buf []float32) {
	lo, hi := row*s.n, (row+1)*s.n
	dstate = dstate[lo:hi]
	from = cellStep{from.gates, from.state[lo:hi], from.next[lo:hi], from.dh[lo:hi],
		from.dnext[lo:hi]}
	i, j, f, o := s.quarters(from.gates, row)
	di, dj, df, do := s.quarters(dgates, row)
	a, dc := buf[:s.n], buf[s.n:] // dc is the whole gradient of next
	vec.Tanh(a, from.next)
	vec.Sigmoid(do, o)
	vec.Mul(dc, from.dh, do)
	vec.TanhGrad(dc, a, dc)
	vec.Add(dc, dc, from.dnext)
	vec.Mul(a, a, from.dh)
	vec.SigmoidGrad(do, do, a)

	vec.Sigmoid(di, i)
	vec.Tanh(dj, j)
	vec.Mul(a, dc, dj)
	vec.Mul(dstate, dc, di)
	vec.SigmoidGrad(di, di, a)
	vec.TanhGrad(dj, dj, dstate)

	vec.AddScalar(df, f, s.bias)
	vec.Sigmoid(df, df)
	vec.Mul(a, dc, from.state)
	vec.Mul(dstate, dc, df)
	vec.SigmoidGrad(df, df, a)
}

func lstmCellGradCPU(o lstmCellGrad, c *kernel.Call) error {
	t := c.In[1].Type
	s := cells{t.Size(0), t.Size(1), o.ForgetBias}
	from := cellStep{c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32(), c.In[4].F32()}
	s.grad(c, c.Out[0].F32(), c.Out[1].F32(), from, floats(c.Scratch))
	return nil
}

func init() {
	kernel.Register(kernel.CPU, lstmCellCPU)
	kernel.Register(kernel.CPU, lstmCellGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: lstmCell{1}, In: []graph.Type{f(3, 20), f(3, 5)}, Second: true},
		Sample{Op: lstmCell{}, In: []graph.Type{f(1, 4), f(1, 1)}, Second: true},
		Sample{Op: lstmCell{1}, In: []graph.Type{f(17, 68), f(17, 17)}, Second: true},
		Sample{Op: lstmCellGrad{1}, In: []graph.Type{f(3, 20), f(3, 5), f(3, 5), f(3, 5), f(3, 5)},
			Second: true},
	)
}

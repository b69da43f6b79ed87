package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// cell launches a step: h and next of gates and state, addresses.
func (s cells) cell(h, next, gates, state uint64) cuda.Command {
	return overElements("lstm_cell", s.b*s.n, h, next, gates, state, s.b, s.n, s.bias)
}

// cellGrad launches the gradient of a step; more is 0, or added to that of h.
func (s cells) cellGrad(dgates, dstate, gates, state, next, dh, more, dnext uint64) cuda.Command {
	return overElements("lstm_cell_grad", s.b*s.n, dgates, dstate, gates, state, next, dh, more,
		dnext, s.b, s.n, s.bias)
}

func cellsOf(state cuda.Operand, bias float32) cells {
	return cells{state.Type.Size(0), state.Type.Size(1), bias}
}

func lstmCellCUDA(o lstmCell, c *cuda.Call) ([]cuda.Command, error) {
	return only(cellsOf(c.In[1], o.ForgetBias).cell(c.Out[0].Addr, c.Out[1].Addr, c.In[0].Addr,
		c.In[1].Addr))
}

func lstmCellGradCUDA(o lstmCellGrad, c *cuda.Call) ([]cuda.Command, error) {
	return only(cellsOf(c.In[1], o.ForgetBias).cellGrad(c.Out[0].Addr, c.Out[1].Addr,
		c.In[0].Addr, c.In[1].Addr, c.In[2].Addr, c.In[3].Addr, 0, c.In[4].Addr))
}

// rowsBy are the commands of C = A·op(B) + beta·C, with matrices that have no gaps.
func rowsBy(a, b, out uint64, m, k, n int, transB bool, beta float32) []cuda.Command {
	ldb := n
	if transB {
		ldb = k
	}
	return multiplied(cuda.Gemm{A: a, B: b, C: out, TransB: transB, M: m, N: n, K: k, LdA: k,
		LdB: ldb, LdC: n, Batch: 1, Beta: beta})
}

// outerBy are those of C = C + Aᵀ·B.
func outerBy(a, b, out uint64, k, m, n int) []cuda.Command {
	return multiplied(cuda.Gemm{A: a, B: b, C: out, TransA: true, M: m, N: n, K: k, LdA: m,
		LdB: n, LdC: n, Batch: 1, Beta: 1})
}

// bytesOf is the size of so many f32.
func bytesOf(n int) uint64 { return 4 * uint64(n) }

// prior is where the state before step t is, given that at the start.
func (s sequence) prior(states, start uint64, t int) uint64 {
	if t == 0 {
		return start
	}
	return states + bytesOf((t-1)*s.b*s.n)
}

func lstmCUDA(o lstm, c *cuda.Call) ([]cuda.Command, error) {
	s := sequenceOf(c.In[0].Type, c.In[3].Type, o.ForgetBias)
	x, w, h0, c0 := c.In[0].Addr, c.In[1].Addr, c.In[3].Addr, c.In[4].Addr
	y, states, gates := c.Out[0].Addr, c.Out[1].Addr, c.Out[2].Addr
	width, rows := 4*s.n, s.t*s.b
	list := []cuda.Command{overElements("repeat_row", rows*width, gates, c.In[2], rows, width)}
	list = append(list, rowsBy(x, w, gates, rows, s.i, width, false, 1)...)
	for t := range s.t {
		at := bytesOf(t * s.b * s.n)
		list = append(list, rowsBy(s.prior(y, h0, t), w+bytesOf(s.i*width), gates+4*at, s.b, s.n,
			width, false, 1)...)
		list = append(list, s.cell(y+at, states+at, gates+4*at, s.prior(states, c0, t)))
	}
	return list, nil
}

// lstmGradCUDA goes back a few steps at a time, as on the host; the scratch has the gradients
// of their gates.
func lstmGradCUDA(o lstmGrad, c *cuda.Call) ([]cuda.Command, error) {
	s := sequenceOf(c.In[0].Type, c.In[2].Type, o.ForgetBias)
	var list []cuda.Command
	for _, sum := range c.Out[1:] {
		if elems(sum) > 0 {
			list = append(list, wiped(sum))
		}
	}
	if s.b*s.n == 0 {
		if elems(c.Out[0]) > 0 {
			list = append(list, wiped(c.Out[0]))
		}
		return list, nil
	}
	for hi := s.t; hi > 0; hi -= s.chunk() {
		lo := max(0, hi-s.chunk())
		list = append(list, s.stepsBack(c, lo, hi)...)
		list = append(list, s.products(c, lo, hi)...)
	}
	return list, nil
}

// stepsBack are the gradients of the gates of steps lo to hi-1, the last first; those of h and
// c go from step to step.
func (s sequence) stepsBack(c *cuda.Call, lo, hi int) []cuda.Command {
	w, c0, states, gates, dy := c.In[1].Addr, c.In[3].Addr, c.In[5].Addr, c.In[6].Addr,
		c.In[7].Addr
	dh, dc, width := c.Out[3].Addr, c.Out[4].Addr, 4*s.n
	var list []cuda.Command
	for t := hi - 1; t >= lo; t-- {
		at, dgates := bytesOf(t*s.b*s.n), c.Scratch+bytesOf((t-lo)*s.b*width)
		list = append(list, s.cellGrad(dgates, dc, gates+4*at, s.prior(states, c0, t), states+at,
			dh, dy+at, dc))
		list = append(list, rowsBy(dgates, w+bytesOf(s.i*width), dh, s.b, width, s.n, true, 0)...)
	}
	return list
}

// products are what follows from the gradients of the gates of steps lo to hi-1.
func (s sequence) products(c *cuda.Call, lo, hi int) []cuda.Command {
	x, w, h0, y := c.In[0].Addr, c.In[1].Addr, c.In[2].Addr, c.In[4].Addr
	dx, dw, dgates := c.Out[0].Addr, c.Out[1].Addr, c.Scratch
	width, rows := 4*s.n, (hi-lo)*s.b
	dwh, at := dw+bytesOf(s.i*width), bytesOf(lo*s.b*s.i)
	list := rowsBy(dgates, w, dx+at, rows, width, s.i, true, 0)
	list = append(list, outerBy(x+at, dgates, dw, rows, s.i, width)...)
	// one more row than there are: row 0 of the sum is what it has so far
	list = append(list, overElements("sum_part", width, c.Out[2], c.Out[2], dgates, 1, rows+1, 1,
		rows, width))
	if lo == 0 { // the state before is h0 rather than in y
		list = append(list, outerBy(h0, dgates, dwh, s.b, s.n, width)...)
		dgates, rows = dgates+bytesOf(s.b*width), rows-s.b
	}
	if rows > 0 {
		h := y + bytesOf((max(lo, 1)-1)*s.b*s.n)
		list = append(list, outerBy(h, dgates, dwh, rows, s.n, width)...)
	}
	return list
}

func lstmGradScratch(_ lstmGrad, in, _ []graph.Type) int64 {
	s := sequenceOf(in[0], in[2], 0)
	return 16 * int64(s.chunk()) * int64(s.b) * int64(s.n)
}

func init() {
	cuda.Register(lstmCellCUDA, nil)
	cuda.Register(lstmCellGradCUDA, nil)
	cuda.Register(lstmCUDA, nil)
	cuda.Register(lstmGradCUDA, lstmGradScratch)
}

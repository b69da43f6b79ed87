package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// cell launches a step: h and next of gates and state, addresses.
func (s cells) cell(h, next, gates, state uint64) cuda.Command {
	return overElements("lstm_cell", s.b*s.n, h, next, gates, state, s.b, s.n, s.bias)
}

// cellGrad launches the gradient of a step; more has no address, or is added to that of h.
func (s cells) cellGrad(dgates, dstate, gates, state, next, dh uint64, more cuda.Operand,
	dnext uint64) cuda.Command {
	return overElements(kernelOf("lstm_cell_grad", more), s.b*s.n, dgates, dstate, gates, state,
		next, dh, more, dnext, s.b, s.n, s.bias)
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
		c.In[0].Addr, c.In[1].Addr, c.In[2].Addr, c.In[3].Addr, cuda.Operand{}, c.In[4].Addr))
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

// rooms are parts of a scratch, one after the other.
type rooms struct{ next uint64 }

// take is a part for so many f32, if they are wanted.
func (r *rooms) take(n int, wanted bool) uint64 {
	at := r.next
	if wanted {
		r.next += uint64(padded(int64(bytesOf(n))))
	}
	return at
}

// widened is where n elements of a value, from one on, are as f32: in their place, or else in a
// room, to which a command brings them first.
func widened(list []cuda.Command, v cuda.Operand, from, n int, room uint64) (uint64,
	[]cuda.Command) {
	at := v.Addr + uint64(from)*uint64(v.Type.DType.Size())
	if !half(v.Type) || n == 0 {
		return at, list
	}
	return room, append(list, overElements("widen", n, room, at, n))
}

// narrowedTo is the other way round: where n elements of a result are made as f32, and the command
// that brings them to their place after that, if it is another.
func narrowedTo(v cuda.Operand, from, n int, room uint64) (uint64, []cuda.Command) {
	at := v.Addr + uint64(from)*uint64(v.Type.DType.Size())
	if !half(v.Type) || n == 0 {
		return at, nil
	}
	return room, []cuda.Command{overElements("narrow", n, at, room, n)}
}

// lstmRooms are what of a scratch the operands and results in bfloat16 take that a few steps are
// about: x of these, h of this step and of the one before, and the first c.
type lstmRooms struct{ x, h, before, c, end uint64 }

func (s sequence) rooms(at uint64, in []graph.Type, y graph.Type) (r lstmRooms) {
	n, p := s.b*s.n, rooms{at}
	r.x = p.take(s.chunk()*s.b*s.i, half(in[0]))
	r.h, r.before = p.take(n, half(y)), p.take(n, half(y) || half(in[3]))
	r.c = p.take(n, half(in[4]))
	r.end = p.next
	return r
}

func lstmScratchCUDA(o lstm, in, out []graph.Type) int64 {
	return int64(sequenceOf(in[0], in[3], 0).rooms(0, in, out[0]).end)
}

// lstmCUDA reads x a few steps at a time where it must be converted. Each step's h is f32 for the
// next one, and rounded, if it is, beside.
func lstmCUDA(o lstm, c *cuda.Call) ([]cuda.Command, error) {
	s := sequenceOf(c.In[0].Type, c.In[3].Type, o.ForgetBias)
	r := s.rooms(c.Scratch, typesOf(c.In), c.Out[0].Type)
	w, states, gates := c.In[1].Addr, c.Out[1].Addr, c.Out[2].Addr
	width, n := 4*s.n, s.b*s.n
	list := []cuda.Command{overElements("repeat_row", s.t*s.b*width, gates, c.In[2], s.t*s.b,
		width)}
	steps := s.t
	if half(c.In[0].Type) {
		steps = max(1, s.chunk())
	}
	for lo := 0; lo < s.t; lo += steps {
		rows := min(steps, s.t-lo) * s.b
		var x uint64
		x, list = widened(list, c.In[0], lo*s.b*s.i, rows*s.i, r.x)
		list = append(list, rowsBy(x, w, gates+bytesOf(lo*s.b*width), rows, s.i, width, false,
			1)...)
	}
	var h, c0 uint64
	h, list = widened(list, c.In[3], 0, n, r.before)
	c0, list = widened(list, c.In[4], 0, n, r.c)
	for t := range s.t {
		at := bytesOf(t * n)
		list = append(list, rowsBy(h, w+bytesOf(s.i*width), gates+4*at, s.b, s.n, width, false,
			1)...)
		y, after := narrowedTo(c.Out[0], t*n, n, r.h)
		list = append(list, s.cell(y, states+at, gates+4*at, s.prior(states, c0, t)))
		list = append(list, after...)
		h, r.h, r.before = y, r.before, r.h
	}
	return list, nil
}

// backRooms are the parts of the scratch of lstmGrad: the gradients of a few steps' gates; of the
// same steps what must be converted, dx, x and y, one after the other; and the first h and c and
// their gradients, if they are in bfloat16.
type backRooms struct{ gates, steps, h, c, dh, dc, end uint64 }

func (s sequence) backRooms(at uint64, in, out []graph.Type) (r backRooms) {
	rows, n, p := s.chunk()*s.b, s.b*s.n, rooms{at}
	r.gates = p.take(4*rows*s.n, true)
	wide := 0
	if half(in[0]) || half(out[0]) {
		wide = s.i
	}
	if half(in[4]) {
		wide = max(wide, s.n)
	}
	r.steps = p.take(rows*wide, wide > 0)
	r.h, r.c = p.take(n, half(in[2])), p.take(n, half(in[3]))
	r.dh, r.dc = p.take(n, half(out[3])), p.take(n, half(out[4]))
	r.end = p.next
	return r
}

// wayBack is lstmGrad under way: where states and their gradients are as f32.
type wayBack struct {
	sequence
	*cuda.Call
	rooms          backRooms
	h0, c0, dh, dc uint64
}

// lstmGradCUDA goes back a few steps at a time, as on the host; the scratch has the gradients
// of their gates.
func lstmGradCUDA(o lstmGrad, c *cuda.Call) ([]cuda.Command, error) {
	s := sequenceOf(c.In[0].Type, c.In[2].Type, o.ForgetBias)
	if s.b*s.n == 0 {
		return wipedAll(c.Out), nil
	}
	n := s.b * s.n
	g := wayBack{sequence: s, Call: c, rooms: s.backRooms(c.Scratch, typesOf(c.In), typesOf(c.Out))}
	var afterH, afterC []cuda.Command
	g.dh, afterH = narrowedTo(c.Out[3], 0, n, g.rooms.dh)
	g.dc, afterC = narrowedTo(c.Out[4], 0, n, g.rooms.dc)
	list := append(wipedAll(c.Out[1:3]), zeros(g.dh, n), zeros(g.dc, n))
	g.h0, list = widened(list, c.In[2], 0, n, g.rooms.h)
	g.c0, list = widened(list, c.In[3], 0, n, g.rooms.c)
	for hi := s.t; hi > 0; hi -= s.chunk() {
		lo := max(0, hi-s.chunk())
		list = append(list, g.stepsBack(lo, hi)...)
		list = append(list, g.products(lo, hi)...)
	}
	return append(append(list, afterH...), afterC...), nil
}

// wipedAll zeroes values that have elements.
func wipedAll(values []cuda.Operand) (list []cuda.Command) {
	for _, v := range values {
		if elems(v) > 0 {
			list = append(list, wiped(v))
		}
	}
	return list
}

// zeros zeroes so many f32.
func zeros(at uint64, n int) cuda.Command { return cuda.Fill{Addr: at, Words: int64(n)} }

// stepsBack are the gradients of the gates of steps lo to hi-1, the last first; those of h and
// c go from step to step.
func (g wayBack) stepsBack(lo, hi int) []cuda.Command {
	w, states, gates, dy := g.In[1].Addr, g.In[5].Addr, g.In[6].Addr, g.In[7]
	width, first := 4*g.n, dy.Addr
	var list []cuda.Command
	for t := hi - 1; t >= lo; t-- {
		n := t * g.b * g.n
		at, dgates := bytesOf(n), g.rooms.gates+bytesOf((t-lo)*g.b*width)
		dy.Addr = first + uint64(n)*uint64(dy.Type.DType.Size())
		list = append(list, g.cellGrad(dgates, g.dc, gates+4*at, g.prior(states, g.c0, t),
			states+at, g.dh, dy, g.dc))
		list = append(list, rowsBy(dgates, w+bytesOf(g.i*width), g.dh, g.b, width, g.n, true,
			0)...)
	}
	return list
}

// products are what follows from the gradients of the gates of steps lo to hi-1.
func (g wayBack) products(lo, hi int) []cuda.Command {
	w, dw, dgates, room := g.In[1].Addr, g.Out[1].Addr, g.rooms.gates, g.rooms.steps
	width, rows := 4*g.n, (hi-lo)*g.b
	dwh, at := dw+bytesOf(g.i*width), lo*g.b*g.i
	dx, after := narrowedTo(g.Out[0], at, rows*g.i, room)
	list := append(rowsBy(dgates, w, dx, rows, width, g.i, true, 0), after...)
	x, list := widened(list, g.In[0], at, rows*g.i, room)
	list = append(list, outerBy(x, dgates, dw, rows, g.i, width)...)
	// one more row than there are: row 0 of the sum is what it has so far
	list = append(list, overElements("sum_part", width, g.Out[2], g.Out[2], dgates, 1, rows+1, 1,
		rows, width))
	if lo == 0 { // the state before is h0 rather than in y
		list = append(list, outerBy(g.h0, dgates, dwh, g.b, g.n, width)...)
		dgates, rows = dgates+bytesOf(g.b*width), rows-g.b
	}
	if rows > 0 {
		var h uint64
		h, list = widened(list, g.In[4], (max(lo, 1)-1)*g.b*g.n, rows*g.n, room)
		list = append(list, outerBy(h, dgates, dwh, rows, g.n, width)...)
	}
	return list
}

func lstmGradScratch(_ lstmGrad, in, out []graph.Type) int64 {
	return int64(sequenceOf(in[0], in[2], 0).backRooms(0, in, out).end)
}

func lstmInputsCUDA(o lstmInputs, c *cuda.Call) ([]cuda.Command, error) {
	x, gates := c.In[0].Type, c.Out[0]
	rows, width := x.Size(0)*x.Size(1), gates.Type.Size(2)
	list := []cuda.Command{overElements("repeat_row", rows*width, gates.Addr, c.In[2], rows, width)}
	return append(list, rowsBy(c.In[0].Addr, c.In[1].Addr, gates.Addr, rows, x.Size(2), width,
		false, 1)...), nil
}

// placedAt copies a value of a type to where a result is, unless it is there.
func placedAt(list []cuda.Command, to cuda.Operand, from uint64) []cuda.Command {
	if to.Addr == from || elems(to) == 0 {
		return list
	}
	return append(list, copiedWhole(to, cuda.Operand{Addr: from, Type: to.Type}))
}

func lstmStepsCUDA(o lstmSteps, c *cuda.Call) ([]cuda.Command, error) {
	s, gates, states := stepsSequence(c.In[0].Type, o.ForgetBias), c.Out[0].Addr, c.Out[2].Addr
	n, width, h := s.b*s.n, 4*s.n, c.In[2].Addr
	list := placedAt(nil, c.Out[0], c.In[0].Addr)
	for t := range s.t {
		at := bytesOf(t * n)
		list = append(list, rowsBy(h, c.In[1].Addr, gates+4*at, s.b, s.n, width, false, 1)...)
		h = c.Out[1].Addr + at
		list = append(list, s.cell(h, states+at, gates+4*at, s.prior(states, c.In[3].Addr, t)))
	}
	list = placedAt(list, c.Out[3], h)
	return placedAt(list, c.Out[4], s.prior(states, c.In[3].Addr, s.t)), nil
}

func lstmBackStepsCUDA(o lstmBackSteps, c *cuda.Call) ([]cuda.Command, error) {
	s := stepsSequence(c.In[0].Type, o.ForgetBias)
	gates, dgates, states, dy, dh, dc := c.In[0].Addr, c.Out[0].Addr, c.In[3].Addr, c.In[4],
		c.Out[1].Addr, c.Out[2].Addr
	n, width, first := s.b*s.n, 4*s.n, dy.Addr
	list := placedAt(placedAt(nil, c.Out[1], c.In[5].Addr), c.Out[2], c.In[6].Addr)
	for t := s.t - 1; t >= 0; t-- {
		at := bytesOf(t * n)
		dy.Addr = first + at
		list = append(list, s.cellGrad(dgates+4*at, dc, gates+4*at,
			s.prior(states, c.In[2].Addr, t), states+at, dh, dy, dc))
		list = append(list, rowsBy(dgates+4*at, c.In[1].Addr, dh, s.b, width, s.n, true, 0)...)
	}
	return list, nil
}

func init() {
	cuda.Register(lstmCellCUDA, nil)
	cuda.Register(lstmInputsCUDA, nil)
	cuda.Register(lstmStepsCUDA, nil)
	cuda.Register(lstmBackStepsCUDA, nil)
	cuda.Register(lstmCellGradCUDA, nil)
	cuda.Register(lstmCUDA, lstmScratchCUDA)
	cuda.Register(lstmGradCUDA, lstmGradScratch)
}

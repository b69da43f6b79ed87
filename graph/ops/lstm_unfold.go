package ops

import "github.com/gomem/gomem/graph"

// mostResults is how many results nodes of an LSTM's part have at most.
const mostResults = 5

// begins says into which parts a recurrent operation can be cut along time, with its bits: the
// steps at which they begin, the first of which is zero; and one past the last step. There is none
// if it has too few steps. An LSTM's gradient adds up those of the weights for some steps at a
// time, from the last, and its parts are these.
func (s sequence) begins() []int {
	if s.t*s.b*s.n*s.i == 0 || s.chunk() == s.t {
		return nil
	}
	begins := []int{0}
	for at := (s.t-1)%s.chunk() + 1; at < s.t; at += s.chunk() {
		begins = append(begins, at)
	}
	return append(begins, s.t)
}

// parts are the steps of a sequence, and its parts.
func (s sequence) parts() (steps, parts int) {
	if begins := s.begins(); begins != nil {
		return s.t, len(begins) - 1
	}
	return 1, 1
}

// Steps are those of the products that add up the weights' gradient, whatever is asked for.
func (o lstm) Steps(in, _ []graph.Type, _ int64) (steps, parts int) {
	return sequenceOf(in[0], in[3], 0).parts()
}

// Steps are those of the products that add up the weights' gradient, whatever is asked for.
func (o lstmGrad) Steps(in, _ []graph.Type, _ int64) (steps, parts int) {
	return sequenceOf(in[0], in[2], 0).parts()
}

// Unfold makes the parts that Steps says.
func (o lstm) Unfold(in []graph.Value, _ int, u graph.Unfolder) [][]graph.Value {
	return unfolded(o, inBF16{}, in, u)
}

// Unfold makes the parts that Steps says.
func (o lstmGrad) Unfold(in []graph.Value, _ int, u graph.Unfolder) [][]graph.Value {
	return unfolded(o, inBF16{}, in, u)
}

// Steps are the operation's, if that is an LSTM.
func (o inBF16) Steps(in, out []graph.Type, limit int64) (steps, parts int) {
	switch op := o.Op.(type) {
	case lstm:
		return op.Steps(in, out, limit)
	case lstmGrad:
		return op.Steps(in, out, limit)
	}
	return 1, 1
}

// Unfold makes the operation's parts, and rounds what is rounded.
func (o inBF16) Unfold(in []graph.Value, _ int, u graph.Unfolder) [][]graph.Value {
	return unfolded(o.Op, o, in, u)
}

// unfolded are the results of an LSTM or of its gradient in parts.
func unfolded(op graph.Op, rounded inBF16, in []graph.Value, u graph.Unfolder) [][]graph.Value {
	f := unfolding{Unfolder: u, rounded: rounded, in: in}
	switch o := op.(type) {
	case lstm:
		f.sequence = sequenceOf(in[0].Type(), in[3].Type(), o.ForgetBias)
		return f.forward(o)
	case lstmGrad:
		f.sequence = sequenceOf(in[0].Type(), in[2].Type(), o.ForgetBias)
		return f.backward(o)
	}
	return nil
}

// unfolding is Unfold under way.
type unfolding struct {
	graph.Unfolder
	sequence
	rounded inBF16 // which results are rounded to bfloat16
	in      []graph.Value
}

// node are the results of a node of which some are rounded, the first by bit 0.
func (f unfolding) node(what string, op graph.Op, round uint8, in ...graph.Value) []graph.Value {
	halves := round > 0
	for _, v := range in {
		halves = halves || v.Valid() && half(v.Type())
	}
	if halves {
		op = inBF16{op, round}
	}
	return f.Node(mostResults, what, op, in...)
}

// one is the only result of a node.
func (f unfolding) one(what string, op graph.Op, in ...graph.Value) graph.Value {
	return f.node(what, op, 0, in...)[0]
}

// bit is 1<<to if a result of the whole is rounded.
func (f unfolding) bit(result, to int) uint8 { return f.rounded.Round >> result & 1 << to }

func (f unfolding) forward(o lstm) [][]graph.Value {
	w, bias, h, c := f.in[1], f.Whole(f.in[2]), f.Whole(f.in[3]), f.Whole(f.in[4])
	wx, wh := f.Rows(w, 0, f.i), f.Rows(w, f.i, f.i+f.n)
	round := f.bit(2, 0) | f.bit(0, 1) | f.bit(1, 2)
	out := make([][]graph.Value, 3)
	begins := f.begins()
	for k, lo := range begins[:len(begins)-1] {
		f.Part(k+1, len(begins)-1)
		gates := f.one("inputs", lstmInputs{f.t}, f.Rows(f.in[0], lo, begins[k+1]), wx, bias)
		r := f.node("steps", lstmSteps(o), round, gates, wh, h, c)
		for i, v := range []graph.Value{r[1], r[2], r[0]} {
			out[i] = append(out[i], v)
		}
		h, c = r[3], r[4]
	}
	return out
}

// zeros are of a shape.
func (f unfolding) zeros(what string, sizes ...int) graph.Value {
	return f.one(what, fill{Shape: sized(sizes)})
}

// flat is a value whose steps and rows are one axis.
func (f unfolding) flat(what string, v graph.Value) graph.Value {
	if !v.Valid() {
		return v
	}
	t := v.Type()
	return f.Node(1, what, Shaped(graph.RowsOf(t, 2, t.Size(0)*t.Size(1))), v)[0]
}

func (f unfolding) backward(o lstmGrad) [][]graph.Value {
	w, h0, y, states, width := f.in[1], f.Whole(f.in[2]), f.in[4], f.in[5], 4*f.n
	wx, wh := f.Rows(w, 0, f.i), f.Rows(w, f.i, f.i+f.n)
	dh, dc := f.zeros("dh", f.b, f.n), f.zeros("dc", f.b, f.n)
	dwx, dwh, dbias := f.zeros("dwx", f.i, width), f.zeros("dwh", f.n, width),
		f.zeros("dbias", 1, width)
	sum := matMulPart{MatMul: matMul{TransA: true}, Add: true}
	begins := f.begins()
	dx := make([]graph.Value, len(begins)-1)
	for k := len(dx) - 1; k >= 0; k-- {
		lo, hi := begins[k], begins[k+1]
		f.Part(k+1, len(dx))
		rows, before := (hi-lo)*f.b, f.Whole(f.in[3])
		if lo > 0 {
			before = f.shaped("c", f.Rows(states, lo-1, lo), f.b, f.n)
		}
		r := f.node("back", lstmBackSteps(o), 0, f.Rows(f.in[6], lo, hi), wh, before,
			f.Rows(states, lo, hi), f.Rows(f.in[7], lo, hi), dh, dc)
		dh, dc = r[1], r[2]
		dg := f.flat("dgates", r[0])
		d := f.node("dx", matMul{TransB: true}, f.bit(0, 0), dg, wx)[0]
		dx[k] = f.shaped("dx", d, hi-lo, f.b, f.i)
		dwx = f.one("dwx", sum, dwx, f.flat("x", f.Rows(f.in[0], lo, hi)), dg)
		dbias = f.one("dbias", sumPart{Rows: rows + 1, From: 1, Blocks: 1}, dbias, dg)
		if lo == 0 {
			dwh = f.one("dwh", sum, dwh, h0, f.one("dgates", Rows(0, f.b), dg))
			dg, lo = f.one("dgates", Rows(f.b, rows), dg), 1
		}
		if hi > lo {
			dwh = f.one("dwh", sum, dwh, f.flat("h", f.Rows(y, lo-1, hi-1)), dg)
		}
	}
	return [][]graph.Value{dx, {dwx, dwh}, {f.shaped("dbias", dbias, width)},
		{f.as(dh, f.bit(3, 0))}, {f.as(dc, f.bit(4, 0))}}
}

// shaped is a value with axes of these sizes.
func (f unfolding) shaped(what string, v graph.Value, sizes ...int) graph.Value {
	return f.Node(1, what, reshape{sized(sizes)}, v)[0]
}

// as is a value of f32, rounded or not.
func (f unfolding) as(v graph.Value, round uint8) graph.Value {
	if round == 0 {
		return v
	}
	return f.Node(1, "rounded", cast{graph.BF16}, v)[0]
}

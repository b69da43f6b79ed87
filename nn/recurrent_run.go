package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// Weights are those of a recurrent layer of one direction that somebody else has trained, as
// other formats have them: the rows are gates, units each.
type Weights struct {
	Input graph.Value // f32[gates·units in], of the products with x
	State graph.Value // f32[gates·units units], of the products with the state
	// InputBias and StateBias f32[gates·units] are added to these products. Zero values: none.
	InputBias, StateBias graph.Value
	// Peephole f32[3·units] has what an LSTM's input, output and forget gate see of its cells.
	// The zero value: nothing.
	Peephole graph.Value
}

// RunOptions are those of [RunRNN], [RunGRU] and [RunLSTM]. The zero value is the usual layer,
// from the first step to the last, from zeros.
type RunOptions struct {
	Reverse bool        // from the last step to the first
	State   graph.Value // f32[batch units] before the first step
	Cells   graph.Value // f32[batch units] of an LSTM before the first step
	// Lengths i32[batch] are of how many steps each sequence is. After them its state stays as it
	// is, and y is zeros; in reverse, it begins at the last of them.
	Lengths graph.Value
	Clip    float32 // what goes into activations lies between -Clip and Clip; 0: anywhere
	// ResetBefore resets the state before a GRU's product with it, as Cho et al. have it, and not
	// what the product gives.
	ResetBefore bool
	// Coupled has an LSTM forget what it does not let in, 1−i, instead of by a gate of its own.
	Coupled bool
	// Gate, Candidate and Output are a GRU's or an LSTM's activations of gates, of what is new,
	// and of an LSTM's cells; an RNN's is Candidate. nil means Sigmoid, Tanh and Tanh.
	Gate, Candidate, Output func(graph.Value) graph.Value
}

// plain reports whether an LSTM is that of [ops.LSTM].
func (o RunOptions) plain(w Weights) bool {
	return !w.Peephole.Valid() && !o.Lengths.Valid() && o.Clip == 0 && !o.Coupled &&
		o.Gate == nil && o.Candidate == nil && o.Output == nil
}

// RunRNN runs a simple recurrent layer over x f32[time batch in]: y f32[time batch units], the
// state after every step, and the last state f32[batch units]. A step is h ← f(x·W + b + h·U + c).
func RunRNN(x graph.Value, w Weights, o RunOptions) (y, last graph.Value) {
	r, ok := newRun("RunRNN", x, w, o, 1)
	if !ok {
		return
	}
	all := r.rows(0, 1)
	y, last, _ = r.over(func(x, h, _ graph.Value) (graph.Value, graph.Value) {
		return r.candidate(ops.Add(x, all.of(h))), graph.Value{}
	})
	return y, last
}

// RunGRU runs a gated recurrent layer, as RunRNN does a simple one. Gates are in the order z, r,
// n: the update gate, the reset gate and what is new. A step is
//
//	n ← f(x·Wn + bn + r·(h·Un + cn))    or, with ResetBefore, f(x·Wn + bn + (r·h)·Un + cn)
//	h ← (1−z)·n + z·h
func RunGRU(x graph.Value, w Weights, o RunOptions) (y, last graph.Value) {
	r, ok := newRun("RunGRU", x, w, o, 3)
	if !ok {
		return
	}
	both := func(x graph.Value) graph.Value { return ops.Slice(x, 1, 0, 2*r.units) }
	all, gating, renewing := r.rows(0, 3), r.rows(0, 2), r.rows(2, 3)
	y, last, _ = r.over(func(x, h, _ graph.Value) (graph.Value, graph.Value) {
		var gates, fresh graph.Value
		if o.ResetBefore {
			gates = r.gate(ops.Add(both(x), gating.of(h)))
			fresh = renewing.of(ops.Mul(r.part(gates, 1), h))
		} else {
			s := all.of(h)
			gates = r.gate(ops.Add(both(x), both(s)))
			fresh = ops.Mul(r.part(gates, 1), r.part(s, 2))
		}
		fresh = r.candidate(ops.Add(r.part(x, 2), fresh))
		return ops.Add(fresh, ops.Mul(r.part(gates, 0), ops.Sub(h, fresh))), graph.Value{}
	})
	return y, last
}

// RunLSTM runs an LSTM, as RunRNN does a simple layer: y, and the last state and cells. Gates are
// in the order i, o, f, c: the input, the output and the forget gate and what is new. The usual
// layer is that of [ops.LSTM], whose cells have no gradient but through y.
func RunLSTM(x graph.Value, w Weights, o RunOptions) (y, last, cells graph.Value) {
	r, ok := newRun("RunLSTM", x, w, o, 4)
	if !ok {
		return
	}
	if o.plain(w) {
		return r.fused(x)
	}
	all := r.rows(0, 4)
	y, last, cells = r.over(func(x, h, c graph.Value) (graph.Value, graph.Value) {
		s := ops.Add(x, all.of(h))
		in := r.gate(r.seeing(s, 0, c))
		forget := ops.AddScalar(ops.Neg(in), 1)
		if !o.Coupled {
			forget = r.gate(r.seeing(s, 2, c))
		}
		c = ops.Add(ops.Mul(forget, c), ops.Mul(in, r.candidate(r.part(s, 3))))
		return ops.Mul(r.gate(r.seeing(s, 1, c)), or(o.Output, ops.Tanh)(c)), c
	})
	return y, last, cells
}

// run is a layer that is run: its parts are units wide.
type run struct {
	Weights
	RunOptions
	x     graph.Value // products with it, f32[time batch gates·units]
	units int
}

// newRun checks the operands. A mistake is an error of the graph.
func newRun(layer string, x graph.Value, w Weights, o RunOptions, gates int) (r *run, ok bool) {
	if !w.Input.Valid() || !exact(layer, x, 3, "time, batch and width") ||
		!exact(layer, w.State, 2, "gates' units, and units") {
		return nil, false
	}
	t, g := x.Type(), x.Graph()
	units := w.State.Type().Size(-1)
	rows := gates * units
	for _, v := range []struct {
		what  string
		value graph.Value
		want  graph.Type
	}{
		{"weights of the state", w.State, tensor.Of(graph.F32, rows, units)},
		{"weights of the input", w.Input, tensor.Of(graph.F32, rows, t.Size(2))},
		{"a bias of the input", w.InputBias, tensor.Of(graph.F32, rows)},
		{"a bias of the state", w.StateBias, tensor.Of(graph.F32, rows)},
		{"a peephole", w.Peephole, tensor.Of(graph.F32, 3*units)},
		{"a state", o.State, tensor.Of(graph.F32, t.Size(1), units)},
		{"cells", o.Cells, tensor.Of(graph.F32, t.Size(1), units)},
		{"lengths", o.Lengths, tensor.Of(graph.I32, t.Size(1))},
	} {
		if v.value.Valid() && (v.value.Type().DType != v.want.DType ||
			!v.value.Type().SameShape(v.want)) {
			g.Fail(errorf("%s has %s %s, want %s", layer, v.what, v.value.Type(), v.want))
			return nil, false
		}
	}
	if o.Clip < 0 || o.Clip != o.Clip {
		g.Fail(errorf("%s clips at %g, want a positive number, or 0 for none", layer, o.Clip))
		return nil, false
	}
	r = &run{Weights: w, RunOptions: o, units: units}
	if r.x = ops.MatMulT(x, w.Input, false, true); w.InputBias.Valid() {
		r.x = ops.Add(r.x, w.InputBias)
	}
	return r, true
}

// part is that of a gate.
func (r *run) part(x graph.Value, i int) graph.Value {
	return ops.Slice(x, -1, i*r.units, (i+1)*r.units)
}

// affine is a product with weights, and a bias.
type affine struct{ weight, bias graph.Value }

func (a affine) of(h graph.Value) graph.Value {
	y := ops.MatMulT(h, a.weight, false, true)
	if a.bias.Valid() {
		y = ops.Add(y, a.bias)
	}
	return y
}

// rows are what gates from lo to hi-1 make of a state.
func (r *run) rows(lo, hi int) affine {
	part := func(v graph.Value) graph.Value {
		if !v.Valid() || v.Type().Size(0) == (hi-lo)*r.units {
			return v
		}
		return ops.Slice(v, 0, lo*r.units, hi*r.units)
	}
	return affine{part(r.Weights.State), part(r.StateBias)}
}

// seeing is what goes into a gate, which may see the cells.
func (r *run) seeing(s graph.Value, gate int, c graph.Value) graph.Value {
	s = r.part(s, gate)
	if r.Peephole.Valid() {
		s = ops.Add(s, ops.Mul(r.part(r.Peephole, gate), c))
	}
	return s
}

// gate is the activation of gates.
func (r *run) gate(x graph.Value) graph.Value { return or(r.Gate, ops.Sigmoid)(r.clipped(x)) }

// candidate is the activation of what is new.
func (r *run) candidate(x graph.Value) graph.Value {
	return or(r.Candidate, ops.Tanh)(r.clipped(x))
}

func (r *run) clipped(x graph.Value) graph.Value {
	if r.Clip > 0 {
		return ops.Clip(x, -r.Clip, r.Clip)
	}
	return x
}

// or is a function, or else another one.
func or(f, other func(graph.Value) graph.Value) func(graph.Value) graph.Value {
	if f == nil {
		return other
	}
	return f
}

// zeros is a state, or zeros.
func (r *run) zeros(state graph.Value) graph.Value {
	if state.Valid() {
		return state
	}
	return ops.Zeros(r.x.Graph(), tensor.Of(graph.F32, r.x.Type().Size(1), r.units))
}

// over runs a cell over all steps. A cell makes a state of the products with a step's x, the
// state before, and cells, which need not be.
func (r *run) over(cell func(x, h, c graph.Value) (graph.Value, graph.Value)) (y, h,
	c graph.Value) {
	h, c = r.zeros(r.RunOptions.State), r.zeros(r.Cells)
	none := ops.Zeros(r.x.Graph(), tensor.Of(graph.F32))
	at := 0
	y = RecurrentOptions{Reverse: r.Reverse}.unroll(r.x, func(x graph.Value) graph.Value {
		next, cells := cell(x, h, c)
		out := next
		if r.Lengths.Valid() {
			is := r.within(at)
			next, out = ops.Where(is, next, h), ops.Where(is, next, none)
			if cells.Valid() {
				cells = ops.Where(is, cells, c)
			}
		}
		h, c = next, cells
		at++
		return out
	})
	return y, h, c
}

// within is which sequences have the step that is run after so many: bool[batch 1].
func (r *run) within(steps int) graph.Value {
	if r.Reverse {
		steps = r.x.Type().Size(0) - 1 - steps
	}
	at := tensor.New(tensor.Of(graph.I32))
	at.I32()[0] = int32(steps)
	return ops.ExpandDims(ops.Less(r.x.Graph().Constant("step", at), r.Lengths), 1)
}

// fused is the usual LSTM, whose gates are in the order i, c, f, o, and columns.
func (r *run) fused(x graph.Value) (y, last, cells graph.Value) {
	ordered := func(v graph.Value) graph.Value {
		row := func(i int) graph.Value { return ops.Slice(v, 0, i*r.units, (i+1)*r.units) }
		return ops.Concat(0, row(0), row(3), row(2), row(1))
	}
	bias := ops.Zeros(x.Graph(), tensor.Of(graph.F32, 4*r.units))
	for _, b := range []graph.Value{r.InputBias, r.StateBias} {
		if b.Valid() {
			bias = ops.Add(bias, ordered(b))
		}
	}
	weight := ops.Transpose(ops.Concat(1, ordered(r.Input), ordered(r.Weights.State)), 1, 0)
	if r.Reverse {
		x = ops.Reverse(x, 0)
	}
	y, states := ops.LSTM(x, weight, bias, r.zeros(r.RunOptions.State), r.zeros(r.Cells), 0)
	end := x.Type().Size(0)
	final := func(v graph.Value) graph.Value {
		return ops.Squeeze(ops.Slice(v, 0, end-1, end), 0)
	}
	last, cells = final(y), final(states)
	if r.Reverse {
		y = ops.Reverse(y, 0)
	}
	return y, last, cells
}

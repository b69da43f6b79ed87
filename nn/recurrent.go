package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// RecurrentOptions are those of [LSTM] and [GRU].
type RecurrentOptions struct {
	Reverse bool // from the last step to the first
	// Unrolled makes operations of every step, rather than one of an LSTM's sequence.
	Unrolled bool
	// Scanned makes one operation of the loop over all steps, whose plan does not grow with their
	// number (see package control): with the bits of the unrolled one.
	Scanned bool
	// PerGate gives each gate of an LSTM two matrices of its own, and unrolls it: the largest
	// variable is then an eighth of the layer, which may be more than a device holds.
	PerGate    bool
	ForgetBias float32 // added to an LSTM's forget gate
	Weight     Init    // nil means [Glorot]
}

// LSTM runs a recurrent layer over a sequence (Hochreiter and Schmidhuber 1997, with
// Gers' forget gate): x f32[time batch in] → f32[time batch units], the state after
// every step, from zeros. Its parameters are weight f32[in+units 4·units], the rows
// for the input first and the columns of the input gate, the candidate, the forget and
// the output gate in this order, and bias f32[4·units]. See [ops.LSTM]. With PerGate they
// are a weight f32[in units] and a state-weight f32[units units] in each of the places
// "input", "candidate", "forget" and "output", and the same bias.
func LSTM(c *Ctx, x graph.Value, units int, options ...RecurrentOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !recurrent("LSTM", x, units) {
		return graph.Value{}
	}
	if o.PerGate && o.Scanned || o.Unrolled && o.Scanned {
		c.Graph().Fail(errorf("an LSTM is unrolled, or scanned, or has matrices per gate"))
		return graph.Value{}
	}
	if o.PerGate {
		return o.gates(c, x, units)
	}
	defer c.Enter()()
	t := x.Type()
	weight := c.Param("weight", o.Weight.or(Glorot), t.Size(2)+units, 4*units)
	bias := c.Param("bias", nil, 4*units)
	zero := ops.Zeros(c.Graph(), tensor.Of(graph.F32, t.Size(1), units))
	if o.Unrolled || o.Scanned {
		cell := func(weights, states []graph.Value, x graph.Value) []graph.Value {
			gates := ops.MatMul(ops.Concat(1, x, states[0]), weights[0])
			h, state := ops.LSTMCell(ops.Add(gates, weights[1]), states[1], o.ForgetBias)
			return []graph.Value{h, state}
		}
		return o.loop(x, []graph.Value{weight, bias}, []graph.Value{zero, zero}, cell)
	}
	if o.Reverse {
		x = backwards(x)
	}
	y, _ := ops.LSTM(x, weight, bias, zero, zero, o.ForgetBias)
	if o.Reverse {
		y = backwards(y)
	}
	return y
}

// gates is an LSTM with matrices for each gate. The products with x are one a gate for the
// whole sequence; the first step has none with the state, which is zeros.
func (o RecurrentOptions) gates(c *Ctx, x graph.Value, units int) graph.Value {
	var fromX, weights []graph.Value
	for _, name := range []string{"input", "candidate", "forget", "output"} {
		at := c.In(name)
		leave := at.Enter()
		w := at.Param("weight", o.Weight.or(Glorot), x.Type().Size(2), units)
		fromX = append(fromX, ops.MatMul(x, w))
		weights = append(weights, at.Param("state-weight", o.Weight.or(Glorot), units, units))
		leave()
	}
	defer c.Enter()()
	bias := c.Param("bias", nil, 4*units)
	var h graph.Value
	state := ops.Zeros(c.Graph(), tensor.Of(graph.F32, x.Type().Size(1), units))
	return o.unroll(ops.Add(ops.Concat(2, fromX...), bias), func(gates graph.Value) graph.Value {
		if h.Valid() {
			products := make([]graph.Value, len(weights))
			for i, w := range weights {
				products[i] = ops.MatMul(h, w)
			}
			gates = ops.Add(gates, ops.Concat(1, products...))
		}
		h, state = ops.LSTMCell(gates, state, o.ForgetBias)
		return h
	})
}

// recurrent demands a sequence, and units.
func recurrent(layer string, x graph.Value, units int) bool {
	if !exact(layer, x, 3, "time, batch and width") {
		return false
	}
	if units < 1 {
		x.Graph().Fail(errorf("%s with %d units: want 1 or more", layer, units))
		return false
	}
	return true
}

// loop makes a sequence of the first state of a cell after each step: as one operation, or as
// operations of every step.
func (o RecurrentOptions) loop(x graph.Value, weights, states []graph.Value,
	cell func(weights, states []graph.Value, x graph.Value) []graph.Value) graph.Value {
	if !o.Scanned {
		return o.unroll(x, func(x graph.Value) graph.Value {
			states = cell(weights, states, x)
			return states[0]
		})
	}
	_, y := control.Scan(weights, states, []graph.Value{x},
		func(same, states, xs []graph.Value) (next, ys []graph.Value) {
			next = cell(same, states, xs[0])
			return next, next[:1]
		}, control.Options{Reverse: o.Reverse})
	if len(y) == 0 {
		return graph.Value{}
	}
	return y[0]
}

// unroll makes a sequence of what a cell makes of each step. Backward, each step has
// a gradient of the weights, which is added to those of the steps after it before
// the step before it is reached: there are never more than a few.
func (o RecurrentOptions) unroll(x graph.Value,
	cell func(graph.Value) graph.Value) graph.Value {
	steps := ops.Unstack(x)
	out := make([]graph.Value, len(steps))
	for i := range steps {
		at := i
		if o.Reverse {
			at = len(steps) - 1 - i
		}
		out[at] = cell(steps[at])
	}
	return ops.Stack(out...)
}

// backwards is a sequence from the last step to the first.
func backwards(x graph.Value) graph.Value {
	steps := ops.Unstack(x)
	for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
		steps[i], steps[j] = steps[j], steps[i]
	}
	return ops.Stack(steps...)
}

// GRU runs a gated recurrent layer over a sequence (Cho et al. 2014, in the form of
// cuDNN and PyTorch, which resets what the candidate's product gives): x f32[time batch
// in] → f32[time batch units], the state after every step, from zeros. With r and z
// the reset and the update gate, a step is
//
//	n ← tanh(x·Wn + bn + r·(h·Un + cn))
//	h ← (1−z)·n + z·h
//
// Its parameters are weight f32[in 3·units] and bias f32[3·units], state-weight
// f32[units 3·units] and state-bias f32[3·units], columns in the order r, z, n. The
// products with x are one matrix product for the whole sequence.
func GRU(c *Ctx, x graph.Value, units int, options ...RecurrentOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !recurrent("GRU", x, units) {
		return graph.Value{}
	}
	defer c.Enter()()
	fromX := Linear(c, x, 3*units, LinearOptions{Weight: o.Weight})
	weight := c.Param("state-weight", o.Weight.or(Glorot), units, 3*units)
	bias := c.Param("state-bias", nil, 3*units)
	h := ops.Zeros(c.Graph(), tensor.Of(graph.F32, x.Type().Size(1), units))
	part := func(x graph.Value, i int) graph.Value { return ops.Slice(x, 1, i*units, (i+1)*units) }
	cell := func(weights, states []graph.Value, x graph.Value) []graph.Value {
		h := states[0]
		s := ops.Add(ops.MatMul(h, weights[0]), weights[1])
		gates := ops.Sigmoid(ops.Add(ops.Slice(x, 1, 0, 2*units), ops.Slice(s, 1, 0, 2*units)))
		reset, update := part(gates, 0), part(gates, 1)
		fresh := ops.Tanh(ops.Add(part(x, 2), ops.Mul(reset, part(s, 2))))
		return []graph.Value{ops.Add(fresh, ops.Mul(update, ops.Sub(h, fresh)))}
	}
	return o.loop(fromX, []graph.Value{weight, bias}, []graph.Value{h}, cell)
}

// Bidirectional is a recurrent layer over a sequence in either direction, in places
// "forward" and "backward", with both states of a step beside each other: x f32[time
// batch in] → f32[time batch 2·units].
func Bidirectional(c *Ctx, x graph.Value, units int,
	layer func(c *Ctx, x graph.Value, units int, options ...RecurrentOptions) graph.Value,
	options ...RecurrentOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok {
		return graph.Value{}
	}
	defer c.Enter()()
	forward := layer(c.In("forward"), x, units, o)
	o.Reverse = !o.Reverse
	return ops.Concat(2, forward, layer(c.In("backward"), x, units, o))
}

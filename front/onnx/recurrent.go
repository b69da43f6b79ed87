package onnx

import (
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// recurrent are operators that go over sequences. They are unrolled.
var recurrent = each(map[string]func(n *node){
	"RNN":  recur(1, 1, []string{"Tanh"}, simpleCell),
	"GRU":  recur(3, 1, []string{"Sigmoid", "Tanh"}, gruCell),
	"LSTM": recur(4, 2, []string{"Sigmoid", "Tanh", "Tanh"}, lstmCell),
})

// direction is one of a recurrent network's: its weights, its activations and its state.
type direction struct {
	n         *node
	hidden    int
	r         value   // f32[gates·hidden hidden]
	bias      value   // of r, f32[gates·hidden]
	peepholes value   // f32[3·hidden], or none
	f         []unary // activations
	clip      float32
}

// cell is a step: of what weights make of an input, [batch gates·hidden], and the state.
type cell func(d direction, x value, state []value) []value

// act is an activation of what is clipped before.
func (d direction) act(i int, x value) value {
	if d.clip > 0 {
		x = ops.Clip(x, -d.clip, d.clip)
	}
	return d.f[i](x)
}

// gates are gates lo to hi-1 of an operand whose last axis has all.
func (d direction) gates(x value, lo, hi int) value {
	return ops.Slice(x, x.Type().Rank()-1, lo*d.hidden, hi*d.hidden)
}

// again is what gates lo to hi-1 make of the state.
func (d direction) again(h value, lo, hi int) value {
	r := ops.Slice(d.r, 0, lo*d.hidden, hi*d.hidden)
	return ops.Add(ops.MatMulT(h, r, false, true), d.gates(d.bias, lo, hi))
}

func simpleCell(d direction, x value, state []value) []value {
	return []value{d.act(0, ops.Add(x, d.again(state[0], 0, 1)))}
}

func gruCell(d direction, x value, state []value) []value {
	h := state[0]
	both := d.act(0, ops.Add(d.gates(x, 0, 2), d.again(h, 0, 2)))
	update, reset := d.gates(both, 0, 1), d.gates(both, 1, 2)
	var from value
	if d.n.flag("linear_before_reset", false) {
		from = ops.Mul(reset, d.again(h, 2, 3))
	} else {
		from = d.again(ops.Mul(reset, h), 2, 3)
	}
	next := d.act(1, ops.Add(d.gates(x, 2, 3), from))
	return []value{ops.Add(next, ops.Mul(update, ops.Sub(h, next)))}
}

// lstmCell has gates i, o, f and c.
func lstmCell(d direction, x value, state []value) []value {
	h, c := state[0], state[1]
	all := ops.Add(x, d.again(h, 0, 4))
	gate := func(i int) value { return d.gates(all, i, i+1) }
	peep := func(i int, x, c value) value {
		if !d.peepholes.Valid() {
			return x
		}
		return ops.Add(x, ops.Mul(d.gates(d.peepholes, i, i+1), c))
	}
	in := d.act(0, peep(0, gate(0), c))
	var forget value
	if d.n.flag("input_forget", false) {
		forget = ops.Sub(like(in, 1), in)
	} else {
		forget = d.act(0, peep(2, gate(2), c))
	}
	next := ops.Add(ops.Mul(forget, c), ops.Mul(in, d.act(1, gate(3))))
	out := d.act(0, peep(1, gate(1), next))
	return []value{ops.Mul(out, d.f[2](next)), next}
}

// recur is an operator of so many gates and states, with activations that it has if the file
// names none.
func recur(gates, states int, otherwise []string, step cell) func(n *node) {
	return func(n *node) {
		way := n.text("direction", "forward")
		n.only("direction", way, "forward", "reverse", "bidirectional")
		batchFirst := n.flag("layout", false)
		x := n.wide(0)
		if x.Type().Rank() != 3 {
			fail("its operand is %s, want [length batch width]", x.Type())
		}
		if batchFirst {
			x = ops.Transpose(x, 1, 0, 2)
		}
		s := sequence{n: n, x: x, hidden: n.wide(2).Type().Size(2), step: step, gates: gates,
			states: states, batchFirst: batchFirst}
		if h := n.int("hidden_size", s.hidden); h != s.hidden {
			fail("hidden_size is %d, and the weights have %d", h, s.hidden)
		}
		many := 1
		if way == "bidirectional" {
			many = 2
		}
		f := activations(n, otherwise, many)
		var ys []value
		last := make([][]value, states)
		for d := range many {
			y, state := s.run(d, f[d*len(otherwise):], way == "reverse" || d == 1)
			ys = append(ys, y)
			for i := range state {
				last[i] = append(last[i], state[i])
			}
		}
		y := ops.Stack(ys...) // [direction length batch hidden]
		if batchFirst {
			y = ops.Transpose(y, 2, 1, 0, 3)
		} else {
			y = ops.Transpose(y, 1, 0, 2, 3)
		}
		n.give(n.narrow(y))
		for _, list := range last {
			h := ops.Stack(list...)
			if batchFirst {
				h = ops.Transpose(h, 1, 0, 2)
			}
			n.give(n.narrow(h))
		}
	}
}

// sequence is what a recurrent network goes over, x f32[length batch width].
type sequence struct {
	n                     *node
	x                     value
	hidden, gates, states int
	step                  cell
	batchFirst            bool
}

// of is what direction d has of operand i, if that is there.
func (s sequence) of(i, d int) value {
	if !s.n.has(i) {
		return value{}
	}
	return ops.Squeeze(ops.Slice(s.n.wide(i), 0, d, d+1), 0)
}

// run goes over the sequence in a direction, and has all states h, and the last of all states.
// Behind its end a sequence keeps its state.
func (s sequence) run(d int, f []unary, reverse bool) (y value, state []value) {
	n, length, batch := s.n, s.x.Type().Size(0), s.x.Type().Size(1)
	if length > mostIterations {
		fail("it runs more than %d times", mostIterations)
	}
	at := direction{n: n, hidden: s.hidden, r: s.of(2, d), f: f, clip: n.float("clip", 0)}
	zeros := func(sizes ...int) value { return ops.Zeros(n.b.g, tensor.Of(graph.F32, sizes...)) }
	both, rows := s.of(3, d), s.gates*s.hidden
	if !both.Valid() {
		both = zeros(2 * rows)
	}
	at.bias = ops.Slice(both, 0, rows, 2*rows)
	if s.states > 1 {
		at.peepholes = s.of(7, d)
	}
	x := ops.MatMulT(s.x, s.of(1, d), false, true)
	x = ops.Add(x, ops.Slice(both, 0, 0, rows))
	for i := range s.states {
		state = append(state, s.first(5+i, d, zeros(batch, s.hidden)))
	}
	var lengths value
	if n.has(4) {
		lengths = ops.ReshapeSizes(ops.Cast(n.x(4), graph.F32), batch, 1)
	}
	list := make([]value, length)
	for i := range length {
		if reverse {
			i = length - 1 - i
		}
		next := s.step(at, ops.Squeeze(ops.Slice(x, 0, i, i+1), 0), state)
		list[i] = next[0]
		if lengths.Valid() {
			inside := ops.Greater(lengths, like(lengths, float64(i)))
			list[i] = ops.Where(inside, next[0], like(next[0], 0))
			for k := range next {
				next[k] = ops.Where(inside, next[k], state[k])
			}
		}
		state = next
	}
	return ops.Stack(list...), state
}

// first is the state that operand i has for direction d.
func (s sequence) first(i, d int, otherwise value) value {
	if !s.n.has(i) {
		return otherwise
	}
	if s.batchFirst {
		return ops.Squeeze(ops.Slice(s.n.wide(i), 1, d, d+1), 1)
	}
	return s.of(i, d)
}

// activations are those of all directions, by their names, with what numbers they have.
func activations(n *node, otherwise []string, directions int) []unary {
	var names []string
	for range directions {
		names = append(names, otherwise...)
	}
	if a := n.attribute("activations", onnx.StringsKind); a != nil {
		if len(a.Strings) != len(names) {
			fail("activations are %q: want %d", a.Strings, len(names))
		}
		names = a.Strings
	}
	next := func(name string) func(otherwise float32) float32 {
		var list []float32
		if a := n.attribute(name, onnx.FloatsKind); a != nil {
			list = a.Floats
		}
		return func(otherwise float32) float32 {
			if len(list) == 0 {
				return otherwise
			}
			v := list[0]
			list = list[1:]
			return v
		}
	}
	alpha, beta := next("activation_alpha"), next("activation_beta")
	var list []unary
	for _, name := range names {
		list = append(list, activation(name, alpha, beta))
	}
	return list
}

// activation is one of a name, which takes its numbers from those that are left.
func activation(name string, alpha, beta func(otherwise float32) float32) unary {
	switch strings.ToLower(name) {
	case "relu":
		return ops.Relu
	case "tanh":
		return ops.Tanh
	case "sigmoid":
		return ops.Sigmoid
	case "softplus":
		return ops.Softplus
	case "softsign":
		return func(x value) value { return ops.Div(x, ops.AddScalar(ops.Abs(x), 1)) }
	case "elu":
		a := alpha(1)
		return func(x value) value { return negative(x, elu(x, a)) }
	case "leakyrelu":
		a := alpha(0.01)
		return func(x value) value { return negative(x, ops.Scale(x, a)) }
	case "thresholdedrelu":
		a := alpha(1)
		return func(x value) value { return thresholded(x, a) }
	case "affine":
		a, b := alpha(1), beta(0)
		return func(x value) value { return ops.AddScalar(ops.Scale(x, a), b) }
	case "scaledtanh":
		a, b := alpha(1), beta(1)
		return func(x value) value { return ops.Scale(ops.Tanh(ops.Scale(x, b)), a) }
	case "hardsigmoid":
		a, b := alpha(0.2), beta(0.5)
		return func(x value) value { return ops.Clip(ops.AddScalar(ops.Scale(x, a), b), 0, 1) }
	}
	fail("activation %q is not known", name)
	panic("unreachable")
}

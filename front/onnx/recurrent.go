package onnx

import (
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// recurrent are operators that go over sequences.
var recurrent = each(map[string]func(n *node){
	"RNN": recur(1, "tanh"), "GRU": recur(3, "sigmoid", "tanh"),
	"LSTM": recur(4, "sigmoid", "tanh", "tanh"),
})

// recur is an operator of so many gates, with activations that it has if the file names none.
func recur(gates int, otherwise ...string) func(n *node) {
	return func(n *node) {
		way := n.text("direction", "forward")
		n.only("direction", way, "forward", "reverse", "bidirectional")
		s := sequence{n: n, x: n.wide(0), gates: gates, batchFirst: n.flag("layout", false)}
		if s.x.Type().Rank() != 3 || n.wide(2).Type().Rank() != 3 {
			fail("its operands are %s, and weights %s of the state", s.x.Type(), n.x(2).Type())
		}
		s.hidden = n.wide(2).Type().Size(2)
		if h := n.int("hidden_size", s.hidden); h != s.hidden {
			fail("hidden_size is %d, and the weights have %d", h, s.hidden)
		}
		if s.batchFirst {
			s.x = ops.Transpose(s.x, 1, 0, 2)
		}
		many := 1
		if way == "bidirectional" {
			many = 2
		}
		f := activations(n, otherwise, many)
		all := make([][]value, 3)
		for d := range many {
			reverse := way == "reverse" || d == 1
			for i, v := range s.run(d, f[d*len(otherwise):][:len(otherwise)], reverse) {
				all[i] = append(all[i], v)
			}
		}
		s.give(all)
	}
}

// sequence is what a recurrent network goes over, x f32[length batch width].
type sequence struct {
	n             *node
	x             value
	hidden, gates int
	batchFirst    bool
}

// give makes results of what each direction has: all states, and the last ones.
func (s sequence) give(all [][]value) {
	y := ops.Stack(all[0]...) // [direction length batch hidden]
	if s.batchFirst {
		y = ops.Transpose(y, 2, 1, 0, 3)
	} else {
		y = ops.Transpose(y, 1, 0, 2, 3)
	}
	s.n.give(s.n.narrow(y))
	for _, list := range all[1:] {
		if len(list) == 0 {
			continue
		}
		h := ops.Stack(list...)
		if s.batchFirst {
			h = ops.Transpose(h, 1, 0, 2)
		}
		s.n.give(s.n.narrow(h))
	}
}

// of is what direction d has of operand i along an axis, if that is there.
func (s sequence) of(i, along, d int) value {
	if !s.n.has(i) {
		return value{}
	}
	return ops.Squeeze(ops.Slice(s.n.wide(i), along, d, d+1), along)
}

// run goes over the sequence in a direction, and has all states, and the last ones.
func (s sequence) run(d int, f []unary, reverse bool) []value {
	n, along, rows := s.n, 0, s.gates*s.hidden
	if s.batchFirst {
		along = 1
	}
	w := nn.Weights{Input: s.of(1, 0, d), State: s.of(2, 0, d)}
	if both := s.of(3, 0, d); both.Valid() {
		w.InputBias, w.StateBias = ops.Slice(both, 0, 0, rows), ops.Slice(both, 0, rows, 2*rows)
	}
	o := nn.RunOptions{Reverse: reverse, State: s.of(5, along, d), Clip: n.float("clip", 0)}
	if n.has(4) {
		o.Lengths = ops.Cast(n.x(4), graph.I32)
	}
	switch s.gates {
	case 1:
		o.Candidate = f[0]
		y, last := nn.RunRNN(s.x, w, o)
		return []value{y, last}
	case 3:
		o.ResetBefore = !n.flag("linear_before_reset", false)
		o.Gate, o.Candidate = f[0], f[1]
		y, last := nn.RunGRU(s.x, w, o)
		return []value{y, last}
	}
	o.Cells, w.Peephole = s.of(6, along, d), s.of(7, 0, d)
	o.Coupled = n.flag("input_forget", false)
	o.Gate, o.Candidate, o.Output = f[0], f[1], f[2]
	if o.Output == nil && n.wants(2) {
		o.Output = ops.Tanh // the usual layer's cells have no gradient of their own
	}
	y, last, cells := nn.RunLSTM(s.x, w, o)
	return []value{y, last, cells}
}

// activations are those of all directions, by their names, with what numbers they have; nil is
// the usual one of its place.
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
	for i, name := range names {
		if strings.ToLower(name) == otherwise[i%len(otherwise)] {
			list = append(list, nil)
			continue
		}
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

package split_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/graph/tensor"
)

// sequences is a network with an LSTM of any size, or one in either direction, perhaps behind a
// layer and before one. Its gradients are applied or fetched, and states perhaps, too.
func sequences(t *rapid.T) step {
	size := func(name string, least, most int) int {
		return rapid.IntRange(least, most).Draw(t, name)
	}
	s := step{g: graph.New()}
	steps, batch, in, units := size("steps", 6, 30), size("batch", 70, 300), size("in", 1, 7),
		size("units", 1, 7)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	var variables []graph.Value
	variable := func(name string, sizes ...int) graph.Value {
		v := s.g.Variable(name, f(sizes...), graph.Init{})
		variables = append(variables, v)
		return v
	}
	x := s.g.Input("x", f(steps, batch, in))
	if rapid.Bool().Draw(t, "a layer before") {
		x = ops.Tanh(ops.MatMul(x, variable("before", in, in)))
	}
	lstm := func(name string, x graph.Value) graph.Value {
		h, c := ops.Zeros(s.g, f(batch, units)), s.g.Input(name+"/c", f(batch, units))
		y, states := ops.LSTM(x, variable(name, in+units, 4*units),
			variable(name+"/bias", 4*units), h, c, 1)
		if rapid.Bool().Draw(t, "fetched states") {
			s.fetches = append(s.fetches, states, y)
		}
		return y
	}
	y := lstm("forward", x)
	if rapid.Bool().Draw(t, "both ways") {
		y = ops.Concat(2, y, backwards(lstm("backward", backwards(x))))
	}
	if rapid.Bool().Draw(t, "a layer behind") {
		y = ops.Tanh(ops.MatMul(y, variable("behind", y.Type().Size(2), 3)))
	}
	loss := ops.Mean(ops.Square(y))
	s.fetches = append(s.fetches, loss)
	lr := s.g.Constant("lr", tensor.FromF32([]float32{0.5}))
	for i, d := range autodiff.Grad(loss, variables...) {
		if rapid.Bool().Draw(t, "applied") {
			s.updates = append(s.updates, ops.SGD(variables[i], d, lr).ID)
		} else {
			s.fetches = append(s.fetches, d)
		}
	}
	if s.g.Err() != nil {
		t.Fatal(s.g.Err())
	}
	return s
}

func backwards(x graph.Value) graph.Value {
	steps := ops.Unstack(x)
	slices.Reverse(steps)
	return ops.Stack(steps...)
}

// TestUnfold: recurrent operations of any size, in parts, give the bits of the whole, in bfloat16
// too, and need no more.
func TestUnfold(t *testing.T) {
	unfolded := 0
	rapid.Check(t, func(t *rapid.T) {
		s := sequences(t)
		if rapid.Bool().Draw(t, "bfloat16") {
			r, err := precision.Lower(s.g, s.fetches, s.updates)
			if err != nil {
				t.Fatal(err)
			}
			s = s.moved(r.Graph, r)
		}
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		after := s.split(t, s.most()*rapid.Int64Range(1, 9).Draw(t, "limit")/10)
		if after.most() > s.most() {
			t.Fatalf("an operation needs %d bytes, and in parts %d", s.most(), after.most())
		}
		if !bytes.Equal(s.run(t, 1<<30), after.run(t, 1<<30)) {
			t.Fatal("in parts the bits are others")
		}
		if strings.Contains(after.text(t), "lstm-back-steps") {
			unfolded++
		}
	})
	if unfolded < 10 {
		t.Errorf("only %d are in parts", unfolded)
	}
}

// TestUnfoldedWeights: the gradient of an LSTM's weights in parts is whole only where updates are,
// and no other operation needs as much as that and the weights.
func TestUnfoldedWeights(t *testing.T) {
	const steps, batch, units = 70, 16, 1024
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	g := graph.New()
	w, bias := g.Variable("w", f(2*units, 4*units), graph.Init{}), g.Variable("b", f(4*units),
		graph.Init{})
	zero := ops.Zeros(g, f(batch, units))
	y, _ := ops.LSTM(ops.Tanh(g.Input("x", f(steps, batch, units))), w, bias, zero, zero, 1)
	loss := ops.Sum(ops.Square(y))
	s := step{g: g, fetches: []graph.Value{loss}}
	lr := g.Constant("lr", tensor.FromF32([]float32{0.5}))
	for i, d := range autodiff.Grad(loss, w, bias) {
		s.updates = append(s.updates, ops.SGD([]graph.Value{w, bias}[i], d, lr).ID)
	}
	after := s.split(t, s.most()/8)
	most := 2 * w.Type().Bytes()
	for id, need := range split.Needs(after.g, after.fetches, after.updates) {
		n := after.g.Node(graph.NodeID(id))
		if n.Phase != graph.Update && need >= most {
			t.Errorf("%s needs %d bytes, the weights and their gradient are %d", n.Name, need, most)
		}
		for _, ty := range n.Out {
			if n.Phase == graph.Backward && ty.Bytes() == w.Type().Bytes() {
				t.Errorf("%s has a gradient %s in the backward pass", n.Name, ty)
			}
		}
	}
	if s.most() < most {
		t.Errorf("the whole needs only %d bytes", s.most())
	}
}

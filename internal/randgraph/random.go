package randgraph

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// builder grows a random graph. Every value it keeps is f32[rows cols].
type builder struct {
	g          *graph.Graph
	pick       func(n int) int
	rows, cols int
	seed       graph.Value
	values     []graph.Value
	vars       []graph.Value
	square     []graph.Value // the variables f32[cols cols]
	exchanges  bool
	kinds      int // of operations that are drawn from
	sent       int // exchanges so far
	constants  bool
	known      []graph.Value // before the first step, f32[rows cols], if there are constants
}

// The kinds of operations that there are, and those with collectives.
const (
	ownKinds   = 19
	jointlyToo = ownKinds + 5
)

// Random builds a training step from up to size random operations on small
// matrices: chains, joins, views and views of views, several results, dropout,
// in-place candidates, scratch, constants, variables read once, often or by way
// of a view, an optimizer of one variable or several for every parameter, and
// running sums beside them. Fetched are the loss, a value, and parts of values by
// way of views. pick(n) chooses a number in [0, n).
//
// The inputs are x f32[rows cols], the seed i32[2], the learning rate and the
// step f32[].
func Random(pick func(n int) int, size int) *Model {
	b := &builder{g: graph.New(), pick: pick, rows: 2 * (1 + pick(4)), cols: 1 + pick(9),
		kinds: ownKinds}
	return b.step(size)
}

// Exchanging is Random, with values that workers exchange: gradients and others.
func Exchanging(pick func(n int) int, size int) *Model {
	b := &builder{g: graph.New(), pick: pick, rows: 2 * (1 + pick(4)), cols: 1 + pick(9),
		kinds: ownKinds, exchanges: true}
	return b.step(size)
}

// Collective is Exchanging, with collectives among up to three workers in the forward pass,
// and so in the backward pass.
func Collective(pick func(n int) int, size int) *Model {
	b := &builder{g: graph.New(), pick: pick, rows: 2 * (1 + pick(4)), cols: 1 + pick(9),
		kinds: jointlyToo, exchanges: true}
	return b.step(size)
}

// Empty is Random for matrices without rows, without columns or without both, among
// which are scalars and others that have elements.
func Empty(pick func(n int) int, size int) *Model {
	b := &builder{g: graph.New(), pick: pick, rows: 2 * pick(3), cols: pick(3), kinds: ownKinds}
	if b.rows > 0 {
		b.cols = 0
	}
	return b.step(size)
}

// step builds the training step.
func (b *builder) step(size int) *Model {
	g, pick := b.g, b.pick
	x := g.Input("x", tensor.Of(graph.F32, b.rows, b.cols))
	b.seed = g.Input("seed", tensor.Of(graph.I32, 2))
	lr, step := g.Input("lr", tensor.Of(graph.F32)), g.Input("step", tensor.Of(graph.F32))
	b.values = []graph.Value{x}
	b.variable()
	for i := range 1 + pick(size) {
		if b.constants {
			b.derive()
			b.values = append(b.values, b.mix(i))
		}
		b.grow(i)
	}
	loss := b.loss()
	m := &Model{Graph: g, Fetches: append([]graph.Value{loss}, b.fetches(x)...),
		Inputs: []graph.Value{x, b.seed, lr, step}}
	grads := autodiff.Grad(loss, b.vars...)
	if b.exchanges {
		m.Fetches = append(m.Fetches, b.exchange(grads, step)...)
	}
	for i, dw := range grads {
		if dw.Valid() {
			m.Updates = append(m.Updates, b.update(b.vars[i], dw, lr, step).ID)
		}
	}
	if b.pick(3) == 0 {
		sum := g.State("running", x.Type(), graph.Init{})
		m.Updates = append(m.Updates, ops.Accumulate(sum, b.any()).ID)
	}
	return m
}

// fetches are up to two values, whole or in part; x cannot be fetched.
func (b *builder) fetches(x graph.Value) []graph.Value {
	var out []graph.Value
	for range 1 + b.pick(2) {
		v := b.any()
		if b.constants && b.pick(3) == 0 {
			v = b.constant()
		}
		if root, _ := v.Resolve(); root == x {
			continue
		}
		switch b.pick(4) {
		case 0:
			v = ops.ReshapeSizes(v, b.rows*b.cols)
		case 1:
			v = ops.ReshapeSizes(ops.Split(v, 2)[1], b.rows/2*b.cols)
		}
		out = append(out, v)
	}
	return out
}

// any is one of the values so far, the recent ones more often.
func (b *builder) any() graph.Value {
	n := len(b.values)
	if b.pick(2) == 0 {
		return b.values[n-1-b.pick(min(n, 3))]
	}
	return b.values[b.pick(n)]
}

func (b *builder) variable() graph.Value {
	name := fmt.Sprintf("w%d", len(b.vars))
	init := graph.Init{Dist: graph.Normal, Scale: 0.5}
	w := b.g.Variable(name, tensor.Of(graph.F32, b.cols, b.cols), init)
	b.vars, b.square = append(b.vars, w), append(b.square, w)
	if b.exchanges && b.pick(4) == 0 {
		b.g.Share(w, graph.How{Via: "ps"})
	}
	return w
}

// row is a new variable f32[cols].
func (b *builder) row(name string) graph.Value {
	w := b.g.Variable(fmt.Sprintf("%s%d", name, len(b.vars)), tensor.Of(graph.F32, b.cols),
		graph.Init{Dist: graph.Normal, Scale: 0.5})
	b.vars = append(b.vars, w)
	return w
}

// weight is a variable, new or used before.
func (b *builder) weight() graph.Value {
	if b.pick(2) == 0 {
		return b.variable()
	}
	return b.square[b.pick(len(b.square))]
}

// index is a constant of indices, or of one.
func (b *builder) index(list ...int) graph.Value {
	x := make([]int32, len(list))
	for i, k := range list {
		x[i] = int32(k)
	}
	if len(x) == 1 {
		return b.g.Constant("index", tensor.FromI32(x))
	}
	return b.g.Constant("index", tensor.FromI32(x, len(x)))
}

func (b *builder) grow(i int) {
	v := b.any()
	var out graph.Value
	switch kind := b.pick(b.kinds); kind {
	case 0:
		out = ops.Add(v, b.any())
	case 1:
		out = ops.Mul(v, ops.Tanh(b.any()))
	case 2:
		out = ops.Relu(v)
	case 3:
		out = ops.Softmax(v)
	case 4:
		out = ops.Dropout(v, b.seed, 0.25, fmt.Sprintf("drop%d", i))
	case 5: // both halves of a split, exchanged
		parts := ops.Split(v, 2)
		out = ops.Concat(0, parts[1], ops.Tanh(parts[0]))
	case 6: // through a view and back
		flat := ops.ReshapeSizes(v, b.rows*b.cols)
		out = ops.ReshapeSizes(ops.Scale(flat, 0.5), b.rows, b.cols)
	case 7:
		out = ops.Transpose(ops.Sigmoid(ops.Transpose(v, 1, 0)), 1, 0)
	case 8: // part of a packed variable
		name := fmt.Sprintf("packed%d", len(b.vars))
		packed := b.g.Variable(name, tensor.Of(graph.F32, 3, b.cols, b.cols),
			graph.Init{Dist: graph.Normal, Scale: 0.5})
		b.vars = append(b.vars, packed)
		parts := ops.Unstack(packed)
		out = ops.MatMul(ops.MatMul(v, parts[0]), parts[2])
	case 9:
		row := make([]float32, b.cols)
		for k := range row {
			row[k] = float32(k+i) / 8
		}
		out = ops.Maximum(v, b.g.Constant(fmt.Sprintf("floor%d", i), tensor.FromF32(row, b.cols)))
	case 10: // several results, each of which is read
		h, c := ops.LSTMCell(ops.Concat(1, v, b.any(), v, b.any()), b.any(), 1)
		out = ops.Add(h, ops.Scale(c, 0.5))
	case 11: // the gradient needs scratch
		out = ops.RMSNorm(v, b.row("scale"), 1e-6)
	case 12:
		out = ops.LayerNorm(v, b.row("scale"), b.row("bias"), 1e-6)
	case 13: // truth values, a byte each
		out = ops.Where(ops.Less(v, b.any()), v, ops.Neg(v))
	case 14: // a row from elsewhere, in its place
		if b.rows == 0 {
			return
		}
		out = ops.PutAt(v, ops.Slice(b.any(), 0, 0, 1), b.index(i%b.rows), 0)
	case 15: // rows in another order, some twice
		rows := make([]int, b.rows)
		for k := range rows {
			rows[k] = k * i % b.rows
		}
		out = ops.Take(v, b.index(rows...), 0)
	default:
		if kind < ownKinds {
			out = ops.Tanh(ops.MatMul(v, b.weight()))
		} else {
			out = b.jointly(v)
		}
	}
	b.values = append(b.values, out)
}

// loss reads the last value and a few others, so that not everything is dead.
func (b *builder) loss() graph.Value {
	sum := ops.Mean(ops.Square(b.values[len(b.values)-1]))
	for range b.pick(3) {
		sum = ops.Add(sum, ops.Mean(ops.Square(b.any())))
	}
	return sum
}

func (b *builder) update(w, dw, lr, step graph.Value) *graph.Node {
	state := func(name string, t graph.Type) graph.Value {
		return b.g.State(w.Node.Name+"/"+name, t, graph.Init{})
	}
	switch b.pick(5) {
	case 3: // two states if the variable is factored, and scratch
		var states []graph.Value
		for i, t := range ops.AdafactorState(w.Type(), 2) {
			states = append(states, state(fmt.Sprintf("s%d", i), t))
		}
		return ops.Adafactor(w, states, dw, lr, step, ops.AdafactorConfig{MinDim: 2})
	case 0:
		return ops.Momentum(w, state("m", w.Type()), dw, lr, 0.9)
	case 1:
		return ops.Adam(w, state("m", w.Type()), state("v", w.Type()), dw, lr, step, 0.9, 0.99,
			1e-8)
	default:
		return ops.SGD(w, dw, lr)
	}
}

package randgraph

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// state is a variable that belongs to another.
func (b *wide) state(w graph.Value, name string, t graph.Type) graph.Value {
	return b.g.State(w.Node.Name+"/"+name, t, graph.Init{})
}

// gate lets half of the updates through at every step, and the others at some.
func (b *wide) gate() []ops.Gate {
	if b.pick(2) == 0 {
		return nil
	}
	return []ops.Gate{{Every: b.size(3), Step: b.step}}
}

// update trains a variable.
func (b *wide) update(w, dw graph.Value) []graph.NodeID {
	t, gate := w.Type(), b.gate()
	one := func(n *graph.Node) []graph.NodeID { return []graph.NodeID{n.ID} }
	switch b.pick(12) {
	case 0:
		return one(ops.Momentum(w, b.state(w, "m", t), dw, b.lr, 0.9, gate...))
	case 1:
		return one(ops.Nesterov(w, b.state(w, "m", t), dw, b.lr, 0.9, gate...))
	case 2:
		return one(ops.Adam(w, b.state(w, "m", t), b.state(w, "v", t), dw, b.lr, b.step, 0.9, 0.99,
			1e-8, gate...))
	case 3:
		return one(ops.AdamW(w, b.state(w, "m", t), b.state(w, "v", t), dw, b.lr, b.step, 0.9, 0.99,
			1e-8, 0.1, gate...))
	case 4:
		var states []graph.Value
		for i, s := range ops.AdafactorState(t, 2) {
			states = append(states, b.state(w, fmt.Sprint("s", i), s))
		}
		return one(ops.Adafactor(w, states, dw, b.lr, b.step, ops.AdafactorConfig{MinDim: 2},
			gate...))
	case 5:
		return one(ops.Lion(w, b.state(w, "m", t), dw, b.lr, 0.9, 0.99, 0.1, gate...))
	case 6:
		return b.accumulated(w, dw)
	case 7, 8:
		return b.composed(w, dw)
	case 9, 10:
		var states []graph.Value
		for i, s := range ops.SmallAdamState(t, []graph.DType{graph.U8, graph.BF16}[b.pick(2)]) {
			states = append(states, b.state(w, fmt.Sprint("s", i), s))
		}
		return one(ops.SmallAdamW(w, states, dw, b.lr, b.step, 0.9, 0.99, 1e-8, 0.1, gate...))
	}
	return one(ops.SGD(w, dw, b.lr, gate...))
}

// accumulated is a step by the sum of some gradients.
func (b *wide) accumulated(w, dw graph.Value) []graph.NodeID {
	sum, gate := b.state(w, "sum", w.Type()), ops.Gate{Every: 2, Step: b.step}
	var all graph.Value
	b.g.InPhase(graph.Update, func() { all = ops.Add(sum, dw) })
	return []graph.NodeID{ops.SGD(w, all, b.lr, gate).ID, ops.AccumulateUntil(sum, dw, gate).ID}
}

// composed is an optimizer of several operations, with a condition: momentum by the sign of the
// gradient, from which a variable shrinks where the two agree.
func (b *wide) composed(w, dw graph.Value) (updates []graph.NodeID) {
	m := b.state(w, "m", w.Type())
	b.g.InPhase(graph.Update, func() {
		next := ops.Add(ops.Scale(m, 0.75), ops.Scale(dw, 0.25))
		agree := ops.Less(ops.Scale(w, 0), ops.Mul(next, dw))
		change := ops.Where(agree, ops.Sign(next), ops.Scale(w, 0.5))
		if b.pick(2) == 0 { // scaled by the norms of both
			change = ops.Mul(change, ops.Div(ops.Sqrt(ops.SumSquares(w)),
				ops.AddScalar(ops.Sqrt(ops.SumSquares(change)), 1)))
		}
		updates = []graph.NodeID{ops.Assign(m, next).ID,
			ops.Assign(w, ops.Sub(w, ops.Mul(change, b.lr))).ID}
	})
	return updates
}

// average keeps a running mean of a value, which other draws read.
func average(b *wide) []graph.Value {
	v := b.of(b.sizes(0, 2, 6)...)
	mean := b.g.State("mean", v.Type(), graph.Init{})
	b.more = append(b.more, ops.RunningAverage(mean, v, 0.9).ID)
	return []graph.Value{mean}
}

// running adds up a value; in every second step it begins anew, or is not touched.
func running(b *wide) []graph.Value {
	v := b.of(b.sizes(0, 2, 6)...)
	sum := b.g.State("sum", v.Type(), graph.Init{})
	gate, n := ops.Gate{Every: 2, Step: b.step}, (*graph.Node)(nil)
	switch b.pick(3) {
	case 0:
		n = ops.Accumulate(sum, v)
	case 1:
		n = ops.AccumulateUntil(sum, v, gate)
	default:
		like := ops.Accumulate(b.g.State("like", v.Type(), graph.Init{}), v)
		n = ops.Gated(like.Op, []graph.Value{sum}, gate, v)
	}
	b.more = append(b.more, n.ID)
	return []graph.Value{sum}
}

// cached writes rows into a variable where it is told, after reordering it or not.
func cached(b *wide) []graph.Value {
	batch, length, n, d := b.size(3), 2+b.pick(4), b.size(2), b.size(3)
	cache := b.g.State("cache", tensor.Of(graph.F32, batch, length, d),
		graph.Init{Dist: graph.Normal, Scale: 1})
	rows, at := b.of(batch, n, d), b.ids(length-n+1)
	if b.pick(2) == 0 {
		b.more = append(b.more, ops.WriteAt(cache, rows, at, 1).ID)
	} else {
		b.more = append(b.more, ops.ReorderWriteAt(cache, b.ids(batch, batch), rows, at, 1).ID)
	}
	return []graph.Value{cache}
}

// computed is a value of which nobody reads anything.
func computed(b *wide) []graph.Value {
	v := ops.Exp(ops.Tanh(b.any()))
	b.more = append(b.more, b.g.Update(ops.Kept(), nil, v).ID)
	return nil
}

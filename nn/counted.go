package nn

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// A loss that is a mean over the positions that count, such as all but padding, is divided by
// another number in every batch. So the mean of the losses of several batches, of executions
// whose gradients are accumulated or of workers, is not the mean over the positions of all of
// them: each batch has to weigh as much as its positions. A batch weighs its number of counted
// positions by the number of all positions, which is exactly 1 where all count: its loss is
// multiplied by that before it is differentiated, and the mean of the gradients is divided by
// the mean of the weights. Nobody has to know the sum before it is there.

// weighing is how much a batch counts.
type weighing struct {
	own   graph.Value // f32[]: the weight of this execution's batch
	mean  graph.Value // f32[]: of all executions and workers that make an update together
	least float32     // that the mean counts as, so that there is a mean of nothing: 0
}

// weighed is the loss to be differentiated: weighed, if other batches are part of an update.
func (l *learner) weighed(loss graph.Value) graph.Value {
	if l.Accumulate == 1 && l.Workers < 2 {
		return loss
	}
	count, by, err := l.counts(loss)
	if err != nil {
		l.Graph.Fail(err)
		return loss
	}
	if !count.Valid() {
		return loss
	}
	all := float32(count.Type().Elems())
	for root := count; root.Node.Op != nil && (root.Node.Op.Name() == "sum" ||
		root.Node.Op.Name() == "reshape"); all = float32(root.Type().Elems()) {
		root = root.Node.In[0]
	}
	full := ops.Full(l.Graph, tensor.Of(graph.F32), max(all, 1))
	l.weight = &weighing{own: ops.Div(count, full),
		least: least / max(all, 1) / float32(l.Accumulate*max(1, l.Workers))}
	return ops.Mul(loss, ops.Div(by, full))
}

// counts are the number of positions, f32[], that a loss is a mean over, and what the loss is
// divided by, which is no less than a number; no values of a loss that counts the same in
// every batch.
func (l *learner) counts(loss graph.Value) (count, by graph.Value, err error) {
	found := newMeans(l.Graph)
	found.look(loss)
	given := l.Counts
	if given.Valid() {
		if given.Type().Rank() > 0 {
			given = ops.Sum(given)
		}
		return given, given, nil
	}
	for _, d := range found.divisors {
		if !alike(d, found.divisors[0]) {
			return count, by, errorf("objective %q is a sum of means over different positions, "+
				"of %s and %s: say in MinimizeOptions.Counts which of them its batches are to be "+
				"weighed by, since gradients of several are averaged", l.Name,
				found.divisors[0], d)
		}
	}
	if len(found.divisors) == 0 {
		return count, by, nil
	}
	return found.bare(found.divisors[0]), found.divisors[0], nil
}

// means finds what the terms of a loss are divided by.
type means struct {
	fed, learnt []bool // by node: it depends on a batch, on a variable
	divisors    []graph.Value
}

func newMeans(g *graph.Graph) *means {
	x := &means{}
	for _, n := range g.Nodes() {
		fed, learnt := n.Kind == graph.KindInput, n.Kind == graph.KindVariable
		for _, v := range n.In {
			fed, learnt = fed || x.fed[v.Node.ID], learnt || x.learnt[v.Node.ID]
		}
		x.fed, x.learnt = append(x.fed, fed), append(x.learnt, learnt)
	}
	return x
}

// look goes through sums, and products with what is not learnt.
func (x *means) look(v graph.Value) {
	n := v.Node
	if n.Op == nil || v.Type().Rank() > 0 || !x.learnt[n.ID] {
		return
	}
	switch n.Op.Name() {
	case "add", "sub", "mul", "scale", "add-scalar":
		for _, operand := range n.In {
			x.look(operand)
		}
	case "div":
		if by := n.In[1]; by.Type().Rank() == 0 && x.fed[by.Node.ID] && !x.learnt[by.Node.ID] {
			x.divisors = append(x.divisors, by)
			return
		}
		x.look(n.In[0])
	}
}

// bare is a count without the least that it counts as.
func (x *means) bare(divisor graph.Value) graph.Value {
	n := divisor.Node
	if n.Op != nil && (n.Op.Name() == "maximum" || n.Op.Name() == "add-scalar") {
		for _, v := range n.In {
			if x.fed[v.Node.ID] {
				return v
			}
		}
	}
	return divisor
}

// alike reports whether two values are computed alike of the same ones, without chance.
func alike(a, b graph.Value) bool {
	if a == b {
		return true
	}
	m, n := a.Node, b.Node
	return a.Index == b.Index && m.Op != nil && n.Op != nil && m.Op == n.Op &&
		slices.EqualFunc(m.In, n.In, alike)
}

// first is the update of the parameter whose gradient is done first, without the gradient:
// state that is the objective's has its name.
func (l *learner) first() Update {
	return Update{Parameter: l.last, shared: l.states[l.Shares], made: l.made}
}

// accumulateWeights makes the mean of those since the last update.
func (l *learner) accumulateWeights() {
	if l.weight == nil {
		return
	}
	l.weight.mean = l.accumulated(l.first(), "counted", l.weight.own)
}

// accumulated is the mean of a value of every execution since the last update, exactly what
// it is if it is the same in all of them and a small whole number.
func (l *learner) accumulated(u Update, name string, x graph.Value) graph.Value {
	sum := u.State(name, x.Type())
	count := ops.Full(l.Graph, tensor.Of(graph.F32), float32(l.Accumulate))
	mean := ops.Div(ops.Add(sum, x), count)
	l.keep(ops.AccumulateUntil(sum, x, l.gate))
	return mean
}

// keep notes an update of what is added up.
func (l *learner) keep(n *graph.Node) {
	if n != nil {
		l.others = append(l.others, n)
	}
}

// accumulateAverages has running averages fold in, once an update, the mean of what the
// executions have: what workers do, too.
func (l *learner) accumulateAverages() {
	local := newLocal(l)
	for i, n := range l.averages {
		l.Graph.On(n.In[0].Node, func() {
			in := slices.Clone(n.In[n.Mutates:])
			u := Update{Parameter: n.In[0], shared: l.states[l.Shares], made: l.made}
			for k, v := range in {
				if local.is(v) {
					in[k] = l.accumulated(u, fmt.Sprintf("sum%d", k), v)
				}
			}
			l.averages[i] = ops.Gated(n.Op, n.In[:n.Mutates], l.gate, in...)
		})
	}
}

// sendWeight hands the weight to the network; nothing of one worker, or none to hand.
func (l *learner) sendWeight() (await func()) {
	w := l.weight
	if w == nil {
		return func() {}
	}
	name := l.first().Parameter.Node.Name + "/counted"
	flying := ops.Send(w.mean, name, graph.How{Via: l.Exchange.Via}, l.gate)
	return func() { w.mean = ops.Await(flying) }
}

// unweigh divides the means of gradients by the mean of the weights.
func (l *learner) unweigh() {
	if l.weight == nil || len(l.grads) == 0 {
		return
	}
	factor := l.heavy()
	l.each(func(i int) { l.grads[i] = ops.Mul(l.grads[i], factor) })
}

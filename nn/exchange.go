package nn

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// exchange replaces gradients by what the workers make of them, and has running averages
// fold in what they make of that. All is sent before anything is awaited: what a batch
// weighs and averages first, whose operands are there since the forward pass, then gradients
// in the order in which they are done, or their factors.
func (l *learner) exchange() {
	l.local = newLocal(l)
	if l.Graph.Err() != nil {
		return // and there may be no averages
	}
	awaitWeight := l.sendWeight()
	var awaits []func()
	for i, n := range l.averages {
		l.Graph.On(n, func() { awaits = append(awaits, l.average(i)) })
	}
	flying, factors := make([]graph.Value, len(l.grads)), newGathering(l)
	l.each(func(i int) {
		if !factors.send(i) {
			flying[i] = ops.Send(l.grads[i], l.parameters[i].Node.Name, l.Exchange, l.gate)
		}
	})
	awaitWeight()
	for i, await := range awaits {
		l.Graph.On(l.averages[i], await)
	}
	l.each(func(i int) {
		if flying[i].Valid() {
			l.grads[i] = ops.Await(flying[i])
		} else if l.Graph.Err() == nil {
			l.grads[i] = factors.await(i)
		}
	})
}

// average sends what an update of running averages folds in, and returns what awaits it
// and makes another update of it, in place of the one that there is.
func (l *learner) average(i int) (await func()) {
	n := l.averages[i]
	in := slices.Clone(n.In[n.Mutates:])
	flying := make([]graph.Value, len(in))
	for k, v := range in {
		if l.local.is(v) {
			name := n.In[0].Node.Name
			if k > 0 {
				name = fmt.Sprintf("%s/%d", name, k)
			}
			flying[k] = ops.Send(v, name, l.Exchange, l.gate)
		}
	}
	return func() {
		for k, v := range flying {
			if v.Valid() {
				in[k] = ops.Await(v)
			}
		}
		l.averages[i] = l.Graph.Update(n.Op, n.In[:n.Mutates], in...)
	}
}

// agree reports an update that would make variables differ from worker to worker, since
// it depends on what they have each their own.
func (l *learner) agree(updates []*graph.Node) {
	l.local.grow()
	for _, n := range updates {
		if n == nil || slices.Contains(l.others, n) {
			continue
		}
		for _, v := range n.In[n.Mutates:] {
			if l.local.is(v) {
				l.Graph.Fail(errorf("objective %q: update %s of %s depends on %s, which every "+
					"worker has its own: exchange it with ops.Send and ops.Await", l.Name, n.Name,
					n.In[0], v))
				return
			}
		}
	}
}

// local is the nodes whose values workers have each their own: inputs but for the learning
// rate and the step, sums of gradients that have not been exchanged, and what is computed
// of them; but not what has been exchanged.
type local struct {
	graph *graph.Graph
	nodes []bool // by ID, of the nodes there were when it was made to grow
	sums  map[graph.NodeID]bool
	both  []graph.Value // inputs that are common to workers
}

func newLocal(l *learner) *local {
	x := &local{graph: l.Graph, sums: map[graph.NodeID]bool{},
		both: []graph.Value{l.LearningRate, l.Step}}
	for _, n := range l.others {
		for _, v := range n.In[:n.Mutates] {
			x.sums[v.Node.ID] = true
		}
	}
	x.grow()
	return x
}

// grow looks at the nodes that have come to be.
func (x *local) grow() {
	for _, n := range x.graph.Nodes()[len(x.nodes):] {
		own := slices.ContainsFunc(n.In, func(v graph.Value) bool { return x.nodes[v.Node.ID] })
		switch n.Kind {
		case graph.KindInput:
			own = !slices.Contains(x.both, n.Value(0))
		case graph.KindVariable:
			own = x.sums[n.ID]
		}
		x.nodes = append(x.nodes, exchanged(n, own))
	}
}

// exchanged reports of a node, some of whose operands workers have each their own or none,
// whether its results are such: what all workers have exchanged is common to them, unless
// each has a block of it or another's, or one has it all; along an axis it is as it was.
func exchanged(n *graph.Node, own bool) bool {
	if !n.Awaits() {
		return own
	}
	x, _ := n.In[0].Node.Sends()
	switch x.How.Fold {
	case graph.Scatter, graph.Swap, graph.Reduce, graph.Permute, graph.GatherSome,
		graph.ScatterSome, graph.SwapSome:
		return true
	}
	return own && x.How.Along != ""
}

// is reports whether a value is one that every worker has its own.
func (x *local) is(v graph.Value) bool { return x.nodes[v.Node.ID] }

package join

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Apart builds the graph in which losses, and their gradients, are the operations that they stand
// for, those that both need made once. It is nil if there are none. The error is g's own.
func Apart(g *graph.Graph) (*Result, error) {
	if some, err := losses(g); !some || err != nil {
		return nil, err
	}
	b := &taker{builder: newBuilder(g), made: map[made]graph.Value{}}
	for _, n := range g.Nodes() {
		if _, ok := ops.LossOf(n); ok {
			b.apart(n)
		} else {
			b.early(n)
		}
	}
	return b.result()
}

// taker makes the graph in which losses are apart.
type taker struct {
	*builder
	made map[made]graph.Value
}

// made is what an operation is made of.
type made struct {
	op graph.Op
	in [3]graph.Value
}

func (b *taker) apart(n *graph.Node) {
	in := make([]graph.Value, len(n.In))
	for i, v := range n.In {
		in[i] = b.out.Value(v)
	}
	for i, v := range ops.Apart(n.Op, in, func(what string, op graph.Op,
		in ...graph.Value) graph.Value {
		return b.make(n, what, op, in)
	}) {
		b.out.values[n.Value(i)] = v
	}
}

// make is the value of an operation that a node stands for, which there may be already.
func (b *taker) make(n *graph.Node, what string, op graph.Op, in []graph.Value) graph.Value {
	key := made{op: op}
	copy(key.in[:], in)
	if v, ok := b.made[key]; ok || b.err != nil {
		return v
	}
	c := *n
	if what != "" {
		c.Name = b.names.Take(n.Name + "/" + what)
	}
	var node *graph.Node
	if node, b.err = b.out.Graph.Copy(&c, op, in...); b.err != nil {
		return graph.Value{}
	}
	b.made[key] = node.Value(0)
	return node.Value(0)
}

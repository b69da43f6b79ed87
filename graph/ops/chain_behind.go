package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// leader is an operation of two operands behind whose result a chain may be computed, in one
// operation with it: operand 0 of the chain is that result, and its other operands follow the
// two. The bits are those of the operations on their own.
type leader interface {
	graph.Op
	before(c chain) graph.Op
}

// leaderOf is an application as a leader with a chain behind it, which may be empty.
func leaderOf(a Application) (l leader, c chain, ok bool) {
	switch o := a.Op.(type) {
	case matMulChain:
		return o.MatMul, o.Chain, true
	case convChain:
		return o.Conv, o.Chain, true
	}
	l, ok = a.Op.(leader)
	return l, chain{Operands: 1}, ok
}

// rest is the chain's operands, of a leader's result and the operands of both.
func rest(result graph.Type, in []graph.Type) []graph.Type {
	return append([]graph.Type{result}, in[2:]...)
}

// inferBehind infers the leader, and the chain on its result.
func (c chain) inferBehind(l leader, in []graph.Type) ([]graph.Type, error) {
	result, err := l.Infer(in[:min(2, len(in))])
	if err != nil {
		return nil, err
	}
	out, err := c.Infer(rest(result[0], in))
	if err == nil && !out[0].SameShape(result[0]) {
		return nil, fmt.Errorf("the %s is %s, the result %s", l.Name(), result[0], out[0])
	}
	return out, err
}

// costBehind is the arithmetic of both, and the traffic of operands and result alone.
func (c chain) costBehind(l leader, in, out []graph.Type) graph.Cost {
	cost := l.Cost(in[:2], out)
	cost.FLOPs += c.Cost(rest(out[0], in), out).FLOPs
	cost.Bytes = bytes(in, out)
	return cost
}

// gradsBehind goes back through the chain, then through the leader.
func (c chain) gradsBehind(l leader, n *graph.Node, dout []graph.Value) []graph.Value {
	result := apply(l, n.In[:2]...)
	if !result.Valid() {
		return none(len(n.In))
	}
	elements := n.Graph().Apply(c, append([]graph.Value{result}, n.In[2:]...)...)
	if elements == nil {
		return none(len(n.In))
	}
	grads := c.VJP(elements, dout)
	own := none(2)
	if grads[0].Valid() {
		own = l.VJP(result.Node, grads[:1])
	}
	return append(own, grads[1:]...)
}

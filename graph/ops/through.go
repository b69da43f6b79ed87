package ops

import "github.com/gomem/gomem/graph"

// through is the gradient of n's operands from those of its results, dout, by way of the
// operations that compute makes: they have n's results, of n's operands. It is for what is
// differentiated seldom, and has a kernel because it is computed often.
func through(n *graph.Node, dout []graph.Value, compute func() []graph.Value) []graph.Value {
	g := n.Graph()
	first := g.Len()
	grads := map[graph.Value]graph.Value{}
	for i, y := range compute() {
		if !y.Valid() {
			return none(len(n.In))
		}
		if dout[i].Valid() {
			grads[y] = dout[i]
		}
	}
	for id := g.Len() - 1; id >= first; id-- {
		back(g.Node(graph.NodeID(id)), grads)
	}
	in := none(len(n.In))
	for i, v := range n.In {
		in[i] = grads[v]
		delete(grads, v) // an operand that is there twice has its gradient once
	}
	return in
}

// back adds the gradients of a node's operands to those that there are.
func back(n *graph.Node, grads map[graph.Value]graph.Value) {
	if n.Leaf() {
		return
	}
	dout, matters := make([]graph.Value, len(n.Out)), false
	for i := range dout {
		dout[i] = grads[n.Value(i)]
		matters = matters || dout[i].Valid()
	}
	if !matters {
		return
	}
	for i, d := range n.Op.VJP(n, dout) {
		if v := n.In[i]; d.Valid() && grads[v].Valid() {
			grads[v] = Add(grads[v], d)
		} else if d.Valid() {
			grads[v] = d
		}
	}
}

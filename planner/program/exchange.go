package program

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// Hosted marks, by node, what every plan has on the host. There are two reasons. Workers
// exchange values there: so a variable is updated where its gradient is when it has come back.
// And of what plans may compute on either, in the update phase, some has other bits on the
// device ([graph.Node.Hosted]). With exchanges of that phase and such nodes goes all that
// depends on what they bring, the variables and constants that these touch, variables that
// workers share, and the updates of such variables; what other exchanges bring is copied to
// the device like any other value, and those between devices are there. It is a matter of the
// whole graph, so that all of its targets agree; nil if there is nothing.
func (p *Program) Hosted() []bool {
	if !p.Graph.Exchanges() && !slices.ContainsFunc(p.Graph.Nodes(), (*graph.Node).Hosted) {
		return nil
	}
	h := hosted{graph: p.Graph, marks: make([]bool, p.Graph.Len())}
	for _, n := range p.Graph.Nodes() {
		_, peers := n.Peers()
		if n.Exchanges() && !peers || n.Hosted() || slices.ContainsFunc(n.In, h.brings) {
			h.mark(n)
		} else if n.Shared != nil {
			h.leaf(n)
		}
	}
	return h.marks
}

// hosted is nodes that are on the host.
type hosted struct {
	graph *graph.Graph
	marks []bool
}

// brings reports whether a value is computed on the host, and so what depends on it: not of
// an exchange in the middle of a step.
func (h *hosted) brings(v graph.Value) bool {
	root, _ := v.Resolve()
	n := root.Node
	return !n.Leaf() && h.marks[n.ID] && (n.Phase == graph.Update || !n.Awaits())
}

// mark puts a node on the host, with what must be there for it.
func (h *hosted) mark(n *graph.Node) {
	if h.marks[n.ID] {
		return
	}
	h.marks[n.ID] = true
	for _, v := range n.In {
		root, _ := v.Resolve()
		if k := root.Node.Kind; k == graph.KindVariable || k == graph.KindConstant {
			h.leaf(root.Node)
		}
	}
}

// leaf puts a variable or constant on the host, with the updates of it.
func (h *hosted) leaf(n *graph.Node) {
	h.marks[n.ID] = true
	for _, w := range h.graph.Writers(n.ID) {
		h.mark(w)
	}
}

// Overwrites marks, by node, the exchanges that work in the bytes of their first operand
// in host memory: an await always does, and a send if nobody else needs all that these
// bytes are of, what comes back has as many, and there are no more of them, as around a
// block of a sum. Other sends copy the operand first. An exchange between devices never does.
func (p *Program) Overwrites() []bool {
	out := make([]bool, p.Graph.Len())
	readers := make([]int, p.Values()) // by value: how many operands are parts of it
	for _, id := range p.Order {
		n := p.Graph.Node(id)
		if !n.Executes() {
			continue
		}
		for _, v := range n.In {
			root, _ := v.Resolve()
			readers[p.ValueIndex(root)]++
		}
	}
	for _, v := range p.Fetches {
		root, _ := v.Resolve()
		readers[p.ValueIndex(root)]++
	}
	for _, id := range p.Order {
		n := p.Graph.Node(id)
		if _, sends := n.Sends(); sends {
			root, _ := n.In[0].Resolve()
			bytes := n.Out[0].Bytes()
			out[id] = !root.Node.Leaf() && readers[p.ValueIndex(root)] == 1 &&
				root.Type().Bytes() == bytes && n.In[0].Type().Bytes() == bytes &&
				(!root.Node.Awaits() || root.Node.In[0].Type().Bytes() == bytes)
		} else {
			out[id] = n.Awaits()
		}
	}
	return out
}

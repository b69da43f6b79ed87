package split

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Accumulate builds the graph that computes the fetches and applies the updates of g,
// in which products that are only made to be added to a sum, such as the gradients of
// weights that are read at every step of a recurrent network, and embeddings' gradients
// are added to it where it is: the partial gradient never exists. What it is made from
// is needed until then instead; what is smaller than that is left as it is. Bits stay,
// but for those of NaN: where both are NaN, the sum may be the other one. It has all
// leaves of g, in their order, the fetched values and the updates. Of the rest it has
// what those need. The error is g's own, or says what is no part of it.
func Accumulate(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) (*Result, error) {
	if err := check(g, fetches, updates); err != nil {
		return nil, err
	}
	live := wanted(g, fetches, updates)
	a := &accumulation{g: g, live: live, last: lastReaders(g, live, fetches),
		readers: make([]int, g.Len()), now: make([]ops.Application, g.Len())}
	a.find()
	return a.build()
}

// accumulation is a graph in which sums take over products.
type accumulation struct {
	g       *graph.Graph
	live    []bool
	last    []graph.NodeID
	readers []int             // by node: how often its results are read or fetched
	now     []ops.Application // by node: what it computes; no operation if its reader does
}

func (a *accumulation) find() {
	for _, n := range a.g.Nodes() {
		a.now[n.ID] = ops.Application{Op: n.Op, In: n.In}
		if a.live[n.ID] {
			for _, v := range n.In {
				a.readers[v.Node.ID]++
			}
		}
	}
	for _, n := range a.g.Nodes() {
		if a.live[n.ID] && n.Kind == graph.KindCompute && len(n.Out) == 1 {
			a.takeOver(n)
		}
	}
}

// takeOver makes an addition take over one of its operands' products, the later one
// if it can.
func (a *accumulation) takeOver(n *graph.Node) {
	c, ok := ops.AddTo(ops.Application{}, a.now[n.ID], graph.Value{})
	if ok && a.ends(c.In, n) {
		a.now[n.ID] = c
		return
	}
	products := slices.Clone(n.In)
	slices.SortStableFunc(products, func(v, w graph.Value) int {
		return int(w.Node.ID - v.Node.ID)
	})
	for _, v := range products {
		if a.readers[v.Node.ID] != 1 || a.last[v.Node.ID] != n.ID || v.Node.Leaf() ||
			v.Type().Elems() == 0 {
			continue
		}
		c, ok := ops.AddTo(a.now[v.Node.ID], a.now[n.ID], v)
		if ok && a.ends(c.In, n) && saves(v, c.In[1:]) {
			a.now[n.ID], a.now[v.Node.ID] = c, ops.Application{}
			return
		}
	}
}

// saves reports whether a product is larger than what it is made from, which would be
// needed until it is added.
func saves(product graph.Value, from []graph.Value) bool {
	bytes := product.Type().Bytes()
	for _, v := range from {
		if root, _ := v.Resolve(); !root.Node.Leaf() {
			bytes -= v.Type().Bytes()
		}
	}
	return bytes >= 0
}

// ends reports whether the first operand of what a node is to compute is all of a
// value that no other operand is in, and that nothing reads later.
func (a *accumulation) ends(in []graph.Value, n *graph.Node) bool {
	root, _ := in[0].Resolve()
	leaf := root.Node.Leaf() && root.Node.Kind != graph.KindInput
	return !leaf && a.last[root.Node.ID] == n.ID && readOnce(in, root) &&
		root.Type().Bytes() == in[0].Type().Bytes()
}

func (a *accumulation) build() (*Result, error) {
	out := &Result{Graph: graph.New(), nodes: make([]*graph.Node, a.g.Len())}
	for _, leaves := range []bool{true, false} {
		for _, n := range a.g.Nodes() {
			if n.Leaf() != leaves || !leaves && (!a.live[n.ID] || a.now[n.ID].Op == nil) {
				continue
			}
			in := make([]graph.Value, len(a.now[n.ID].In))
			for i, v := range a.now[n.ID].In {
				in[i] = out.Value(v)
			}
			var err error
			if out.nodes[n.ID], err = out.Graph.Copy(n, a.now[n.ID].Op, in...); err != nil {
				return nil, fmt.Errorf("split: %w", err)
			}
		}
	}
	return out, nil
}

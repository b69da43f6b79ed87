package fold

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Result is a rewritten graph, and where the values and nodes of the first graph went.
type Result struct {
	Graph   *graph.Graph
	Changes []Change // in the order of the first graph; none: the graph is a copy

	values [][]graph.Value // by the ID in the first graph, and by result
	nodes  []*graph.Node   // by the ID; nil of what is not needed or no node any more
	names  graph.Names     // that are taken, or will be
}

// Change is a value that became a constant, or a constant that is one no more.
type Change struct {
	Name  string // of the value
	Bytes int64
	How   string // "folded", or the operations that make it: "broadcast", "broadcast+tril"
}

// String is the change in a line.
func (c Change) String() string { return fmt.Sprintf("%s, %d bytes: %s", c.Name, c.Bytes, c.How) }

// Node is the node that stands for one of the first graph: an update is always there. It is nil if
// the node is not needed, or became a constant.
func (r *Result) Node(id graph.NodeID) *graph.Node { return r.nodes[id] }

// Value is the value that stands for one of the first graph, or no value.
func (r *Result) Value(v graph.Value) graph.Value {
	if !v.Valid() || v.Index >= len(r.values[v.Node.ID]) {
		return graph.Value{}
	}
	return r.values[v.Node.ID][v.Index]
}

func newResult(g *graph.Graph) *Result {
	r := &Result{Graph: graph.New(), values: make([][]graph.Value, g.Len()),
		nodes: make([]*graph.Node, g.Len()), names: graph.Names{}}
	for _, n := range g.Nodes() {
		r.names.Add(n.Name)
	}
	return r
}

// copy has a node of the first graph, with its operands in the new one.
func (r *Result) copy(n *graph.Node, in []graph.Value) error {
	c, err := r.Graph.Copy(n, n.Op, in...)
	if err != nil {
		return err
	}
	r.nodes[n.ID] = c
	r.values[n.ID] = make([]graph.Value, len(c.Out))
	for i := range c.Out {
		r.values[n.ID][i] = c.Value(i)
	}
	return nil
}

// operands are a node's in the new graph.
func (r *Result) operands(n *graph.Node) []graph.Value {
	in := make([]graph.Value, len(n.In))
	for i, v := range n.In {
		in[i] = r.Value(v)
	}
	return in
}

// constant makes a constant in the place of a node, of a name that is its own.
func (r *Result) constant(n *graph.Node, name string, data tensor.View) (graph.Value, error) {
	c, err := r.Graph.Copy(&graph.Node{Name: name, Kind: graph.KindConstant, Phase: n.Phase,
		Pos: n.Pos, Out: []graph.Type{data.Type}, Data: data}, nil)
	if err != nil {
		return graph.Value{}, err
	}
	return c.Value(0), nil
}

// name is one that is free: the given one, or that with a number.
// roots are the nodes that a graph is for.
func roots(fetches []graph.Value, updates []graph.NodeID) []graph.NodeID {
	list := append([]graph.NodeID(nil), updates...)
	for _, v := range fetches {
		list = append(list, v.Node.ID)
	}
	return list
}

package merge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// Result is a graph without equal nodes, and where the nodes of the first graph went.
type Result struct {
	Graph *graph.Graph
	// Merged is how many nodes became another one.
	Merged int
	nodes  []*graph.Node // by the ID in the first graph; nil for what is not needed
}

// Node is the node that stands for one of the first graph, which may be one that was equal
// to it. It is nil if the node is not needed.
func (r *Result) Node(id graph.NodeID) *graph.Node { return r.nodes[id] }

// Value is the value that stands for one of the first graph, or no value.
func (r *Result) Value(v graph.Value) graph.Value {
	if !v.Valid() || r.nodes[v.Node.ID] == nil {
		return graph.Value{}
	}
	return r.nodes[v.Node.ID].Value(v.Index)
}

// Merge builds the graph that computes the fetches and applies the updates of g without
// equal nodes. It has all leaves of g, in their order, the fetched nodes and the updates,
// with their names. Of the rest it has what those need. The error is g's own, or says what is
// no part of it.
func Merge(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) (*Result, error) {
	if err := check(g, fetches, updates); err != nil {
		return nil, err
	}
	roots, kept := slices.Clone(updates), make([]bool, g.Len())
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
		kept[v.Node.ID] = true
	}
	live := g.Ancestors(roots)
	r := &Result{Graph: graph.New(), nodes: make([]*graph.Node, g.Len())}
	first := map[application]*graph.Node{}
	for _, n := range g.Nodes() {
		if !n.Leaf() && !live[n.ID] {
			continue
		}
		if err := r.add(n, kept[n.ID], first); err != nil {
			return nil, fmt.Errorf("merge: %w", err)
		}
	}
	return r, nil
}

// check reports what is no part of a graph.
func check(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) error {
	if g == nil {
		return errors.New("merge: the graph is nil")
	}
	if err := g.Verify(); err != nil {
		return err
	}
	for _, v := range fetches {
		if v.Graph() != g || v.Index < 0 || v.Index >= len(v.Node.Out) {
			return fmt.Errorf("merge: fetch %s is no value of the graph", v)
		}
	}
	for _, id := range updates {
		if id < 0 || int(id) >= g.Len() || g.Node(id).Kind != graph.KindUpdate {
			return fmt.Errorf("merge: node %d is no update of the graph", id)
		}
	}
	return nil
}

// application is an operation with its attributes, and its operands in the new graph.
type application struct {
	op graph.Op
	in string
}

// add copies a node, or has the first that is equal stand for it.
func (r *Result) add(n *graph.Node, kept bool, first map[application]*graph.Node) error {
	var key []byte
	in := make([]graph.Value, len(n.In))
	for i, v := range n.In {
		in[i] = r.Value(v)
		key = binary.AppendUvarint(key, uint64(in[i].Node.ID))
		key = binary.AppendUvarint(key, uint64(in[i].Index))
	}
	a := application{n.Op, string(key)}
	pure := n.Kind == graph.KindCompute && !n.Leaf() && !n.Exchanges()
	if equal := first[a]; pure && !kept && equal != nil {
		r.nodes[n.ID], r.Merged = equal, r.Merged+1
		return nil
	}
	var err error
	r.nodes[n.ID], err = r.Graph.Copy(n, n.Op, in...)
	if pure && first[a] == nil {
		first[a] = r.nodes[n.ID]
	}
	return err
}

package join

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Result is a graph in which losses are joined or apart, and where the nodes of the first graph
// went.
type Result struct {
	Graph  *graph.Graph
	nodes  []*graph.Node // by the ID in the first graph; nil for what is gone
	values map[graph.Value]graph.Value
}

// Node is the node that stands for one of the first graph, or nil: a loss, and its gradient, may
// be several, or another's.
func (r *Result) Node(id graph.NodeID) *graph.Node { return r.nodes[id] }

// Value is the value that stands for one of the first graph.
func (r *Result) Value(v graph.Value) graph.Value {
	if x, ok := r.values[v]; ok {
		return x
	}
	if r.nodes[v.Node.ID] == nil {
		return graph.Value{}
	}
	return r.nodes[v.Node.ID].Value(v.Index)
}

// Join builds the graph in which a gradient stands for its loss, too: if it does not depend on the
// loss, and whoever of the targets needs the loss needs it as well; and in which no gradient of a
// matrix is made with others that nobody wants. A target is the nodes that are asked for together.
// It is nil if there is nothing of either. The error is g's own.
func Join(g *graph.Graph, targets [][]graph.NodeID) (*Result, error) {
	if some, err := losses(g); !some || err != nil {
		return nil, err
	}
	var needed [][]bool // by target and node
	for _, roots := range targets {
		needed = append(needed, g.Ancestors(roots))
	}
	pairs, rows := pairs(g, needed), ofRows(g, targets, needed)
	if len(pairs) == 0 && len(rows) == 0 {
		return nil, nil
	}
	b := newBuilder(g)
	b.ops = rows
	for _, n := range g.Nodes() {
		if gradient := pairs[n.ID]; gradient != nil {
			b.early(gradient)
			b.out.values[n.Value(0)] = b.out.Value(gradient.Value(0))
			continue
		}
		b.early(n)
	}
	return b.result()
}

// losses reports whether a graph has any; the error is its own.
func losses(g *graph.Graph) (some bool, err error) {
	if err := g.Err(); err != nil {
		return false, err
	}
	for _, n := range g.Nodes() {
		if _, ok := ops.LossOf(n); ok {
			return true, g.Verify()
		}
	}
	return false, nil
}

// pairs are the gradients, by loss.
func pairs(g *graph.Graph, needed [][]bool) map[graph.NodeID]*graph.Node {
	found, losses := map[graph.NodeID]*graph.Node{}, map[ops.Loss]*graph.Node{}
	for _, n := range g.Nodes() {
		if l, ok := ops.LossOf(n); ok && !l.Gradient {
			losses[l] = n
		}
	}
	for _, n := range g.Nodes() {
		l, ok := ops.LossOf(n)
		if !ok || !l.Gradient {
			continue
		}
		l.Gradient = false
		loss := losses[l]
		if loss != nil && found[loss.ID] == nil && withIt(needed, loss, n) &&
			!g.Ancestors([]graph.NodeID{n.ID})[loss.ID] {
			found[loss.ID] = n
		}
	}
	return found
}

// withIt reports whether every target, of which there is one, that needs a loss needs its gradient.
func withIt(needed [][]bool, loss, gradient *graph.Node) bool {
	some := false
	for _, by := range needed {
		if by[loss.ID] && !by[gradient.ID] {
			return false
		}
		some = some || by[loss.ID]
	}
	return some
}

// ofRows are the operations that leave out the gradient of the matrix, by the gradients that
// targets need whose last result none of them reads, or may ask for.
func ofRows(g *graph.Graph, targets [][]graph.NodeID,
	needed [][]bool) map[graph.NodeID]graph.Op {
	found := map[graph.NodeID]graph.Op{}
	for _, n := range g.Nodes() {
		live := slices.ContainsFunc(needed, func(by []bool) bool { return by[n.ID] })
		if op := ops.OfRows(n.Op); op != nil && live {
			found[n.ID] = op
		}
		for _, v := range n.In {
			if live && v.Index == len(v.Node.Out)-1 {
				delete(found, v.Node.ID)
			}
		}
	}
	for _, roots := range targets {
		for _, id := range roots {
			delete(found, id)
		}
	}
	return found
}

// builder makes the new graph.
type builder struct {
	names graph.Names
	ops   map[graph.NodeID]graph.Op // instead of a node's own
	out   *Result
	err   error
}

func newBuilder(g *graph.Graph) *builder {
	b := &builder{names: graph.Names{}, out: &Result{Graph: graph.New(),
		nodes: make([]*graph.Node, g.Len()), values: map[graph.Value]graph.Value{}}}
	for _, n := range g.Nodes() {
		b.names.Add(n.Name)
	}
	return b
}

func (b *builder) result() (*Result, error) {
	if b.err != nil {
		return nil, fmt.Errorf("join: %w", b.err)
	}
	return b.out, nil
}

// early copies a node, and before it what it needs and is not there yet.
func (b *builder) early(n *graph.Node) {
	if b.err != nil || b.out.nodes[n.ID] != nil {
		return
	}
	in := make([]graph.Value, len(n.In))
	for i, v := range n.In {
		if in[i] = b.out.Value(v); !in[i].Valid() {
			b.early(v.Node)
			in[i] = b.out.Value(v)
		}
	}
	op := n.Op
	if other := b.ops[n.ID]; other != nil {
		op = other
	}
	if b.err == nil {
		b.out.nodes[n.ID], b.err = b.out.Graph.Copy(n, op, in...)
	}
}

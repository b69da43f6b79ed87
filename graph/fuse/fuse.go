package fuse

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Result is a graph in which operations are fused, and where the nodes of the
// first graph went.
type Result struct {
	Graph *graph.Graph
	nodes []*graph.Node // by the ID in the first graph; nil for what is gone
}

// Node is the node that stands for one of the first graph: it has its name. It
// is nil if the node was fused into its reader or is not needed.
func (r *Result) Node(id graph.NodeID) *graph.Node { return r.nodes[id] }

// Value is the value that stands for one of the first graph, or no value.
func (r *Result) Value(v graph.Value) graph.Value {
	if !v.Valid() || r.nodes[v.Node.ID] == nil {
		return graph.Value{}
	}
	return r.nodes[v.Node.ID].Value(v.Index)
}

// Fuse builds the graph that computes the fetches and applies the updates of g
// with fewer nodes. It has all leaves of g, in their order, the fetched values
// and the updates. Of the rest it has what those need. The error is g's own, or
// says what is no part of it.
func Fuse(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) (*Result, error) {
	return For(func(graph.Op) bool { return true }, g, fetches, updates)
}

// For is Fuse for a device that does not run every operation: only into such that it runs is
// fused. If it runs none, the graph is a copy.
func For(runs func(graph.Op) bool, g *graph.Graph, fetches []graph.Value,
	updates []graph.NodeID) (*Result, error) {
	if g == nil {
		return nil, errors.New("fuse: the graph is nil")
	}
	if err := g.Verify(); err != nil {
		return nil, err
	}
	for _, v := range fetches {
		if v.Graph() != g || v.Index < 0 || v.Index >= len(v.Node.Out) {
			return nil, fmt.Errorf("fuse: fetch %s is no value of the graph", v)
		}
	}
	for _, id := range updates {
		if id < 0 || int(id) >= g.Len() || g.Node(id).Kind != graph.KindUpdate {
			return nil, fmt.Errorf("fuse: node %d is no update of the graph", id)
		}
	}
	r := newRewrite(g, fetches, updates)
	r.runs = runs
	r.fuse()
	return r.build()
}

// rewrite is a graph whose nodes are being fused.
type rewrite struct {
	g       *graph.Graph
	live    []bool
	kept    []bool            // by node: fetched, or asked for by its ID
	readers []int32           // by node: live nodes that read it
	now     []ops.Application // by node: what it computes; no operation if its reader does
	place   []graph.NodeID    // by node: the node whose place in the order it takes
	ready   *readiness
	runs    func(graph.Op) bool // what the device can do
}

func newRewrite(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) *rewrite {
	r := &rewrite{
		g: g, kept: make([]bool, g.Len()), readers: make([]int32, g.Len()),
		now: make([]ops.Application, g.Len()), place: make([]graph.NodeID, g.Len()),
	}
	roots := slices.Clone(updates)
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	for _, id := range roots {
		r.kept[id] = true
	}
	r.live = g.Ancestors(roots)
	r.ready = newReadiness(g, r.live)
	for _, n := range g.Nodes() {
		r.now[n.ID], r.place[n.ID] = ops.Application{Op: n.Op, In: n.In}, n.ID
	}
	return r
}

// fuse fuses until nothing is left to fuse: a producer that took over one of two
// readers of a value may leave the value with one.
func (r *rewrite) fuse() {
	for r.round() {
	}
}

// round lets every node, in order of creation, take over an operand's producer.
func (r *rewrite) round() (changed bool) {
	r.countReaders()
	for _, n := range r.g.Nodes() {
		in := r.now[n.ID].In
		for _, v := range in {
			changed = r.candidate(v, n) && r.merge(v, n, in) || changed
		}
	}
	return changed
}

// countReaders counts, for every node, those that read it, each once.
func (r *rewrite) countReaders() {
	clear(r.readers)
	latest := make([]graph.NodeID, r.g.Len()) // by node: its latest reader and one
	for _, n := range r.g.Nodes() {
		if !r.live[n.ID] {
			continue
		}
		for _, v := range r.now[n.ID].In {
			if latest[v.Node.ID] != n.ID+1 {
				latest[v.Node.ID] = n.ID + 1
				r.readers[v.Node.ID]++
			}
		}
	}
}

// candidate reports whether n is all that needs v, and belongs with it.
func (r *rewrite) candidate(v graph.Value, n *graph.Node) bool {
	p := v.Node
	return r.live[n.ID] && n.Kind == graph.KindCompute && p.Kind == graph.KindCompute &&
		p.Phase == n.Phase &&
		len(p.Out) == 1 && len(n.Out) == 1 && p.Out[0].Bytes() == n.Out[0].Bytes() &&
		r.readers[p.ID] == 1 && !r.kept[p.ID]
}

// runsAtOnce reports whether everything else that n reads is there when the
// producer of v runs, so that the fused node can run in its place. What n has come
// to read in this round, beside in, waits for the next.
func (r *rewrite) runsAtOnce(v graph.Value, n *graph.Node, in []graph.Value) bool {
	for _, u := range r.now[n.ID].In {
		if u != v && !u.Node.Leaf() && !slices.Contains(r.now[v.Node.ID].In, u) &&
			!(slices.Contains(in, u) && r.ready.depends(v.Node.ID, u.Node.ID)) {
			return false
		}
	}
	return true
}

// merge fuses the producer of v into n, which read in when the round began, if
// there is an operation for that.
func (r *rewrite) merge(v graph.Value, n *graph.Node, in []graph.Value) bool {
	p := v.Node
	fused, ok := ops.Fuse(r.now[p.ID], r.now[n.ID], v)
	if !ok || !r.runs(fused.Op) || !fused.Type().Equal(n.Out[0]) || !r.runsAtOnce(v, n, in) {
		return false
	}
	r.now[n.ID], r.now[p.ID] = fused, ops.Application{}
	r.place[n.ID] = r.place[p.ID]
	return true
}

// build makes the new graph: the leaves, and the other nodes each in its place.
func (r *rewrite) build() (*Result, error) {
	out := &Result{Graph: graph.New(), nodes: make([]*graph.Node, r.g.Len())}
	for _, n := range r.order() {
		a := r.now[n.ID]
		in := make([]graph.Value, len(a.In))
		for i, v := range a.In {
			in[i] = out.Value(v)
		}
		var err error
		if out.nodes[n.ID], err = out.Graph.Copy(n, a.Op, in...); err != nil {
			return nil, fmt.Errorf("fuse: %w", err)
		}
	}
	return out, nil
}

// order lists the nodes of the new graph in the order of their creation.
func (r *rewrite) order() []*graph.Node {
	var leaves, rest []*graph.Node
	for _, n := range r.g.Nodes() {
		switch {
		case n.Leaf():
			leaves = append(leaves, n)
		case r.live[n.ID] && r.now[n.ID].Op != nil:
			rest = append(rest, n)
		}
	}
	slices.SortStableFunc(rest, func(a, b *graph.Node) int {
		return cmp.Compare(r.place[a.ID], r.place[b.ID])
	})
	return append(leaves, rest...)
}

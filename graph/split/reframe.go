package split

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// tighter are the shares of the limit that a body's operations are tried to need at most.
var tighter = []int64{2, 8, 32}

// reframe builds the graph that computes the fetches and applies the updates of g, in which bodies
// of operations that need more than limit bytes are split as graphs are, where their frames are
// smaller so. There is none if there is no such operation.
func reframe(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID,
	limit int64) (*Result, error) {
	ops, err := reframed(g, Needs(g, fetches, updates), limit)
	if len(ops) == 0 || err != nil {
		return nil, err
	}
	out := &Result{Graph: graph.New(), nodes: make([]*graph.Node, g.Len()),
		joined: map[graph.Value]graph.Value{}}
	for _, n := range g.Nodes() {
		in := make([]graph.Value, len(n.In))
		for i, v := range n.In {
			in[i] = out.Value(v)
		}
		op := n.Op
		if other, ok := ops[n.ID]; ok {
			op = other
		}
		if out.nodes[n.ID], err = out.Graph.Copy(n, op, in...); err != nil {
			return nil, fmt.Errorf("split: %w", err)
		}
		out.owner = append(out.owner, none)
	}
	return out, nil
}

// reframed are the operations that need more than a limit with other bodies, by node.
func reframed(g *graph.Graph, needs []int64, limit int64) (map[graph.NodeID]graph.Op, error) {
	ops := map[graph.NodeID]graph.Op{}
	made := map[graph.Op]graph.Op{}
	for _, n := range g.Nodes() {
		op, ok := n.Op.(graph.Framed)
		if !ok || needs[n.ID] <= limit || len(op.Inside()) == 0 {
			continue
		}
		if made[op] == nil {
			other, err := smallest(op, limit)
			if err != nil {
				return nil, err
			}
			made[op] = other
		}
		if made[op] != graph.Op(op) {
			ops[n.ID] = made[op]
		}
	}
	return ops, nil
}

// smallest is the operation with the body of the smallest frame that is found.
func smallest(op graph.Framed, limit int64) (graph.Op, error) {
	best, results := op, op.Inside()
	body := results[0].Graph()
	sums, err := Accumulate(body, results, nil)
	if err != nil {
		return nil, err
	}
	try := func(of func(graph.Value) graph.Value) {
		other, ok := op.Reframed(of).(graph.Framed)
		if ok && other.Frame() < best.Frame() {
			best = other
		}
	}
	try(sums.Value)
	for _, share := range tighter {
		r, err := Split(sums.Graph, sums.fetched(results), nil, limit/share)
		if err != nil {
			return nil, err
		}
		try(func(v graph.Value) graph.Value { return r.Value(sums.Value(v)) })
	}
	return best, nil
}

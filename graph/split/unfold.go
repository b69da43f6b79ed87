package split

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// unfold builds the graph that computes the fetches and applies the updates of g, in which
// sequences that need more than limit bytes are computed some steps at a time, and what can be made
// in stages is. There is none if there is nothing of the kind.
func unfold(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID,
	limit int64) (*Result, error) {
	u := &unfolding{builder: &builder{Survey: &Survey{g: g, fetches: fetches, updates: updates,
		live: wanted(g, fetches, updates), needs: Needs(g, fetches, updates)},
		names: graph.Names{}, made: map[rows]graph.Value{}, region: none,
		out: &Result{Graph: graph.New(), nodes: make([]*graph.Node, g.Len()),
			joined: map[graph.Value]graph.Value{}}},
		pieces: map[graph.Value][]graph.Value{}, early: early(g, fetches)}
	chosen, staged := u.chosen(limit), u.staged(limit)
	if len(chosen)+len(staged) == 0 {
		return nil, nil
	}
	if u.build(chosen, staged); u.err != nil {
		return nil, u.err
	}
	return u.out.pruned(fetches, updates)
}

// unfolding is a graph in which recurrent operations are in parts.
type unfolding struct {
	*builder
	pieces map[graph.Value][]graph.Value // by value of the first graph: its rows, in parts
	early  map[graph.Value]bool          // of the first graph: more than updates reads it
	at     *graph.Node                   // that is being unfolded
	part   string                        // of it, as names say it
}

// chosen are the sequences that need more than the limit, by node, and those that read rows of
// these: they would have to be joined for them. It says into how many parts to cut each: all of
// one length into as many, so that what one makes in parts another reads in the same ones.
func (u *unfolding) chosen(limit int64) map[graph.NodeID]int {
	large, of := map[graph.NodeID]bool{}, map[graph.NodeID]graph.NodeID{}
	for _, n := range u.g.Nodes() {
		if steps, _ := u.steps(n, limit); steps < 2 {
			continue
		}
		of[n.ID] = n.ID
		for _, v := range n.In {
			if first, ok := of[v.Node.ID]; ok && v.Index > 0 { // states or gates
				of[n.ID] = first
			}
		}
		large[of[n.ID]] = large[of[n.ID]] || u.needs[n.ID] > limit
	}
	chosen, most := map[graph.NodeID]int{}, map[int]int{}
	for id, first := range of {
		if large[first] {
			steps, parts := u.steps(u.g.Node(id), limit)
			chosen[id], most[steps] = steps, max(most[steps], parts)
		}
	}
	for id, steps := range chosen {
		chosen[id] = most[steps]
	}
	return chosen
}

// steps are those of a sequence, and its parts; one of what cannot be cut.
func (u *unfolding) steps(n *graph.Node, limit int64) (steps, parts int) {
	op, ok := n.Op.(graph.Sequence)
	if !ok || !u.live[n.ID] {
		return 1, 1
	}
	return op.Steps(n.InTypes(), n.Out, limit)
}

// staged are the operations that need more than the limit, and can be made in stages.
func (u *unfolding) staged(limit int64) map[graph.NodeID]bool {
	list := map[graph.NodeID]bool{}
	for _, n := range u.g.Nodes() {
		op, ok := n.Op.(graph.Staged)
		if ok && u.live[n.ID] && u.needs[n.ID] > limit && op.InStages(n.InTypes()) {
			list[n.ID] = true
		}
	}
	return list
}

// early is what more than updates reads, or views of it.
func early(g *graph.Graph, fetches []graph.Value) map[graph.Value]bool {
	early := map[graph.Value]bool{}
	for _, v := range fetches {
		early[v] = true
	}
	for _, n := range slices.Backward(g.Nodes()) {
		late := n.Phase == graph.Update || n.Kind == graph.KindUpdate
		if !n.Leaf() && !n.Executes() {
			late = !early[n.Value(0)]
		}
		for _, v := range n.In {
			early[v] = early[v] || !late
		}
	}
	return early
}

func (u *unfolding) build(chosen map[graph.NodeID]int, staged map[graph.NodeID]bool) {
	for _, n := range u.g.Nodes() {
		u.names.Add(n.Name)
		if n.Leaf() {
			u.out.nodes[n.ID] = u.copy(n, n.Name, nil)
		}
	}
	for _, n := range u.g.Nodes() {
		switch {
		case n.Leaf() || !u.live[n.ID] || u.err != nil:
		case chosen[n.ID] > 1:
			u.at, u.part = n, ""
			for i, pieces := range n.Op.(graph.Sequence).Unfold(n.In, chosen[n.ID], u) {
				u.pieces[n.Value(i)] = pieces
			}
		case staged[n.ID]:
			u.at, u.part = n, ""
			for i, v := range n.Op.(graph.Staged).Stages(n.In, u) {
				u.pieces[n.Value(i)] = []graph.Value{v}
			}
		default:
			in := make([]graph.Value, len(n.In))
			for i, v := range n.In {
				in[i] = u.Whole(v)
			}
			u.out.nodes[n.ID] = u.copy(n, n.Name, n.Op, in...)
		}
	}
	for _, v := range u.fetches {
		u.Whole(v)
	}
}

// Whole is the value that stands for one of the first graph, joined if it is in parts.
func (u *unfolding) Whole(v graph.Value) graph.Value {
	pieces, ok := u.pieces[v]
	switch {
	case u.err != nil:
		return graph.Value{}
	case !ok:
		return u.out.Value(v)
	case u.out.joined[v].Valid():
		return u.out.joined[v]
	}
	u.out.joined[v] = u.joined(v, pieces)
	return u.out.joined[v]
}

// joined is a value of its parts. What only updates read is joined where they are: there the parts
// need not be in one memory with all of it.
func (u *unfolding) joined(v graph.Value, pieces []graph.Value) graph.Value {
	n := *v.Node
	if !u.early[v] {
		n.Phase = graph.Update
	}
	name := n.Name
	if u.out.hasSome(v.Node) {
		name = u.name(&n, fmt.Sprint("result", v.Index))
	}
	if len(pieces) == 1 {
		return u.value(&n, name, ops.Shaped(v.Type()), pieces[0])
	}
	types := make([]graph.Type, len(pieces))
	for i, x := range pieces {
		types[i] = x.Type()
	}
	if out, err := ops.Joined().Infer(types); err == nil && out[0].Equal(v.Type()) {
		return u.value(&n, name, ops.Joined(), pieces...)
	}
	x := u.value(&n, u.name(&n, "joined"), ops.Joined(), pieces...)
	if u.err != nil {
		return x
	}
	return u.value(&n, name, ops.Shaped(v.Type()), x)
}

// Rows are some rows of a value of the first graph: of the parts that they are in, or of all.
func (u *unfolding) Rows(v graph.Value, lo, hi int) graph.Value {
	key := rows{of: v, axes: 1, lo: lo, hi: hi}
	if x, ok := u.made[key]; ok || u.err != nil {
		return x
	}
	pieces := u.pieces[v]
	if pieces == nil {
		pieces = []graph.Value{u.Whole(v)}
	}
	var parts []graph.Value
	begin := 0
	for _, x := range pieces {
		size := x.Type().Size(0)
		if first, end := max(lo-begin, 0), min(hi-begin, size); first < end {
			if first > 0 || end < size {
				x = u.value(u.at, u.name(v.Node, fmt.Sprintf("%dto%d", begin+first, begin+end)),
					ops.Rows(first, end), x)
			}
			parts = append(parts, x)
		}
		begin += size
	}
	x := parts[0]
	if len(parts) > 1 && u.err == nil {
		x = u.value(u.at, u.name(v.Node, fmt.Sprintf("%dto%d", lo, hi)), ops.Joined(), parts...)
	}
	u.made[key] = x
	return x
}

// Part begins part k of so many.
func (u *unfolding) Part(k, count int) { u.part = partName(k, count) }

// Node are the results of a node of a part.
func (u *unfolding) Node(results int, what string, op graph.Op,
	in ...graph.Value) []graph.Value {
	out := make([]graph.Value, results)
	if u.part != "" {
		what = strings.TrimPrefix(what+"/"+u.part, "/")
	}
	if n := u.copy(u.at, u.name(u.at, what), op, slices.Clone(in)...); n != nil {
		for i := range n.Out {
			out[i] = n.Value(i)
		}
	}
	return out
}

// after is the result of two rewritings of a graph, of which the other was the first.
func (r *Result) after(first *Result, g *graph.Graph) *Result {
	out := &Result{Graph: r.Graph, owner: r.owner, nodes: make([]*graph.Node, len(first.nodes)),
		joined: map[graph.Value]graph.Value{}}
	for id, n := range first.nodes {
		if n == nil {
			continue
		}
		out.nodes[id] = r.nodes[n.ID]
		for i := range n.Out {
			if x, ok := r.joined[n.Value(i)]; ok {
				out.joined[g.Node(graph.NodeID(id)).Value(i)] = x
			}
		}
	}
	for v, x := range first.joined {
		out.joined[v] = r.Value(x)
	}
	return out
}

package distrib

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// routes are the ways of updates where every node holds a replica and sends to some
// others only. From every node there is one tree to all the others, breadth first: so
// each update comes to each node once, in the order in which it was made. Updates that
// have the same part of the trees before them are merged on the way: that is what makes
// a sparse topology cheap.
type routes struct {
	own  []hop   // where this node's updates go
	next [][]hop // where they go that come with a number of paths; nil: not by this node
	at   []NodeID
}

// hop is a neighbour, and the number of the paths behind it.
type hop struct {
	to    NodeID
	paths uint32
}

// newRoutes finds the trees. All nodes find the same ones. The error says who cannot be
// reached.
func newRoutes(t Topology, nodes []NodeID, self NodeID) (*routes, error) {
	r := &routes{}
	numbers := map[string]uint32{}
	for _, o := range nodes {
		tree, order, err := treeOf(t, nodes, o)
		if err != nil {
			return nil, err
		}
		of := map[NodeID]uint32{} // the numbers of the tree's parts, by their first nodes
		for _, v := range slices.Backward(order[1:]) {
			name := shape(tree[v], of, v)
			n, known := numbers[name]
			if !known {
				n = uint32(len(numbers))
				numbers[name] = n
				r.at, r.next = append(r.at, v), append(r.next, nil)
			}
			if of[v] = n; v == self {
				r.next[n] = hops(tree[v], of)
			}
		}
		if o == self {
			r.own = hops(tree[o], of)
		}
	}
	return r, nil
}

// treeOf is the children of every node in the tree of one, and the nodes, breadth first.
func treeOf(t Topology, nodes []NodeID, root NodeID) (map[NodeID][]NodeID, []NodeID, error) {
	tree, reached := map[NodeID][]NodeID{}, map[NodeID]bool{}
	for _, n := range nodes {
		reached[n] = n == root
	}
	order := []NodeID{root}
	for i := 0; i < len(order); i++ {
		v := order[i]
		for _, u := range t.Dests(nil, v, Ref{}, 0) {
			if before, member := reached[u]; member && !before {
				reached[u] = true
				tree[v] = append(tree[v], u)
				order = append(order, u)
			}
		}
	}
	for _, n := range nodes {
		if !reached[n] {
			return nil, nil, fmt.Errorf("distrib: updates of node %d have no way to node %d", root,
				n)
		}
	}
	return tree, order, nil
}

// shape is a name of the part of a tree from a node on, by the numbers of its children's parts.
func shape(children []NodeID, of map[NodeID]uint32, v NodeID) string {
	var parts []uint32
	for _, c := range children {
		parts = append(parts, of[c])
	}
	slices.Sort(parts)
	name := binary.LittleEndian.AppendUint32(nil, uint32(v))
	for _, n := range parts {
		name = binary.LittleEndian.AppendUint32(name, n)
	}
	return string(name)
}

// boxes is how many boxes there may be at a node, for its own updates and for those on
// their way through.
func (r *routes) boxes() int {
	all := map[hop]bool{}
	for _, list := range append(slices.Clone(r.next), r.own) {
		for _, h := range list {
			all[h] = true
		}
	}
	return len(all)
}

func hops(children []NodeID, of map[NodeID]uint32) []hop {
	out := []hop{}
	for _, c := range children {
		out = append(out, hop{c, of[c]})
	}
	return out
}

// takeReplica folds other nodes' updates in, and passes on what is on its way through.
func (l *lane) takeReplica(from NodeID, h header, marks []mark, frames []Frame) error {
	e := l.e
	var onward []hop
	if l.mode == graph {
		if int64(h.paths) >= int64(len(l.routes.next)) || l.routes.at[h.paths] != e.self {
			return badFrame("no way on from node %d is called %d", e.self, h.paths)
		}
		onward = l.routes.next[h.paths]
	}
	for _, f := range frames {
		if err := l.takeOne(from, f, onward); err != nil {
			return err
		}
	}
	for _, m := range marks {
		l.seen.advance(m.of, m.at)
	}
	for _, to := range onward {
		b := l.outbox.box(to.to, to.paths)
		for _, m := range marks {
			b.mark(m.of, m.at)
		}
		b.wanted = b.wanted || b.due(e.workers.clock)
	}
	return nil
}

func (l *lane) takeOne(from NodeID, f Frame, onward []hop) error {
	e := l.e
	p := e.params[f.Ref.Param]
	if p.lane != l || f.Ref.N == 0 {
		return badFrame("updates of %s by another plan, or of no rows", p.name)
	}
	p.ledger.receive(&e.cfg, f.U)
	p.ledger.fold(&e.cfg, f.U)
	e.workers.fold(from, f.Clock, p, f.Ref, f.U)
	for _, to := range onward {
		p.ledger.push(&e.cfg, f.U, 1)
		l.outbox.box(to.to, to.paths).add(p, Entry{Ref: f.Ref, Dest: to.to, Made: f.Clock, U: f.U})
	}
	return nil
}

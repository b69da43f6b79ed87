package distrib

import (
	"fmt"
	"slices"
	"strings"
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
	trees := map[NodeID]map[NodeID][]NodeID{}
	for _, o := range nodes {
		tree, err := treeOf(t, nodes, o)
		if err != nil {
			return nil, err
		}
		trees[o] = tree
	}
	numbers := numbered(trees, nodes)
	r := &routes{next: make([][]hop, len(numbers)), at: make([]NodeID, len(numbers))}
	for _, o := range nodes {
		for _, v := range nodes {
			if v == o {
				continue
			}
			n := numbers[shape(trees[o], v)]
			r.at[n] = v
			if v == self {
				r.next[n] = hops(trees[o], v, numbers)
			}
		}
	}
	r.own = hops(trees[self], self, numbers)
	return r, nil
}

// treeOf is the children of every node in the tree of one, breadth first.
func treeOf(t Topology, nodes []NodeID, root NodeID) (map[NodeID][]NodeID, error) {
	tree := map[NodeID][]NodeID{}
	reached := map[NodeID]bool{root: true}
	for queue := []NodeID{root}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, u := range t.Dests(nil, v, Ref{}, 0) {
			if !reached[u] && slices.Contains(nodes, u) {
				reached[u] = true
				tree[v] = append(tree[v], u)
				queue = append(queue, u)
			}
		}
	}
	for _, n := range nodes {
		if !reached[n] {
			return nil, fmt.Errorf("distrib: updates of node %d have no way to node %d", root, n)
		}
	}
	return tree, nil
}

// shape is a name of the part of a tree from a node on.
func shape(tree map[NodeID][]NodeID, v NodeID) string {
	var parts []string
	for _, c := range tree[v] {
		parts = append(parts, shape(tree, c))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%d(%s)", v, strings.Join(parts, ","))
}

// numbered gives every shape a number, the same on all nodes.
func numbered(trees map[NodeID]map[NodeID][]NodeID, nodes []NodeID) map[string]uint32 {
	var all []string
	for _, o := range nodes {
		for _, v := range nodes {
			if v != o {
				all = append(all, shape(trees[o], v))
			}
		}
	}
	slices.Sort(all)
	numbers := map[string]uint32{}
	for i, s := range slices.Compact(all) {
		numbers[s] = uint32(i)
	}
	return numbers
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

func hops(tree map[NodeID][]NodeID, v NodeID, numbers map[string]uint32) []hop {
	out := []hop{}
	for _, c := range tree[v] {
		out = append(out, hop{c, numbers[shape(tree, c)]})
	}
	return out
}

// takeReplica folds other nodes' updates in, and passes on what is on its way through.
func (l *lane) takeReplica(h header, marks []mark, frames []Frame) error {
	e := l.e
	var onward []hop
	if l.mode == graph {
		if int64(h.paths) >= int64(len(l.routes.next)) || l.routes.at[h.paths] != e.self {
			return badFrame("no way on from node %d is called %d", e.self, h.paths)
		}
		onward = l.routes.next[h.paths]
	}
	for _, f := range frames {
		if err := l.takeOne(f, onward); err != nil {
			return err
		}
	}
	for _, m := range marks {
		l.seen.advance(m.of, m.at)
	}
	for _, to := range onward {
		b := l.box(to.to, to.paths)
		for _, m := range marks {
			b.mark(m.of, m.at)
		}
		b.wanted = b.wanted || b.due(e.clock)
	}
	return nil
}

func (l *lane) takeOne(f Frame, onward []hop) error {
	e := l.e
	p := e.params[f.Ref.Param]
	if p.lane != l || f.Ref.N == 0 {
		return badFrame("updates of %s by another plan, or of no rows", p.name)
	}
	p.ledger.receive(e, f.U)
	p.ledger.fold(e, f.U)
	e.addToReplica(p, f.Ref, f.U)
	for _, to := range onward {
		p.ledger.push(e, f.U, 1)
		l.box(to.to, to.paths).add(p, Entry{Ref: f.Ref, Dest: to.to, Made: f.Clock, U: f.U})
	}
	return nil
}

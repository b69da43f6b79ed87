package distrib

import (
	"fmt"
	"math"
	"slices"
)

// Trees are Parameter Flow's tree-based streaming broadcast: what a server sends to all
// workers goes along a tree of low degree and depth, and every worker hands on what it
// receives while it receives it. A tree costs the sum of its edges and Alpha for every
// leaf: least-cost trees with such bounds are hard to find, so they are found greedily and
// improved by swapping and moving workers.
//
// With cut-through, time is not a matter of depth but of the busiest link: who relays a
// model of S bytes to d others is busy for d*S/B. So a worker has as few children as the
// depth allows, where the servers share one tree as in the paper. And where every server
// has a tree of its own, which is the default, a worker relays in few of them: the roles
// are dealt round, and of a degree with which all relay about as much as they receive.
type Trees struct {
	Degree int // children of a server, the most of a worker; 5 if 0
	Depth  int // edges from a server to a worker, at most; if 0, 3 or what it takes
	Shared bool

	// Cost of sending from one to the other, 1 for all pairs if nil. The paper has 0.1
	// for nodes below one switch, 0.5 for switches below one, and 1.
	Cost  func(from, to NodeID) float64
	Alpha float64 // 0.1 if 0, the least cost there is
}

// Tree is how one server's messages go.
type Tree struct {
	Root NodeID
	Cost float64
	kids map[NodeID][]NodeID
}

// Children appends those that a node hands on to.
func (t *Tree) Children(dst []NodeID, of NodeID) []NodeID { return append(dst, t.kids[of]...) }

// Depth is how many edges there are to the farthest worker.
func (t *Tree) Depth() int {
	var below func(NodeID) int
	below = func(id NodeID) (deepest int) {
		for _, kid := range t.kids[id] {
			deepest = max(deepest, 1+below(kid))
		}
		return deepest
	}
	return below(t.Root)
}

// Build makes a tree for every server, over all workers but itself. The error says how
// many workers trees of the degree and depth would reach.
func (s Trees) Build(servers, workers []NodeID) (map[NodeID]*Tree, error) {
	if s.Degree < 0 || s.Depth < 0 || s.Alpha < 0 {
		return nil, fmt.Errorf("trees of degree %d and depth %d, with leaves at %v: "+
			"none may be negative", s.Degree, s.Depth, s.Alpha)
	}
	s, workers = s.filled(len(workers)), slices.Sorted(slices.Values(workers))
	if most := capacity(s.Degree, s.Degree, s.Depth); most < len(workers) {
		return nil, fmt.Errorf("trees of degree %d and depth %d reach %d workers, not %d",
			s.Degree, s.Depth, most, len(workers))
	}
	if s.Shared {
		return s.shared(servers, workers), nil
	}
	s.Degree = s.evenDegree(len(servers), len(workers))
	out := map[NodeID]*Tree{}
	next := 0 // whose turn it is to relay
	for _, root := range servers {
		out[root] = s.rotated(root, workers, &next)
	}
	return out, nil
}

func (s Trees) filled(n int) Trees {
	if s.Degree == 0 {
		s.Degree = 5
	}
	if s.Alpha == 0 {
		s.Alpha = 0.1
	}
	if s.Depth == 0 {
		for s.Depth = 3; s.Degree > 1 && capacity(s.Degree, s.Degree, s.Depth) < n; s.Depth++ {
		}
	}
	return s
}

// evenDegree is the degree, of those that reach n workers, with which the busiest relays
// least when roles in p trees are dealt round; of equal ones the largest, whose trees are
// the least deep.
func (s Trees) evenDegree(p, n int) int {
	best, least := s.Degree, math.MaxInt
	for d := s.Degree; d > 0 && capacity(d, d, s.Depth) >= n; d-- {
		roles := p * (max(0, n-1) / d)
		if load := max(p, (roles+n-1)/max(n, 1)*d); load < least {
			best, least = d, load
		}
	}
	return best
}

// capacity is how many nodes a tree has below a root of some degree, and nodes of
// another. It does not count further than a million.
func capacity(root, degree, depth int) int {
	total, level := 0, root
	for range depth {
		total += level
		level *= degree
		if total > 1e6 {
			break
		}
	}
	return total
}

// price is what an edge costs.
func (s Trees) price(from, to NodeID) float64 {
	if s.Cost == nil {
		return 1
	}
	return s.Cost(from, to)
}

// shared makes one tree for all servers: an edge from the root costs what it costs them
// together. A server that is a worker takes its own place as the root's.
func (s Trees) shared(servers, workers []NodeID) map[NodeID]*Tree {
	degree := 1
	for capacity(s.Degree, degree, s.Depth) < len(workers) {
		degree++
	}
	p := newProblem(workers, s.Alpha, s.Cost != nil, s.price, func(to NodeID) (sum float64) {
		for _, from := range servers {
			sum += s.price(from, to)
		}
		return sum
	})
	p.grow(s.Degree, degree, s.Depth)
	p.improve(s.Degree, degree, s.Depth, nil)
	out := map[NodeID]*Tree{}
	for _, root := range servers {
		t := p.tree(root)
		t.adopt(root)
		out[root] = t
	}
	return out
}

// adopt takes the root's own place out of its tree.
func (t *Tree) adopt(root NodeID) {
	for parent, kids := range t.kids {
		if i := slices.Index(kids, root); i >= 0 && parent != root {
			t.kids[parent] = slices.Delete(kids, i, i+1)
			return
		}
	}
	if i := slices.Index(t.kids[root], root); i >= 0 {
		t.kids[root] = slices.Delete(t.kids[root], i, i+1)
	}
}

// rotated makes a tree for one server in which those relay whose turn it is, as few as
// can be.
func (s Trees) rotated(root NodeID, workers []NodeID, next *int) *Tree {
	others := slices.DeleteFunc(slices.Clone(workers), func(id NodeID) bool { return id == root })
	p := newProblem(others, s.Alpha, s.Cost != nil, s.price, func(to NodeID) float64 {
		return s.price(root, to)
	})
	relays := max(0, len(others)-1) / s.Degree
	relay := make([]bool, len(others))
	for dealt := 0; dealt < relays; *next++ {
		i, ok := slices.BinarySearch(others, workers[*next%len(workers)])
		if ok && !relay[i] {
			relay[i] = true
			dealt++
		}
	}
	p.skeleton(s.Degree, s.Depth, relay)
	p.improve(s.Degree, s.Degree, s.Depth, relay)
	return p.tree(root)
}

// BroadcastTime is how long it takes until all have all, where every server has an equal
// part of a model, links are fast in both directions and the core is free of congestion:
// the busiest link's time, in units of the model's size over a link's bandwidth. Latency
// and the first blocks' way down are not counted.
func BroadcastTime(trees map[NodeID]*Tree) float64 {
	out, in := map[NodeID]int{}, map[NodeID]int{}
	for _, t := range trees {
		for from, kids := range t.kids {
			out[from] += len(kids)
			for _, to := range kids {
				in[to]++
			}
		}
	}
	busiest := 0
	for _, links := range []map[NodeID]int{out, in} {
		for _, parts := range links {
			busiest = max(busiest, parts)
		}
	}
	return float64(busiest) / float64(len(trees))
}

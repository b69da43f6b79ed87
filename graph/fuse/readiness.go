package fuse

import "github.com/gomem/gomem/graph"

// readiness says which nodes depend on which. Most answers are read off a tree:
// every node hangs from the operand that was created last, and so depends on all
// above it. For the others the graph is searched from both ends at once.
type readiness struct {
	g        *graph.Graph
	readers  graph.Adjacency
	start    []int32 // by node: its number in the tree, parents first
	size     []int32 // by node: nodes at it and below
	down, up search
}

// effort bounds the edges that a question looks at from each end. Where that does
// not suffice the answer is no, and less is fused: what must not happen is that
// answering grows with the square of the graph, however it is made.
const effort = 2048

func newReadiness(g *graph.Graph, live []bool) *readiness {
	n := g.Len()
	r := &readiness{g: g, readers: g.Successors(live), size: make([]int32, n),
		down: search{seen: make([]int32, n)}, up: search{seen: make([]int32, n)}}
	parent := make([]graph.NodeID, n)
	for _, node := range g.Nodes() {
		parent[node.ID] = -1
		for _, v := range node.In {
			if !v.Node.Leaf() {
				parent[node.ID] = max(parent[node.ID], v.Node.ID)
			}
		}
	}
	for id := n - 1; id >= 0; id-- {
		r.size[id]++
		if p := parent[id]; p >= 0 {
			r.size[p] += r.size[id]
		}
	}
	r.number(parent)
	return r
}

// number numbers the nodes of the tree so that those below a node follow it.
func (r *readiness) number(parent []graph.NodeID) {
	r.start = make([]int32, len(parent))
	next := make([]int32, len(parent)) // by node: the number of its next child
	var root int32
	for id, p := range parent {
		at := &root
		if p >= 0 {
			at = &next[p]
		}
		r.start[id] = *at
		*at += r.size[id]
		next[id] = r.start[id] + 1
	}
}

// hangs reports whether a node is at or below another in the tree.
func (r *readiness) hangs(node, above graph.NodeID) bool {
	at := r.start[node] - r.start[above]
	return 0 <= at && at < r.size[above]
}

// depends reports whether a node depends on another, or is that. It may miss that
// it does, see effort.
func (r *readiness) depends(node, on graph.NodeID) bool {
	if node < on || r.hangs(node, on) {
		return node >= on
	}
	r.down.begin(on)
	r.up.begin(node)
	for range effort {
		from, k, ok := r.down.next(func(id graph.NodeID) int { return len(r.readers.Of(id)) })
		if !ok {
			return false
		}
		if reader := r.readers.Of(from)[k]; r.hangs(node, reader) {
			return true
		} else if reader < node {
			r.down.add(reader)
		}
		from, k, ok = r.up.next(func(id graph.NodeID) int { return len(r.g.Node(id).In) })
		if !ok {
			return false
		}
		if operand := r.g.Node(from).In[k].Node.ID; r.hangs(operand, on) {
			return true
		} else if operand > on {
			r.up.add(operand)
		}
	}
	return false
}

// search goes through a graph from one node, breadth first, an edge at a time.
type search struct {
	queue  []graph.NodeID
	head   int     // of the queue
	edge   int     // of the head, the next to follow
	seen   []int32 // by node: the latest search that has found it
	number int32   // of this search
}

func (s *search) begin(id graph.NodeID) {
	s.number++
	s.queue, s.head, s.edge = s.queue[:0], 0, 0
	s.add(id)
}

// add queues a node, unless it has been found before.
func (s *search) add(id graph.NodeID) {
	if s.seen[id] != s.number {
		s.seen[id] = s.number
		s.queue = append(s.queue, id)
	}
}

// next is the next edge: a node that was found, and one of its edges by number.
func (s *search) next(edges func(graph.NodeID) int) (from graph.NodeID, k int, ok bool) {
	for ; s.head < len(s.queue); s.head, s.edge = s.head+1, 0 {
		if from = s.queue[s.head]; s.edge < edges(from) {
			s.edge++
			return from, s.edge - 1, true
		}
	}
	return 0, 0, false
}

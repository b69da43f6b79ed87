package graph

// Adjacency lists, for every node, the nodes that must run after it.
type Adjacency struct {
	start []int32 // To of node i is to[start[i]:start[i+1]]
	to    []NodeID
}

// Of are the successors of a node, in order of their creation; a successor
// that uses the node twice is listed twice.
func (a Adjacency) Of(id NodeID) []NodeID { return a.to[a.start[id]:a.start[id+1]] }

// InDegrees counts, for every node, how often it is a successor.
func (a Adjacency) InDegrees() []int32 {
	deg := make([]int32, len(a.start)-1)
	for _, s := range a.to {
		deg[s]++
	}
	return deg
}

// Successors are the ordering edges between live nodes that execute: from a
// producer to its consumer, from every reader of a variable to every update
// that writes it, and between exchanges, whose order is the same on all workers.
// Leaves have no edges: they are there before anything runs. Two updates of one
// variable have none either: they are of different steps.
func (g *Graph) Successors(live []bool) Adjacency {
	a := Adjacency{start: make([]int32, len(g.nodes)+1)}
	g.edges(live, func(from, _ NodeID) { a.start[from+1]++ })
	for i := 1; i < len(a.start); i++ {
		a.start[i] += a.start[i-1]
	}
	a.to = make([]NodeID, a.start[len(g.nodes)])
	next := append([]int32(nil), a.start...)
	g.edges(live, func(from, to NodeID) {
		a.to[next[from]] = to
		next[from]++
	})
	return a
}

// edges visits the ordering edges in order of the later node's creation, data
// before version edges, and those before edges of exchanges.
func (g *Graph) edges(live []bool, visit func(from, to NodeID)) {
	for _, n := range g.nodes {
		if !live[n.ID] {
			continue
		}
		for _, v := range n.In {
			if !v.Node.Leaf() {
				visit(v.Node.ID, n.ID)
			}
		}
	}
	for _, n := range g.nodes {
		if !live[n.ID] || n.Leaf() {
			continue
		}
		for i, v := range n.In {
			root, _ := v.Resolve()
			if root.Node.Kind != KindVariable || i < n.Mutates {
				continue
			}
			for _, w := range g.writers[root.Node.ID] {
				if w != n && live[w.ID] {
					visit(n.ID, w.ID)
				}
			}
		}
	}
	g.exchangeEdges(live, visit)
}

// Writers are the update nodes that write a variable, in order of creation. A step
// runs one of them at most.
func (g *Graph) Writers(variable NodeID) []*Node { return g.writers[variable] }

// Ancestors marks every node that the roots depend on, and the roots.
func (g *Graph) Ancestors(roots []NodeID) []bool {
	live := make([]bool, len(g.nodes))
	for _, id := range roots {
		live[id] = true
	}
	for i := len(g.nodes) - 1; i >= 0; i-- {
		if live[i] {
			for _, v := range g.nodes[i].In {
				live[v.Node.ID] = true
			}
		}
	}
	return live
}

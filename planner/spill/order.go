package spill

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// access is how many bytes a disk could move in the time that it takes to begin:
// what makes small values dear.
const access = 64 << 10

// Order lists the variables and constants of the programs' graph in the order in which
// they should go to the disk: the fewer operations touch one, and the larger it is,
// the sooner. It depends on the graph and on what lives, not on how that is scheduled.
func Order(programs ...*program.Program) []graph.NodeID {
	g := programs[0].Graph
	touched := make([]int, g.Len())
	for _, p := range programs {
		for _, n := range g.Nodes() {
			if p.Live[n.ID] && n.Executes() {
				count(n, touched)
			}
		}
	}
	var list []graph.NodeID
	price := make([]float64, g.Len()) // of a byte on the disk
	for _, n := range g.Nodes() {
		if (n.Kind == graph.KindVariable || n.Kind == graph.KindConstant) && n.Shared == nil {
			bytes := float64(max(1, n.Out[0].Bytes()))
			price[n.ID] = float64(touched[n.ID]) * (bytes + access) / bytes
			list = append(list, n.ID)
		}
	}
	slices.SortStableFunc(list, func(a, b graph.NodeID) int {
		return cmp.Or(cmp.Compare(price[a], price[b]),
			cmp.Compare(g.Node(b).Out[0].Bytes(), g.Node(a).Out[0].Bytes()))
	})
	return list
}

// count adds a node's copies of leaves over the disk: one for what it reads, two for
// what it updates.
func count(n *graph.Node, touched []int) {
	for k, v := range n.In {
		root, _ := v.Resolve()
		if root.Node.Leaf() {
			touched[root.Node.ID]++
		}
		if k < n.Mutates {
			touched[root.Node.ID]++
		}
	}
}

// First are the leaves, by node, that the first of a list make up.
func First(g *graph.Graph, list []graph.NodeID) []bool {
	leaves := make([]bool, g.Len())
	for _, id := range list {
		leaves[id] = true
	}
	return leaves
}

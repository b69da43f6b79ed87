package arena

import (
	"cmp"
	"math"
	"slices"
)

// timeIndex finds the placed blocks that are live at some time of a given block:
// those that start before it ends and end after it starts. It is a tree over the
// moving blocks in order of their starts, which knows the latest end of the placed
// ones below every node.
type timeIndex struct {
	blocks []Block
	sorted []int // blocks in order of their starts
	rank   []int // by block: its place in sorted
	latest []int // by node of the tree: the latest end; node 1 is the root
	leaves int   // of the tree, a power of two
}

// nobody is the end of what is not there.
const nobody = math.MinInt

func newTimeIndex(blocks []Block) *timeIndex {
	x := &timeIndex{blocks: blocks, rank: make([]int, len(blocks)), leaves: 1}
	for i, b := range blocks {
		if !b.Fixed {
			x.sorted = append(x.sorted, i)
		}
	}
	slices.SortFunc(x.sorted, func(a, b int) int {
		return cmp.Compare(blocks[a].From, blocks[b].From)
	})
	for k, i := range x.sorted {
		x.rank[i] = k
	}
	for x.leaves < len(x.sorted) {
		x.leaves *= 2
	}
	x.latest = slices.Repeat([]int{nobody}, 2*x.leaves)
	return x
}

// add enters a block that has been placed.
func (x *timeIndex) add(i int) {
	to := x.blocks[i].To
	for at := x.leaves + x.rank[i]; at > 0 && x.latest[at] < to; at /= 2 {
		x.latest[at] = to
	}
}

// visit calls f with every placed block that meets b in time.
func (x *timeIndex) visit(b Block, f func(i int)) {
	started, _ := slices.BinarySearchFunc(x.sorted, b.To, func(i, to int) int {
		if x.blocks[i].From <= to {
			return -1
		}
		return 1
	})
	x.descend(1, 0, x.leaves, started, b.From, f)
}

// descend visits, among the leaves below a node from first on, the placed blocks
// of the first so many ranks that end at a time or later.
func (x *timeIndex) descend(node, first, leaves, ranks, time int, f func(i int)) {
	switch {
	case first >= ranks || x.latest[node] < time:
	case leaves == 1:
		f(x.sorted[first])
	default:
		x.descend(2*node, first, leaves/2, ranks, time, f)
		x.descend(2*node+1, first+leaves/2, leaves/2, ranks, time, f)
	}
}

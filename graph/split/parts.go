package split

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Parts reports, by node of a graph that was made of another, by [Split] or by several
// rewritings that keep names, which nodes compute a part of what one node of the other
// computes. A result that is only joined of parts is none, nor is one that is made of a
// complete sum.
func Parts(g, of *graph.Graph) []bool {
	names := make(map[string]bool, of.Len())
	for _, n := range of.Nodes() {
		names[n.Name] = true
	}
	parts := make([]bool, g.Len())
	for _, n := range g.Nodes() {
		if n.Leaf() {
			continue
		}
		if names[n.Name] {
			parts[n.ID] = endsSum(n)
			continue
		}
		_, _, _, parts[n.ID] = partOf(n.Name)
	}
	return parts
}

// endsSum reports whether a node with the name of a whole adds the last part to the sum
// of those before it.
func endsSum(n *graph.Node) bool {
	if len(n.In) == 0 || ops.Joins(n.Op) {
		return false
	}
	root, _ := n.In[0].Resolve()
	whole, k, count, ok := partOf(root.Node.Name)
	return ok && whole == n.Name && k == count-1
}

// partOf takes a name like "matmul/2of4" apart, or "matmul/2of4_2" where the other name
// was taken.
func partOf(name string) (whole string, k, count int, ok bool) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return "", 0, 0, false
	}
	whole = name[:at]
	last, _, _ := strings.Cut(name[at+1:], "_")
	if n, err := fmt.Sscanf(last, "%dof%d", &k, &count); n != 2 || err != nil {
		return "", 0, 0, false
	}
	return whole, k, count, last == partName(k, count) && 1 <= k && k <= count
}

// partName is what parts are called, after the name of the whole.
func partName(k, count int) string { return fmt.Sprintf("%dof%d", k, count) }

// Sequence is one of another graph that is made in parts.
type Sequence struct {
	Whole *graph.Node
	Parts int
	Need  int64 // of the whole: its operands, its results and its workspace, in bytes
}

// Sequences are those of a graph that another, which was made of it, has in parts, the neediest
// first.
func Sequences(g, of *graph.Graph) []Sequence {
	parts := map[string]int{}
	for _, n := range g.Nodes() {
		if whole, _, count, ok := partOf(n.Name); ok {
			parts[whole] = count
		}
	}
	var list []Sequence
	for _, n := range of.Nodes() {
		if _, ok := n.Op.(graph.Sequence); ok && parts[n.Name] > 0 {
			list = append(list, Sequence{n, parts[n.Name], need(n, make([]graph.NodeID, of.Len()))})
		}
	}
	slices.SortStableFunc(list, func(a, b Sequence) int { return cmp.Compare(b.Need, a.Need) })
	return list
}

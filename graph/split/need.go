package split

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// Needs is, by node, the bytes that must be in one memory while the node is
// executed: its operands, its results and its workspace. What several operands, or
// views of one value, share counts once, and so does a result that may take over the
// bytes of an operand that nobody reads later. Of a variable or a constant the parts
// that are read count. Nodes that execute nothing, and updates, which can run where
// their variables are, need none, nor do nodes that neither a fetch nor an update needs.
func Needs(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) []int64 {
	live := wanted(g, fetches, updates)
	last := lastReaders(g, live, fetches)
	needs := make([]int64, g.Len())
	for _, n := range g.Nodes() {
		if live[n.ID] && n.Executes() && n.Kind == graph.KindCompute {
			needs[n.ID] = need(n, last)
		}
	}
	return needs
}

// wanted is, by node, whether a fetch or an update needs it.
func wanted(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) []bool {
	roots := slices.Clone(updates)
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	return g.Ancestors(roots)
}

// lastReaders is, by node, the last live one that reads one of its results, by creation.
// A fetched value is read after all others.
func lastReaders(g *graph.Graph, live []bool, fetches []graph.Value) []graph.NodeID {
	last := make([]graph.NodeID, g.Len())
	for _, n := range g.Nodes() {
		if !live[n.ID] {
			continue
		}
		for _, v := range n.In {
			root, _ := v.Resolve()
			last[root.Node.ID] = n.ID
		}
	}
	for _, v := range fetches {
		root, _ := v.Resolve()
		last[root.Node.ID] = graph.NodeID(g.Len())
	}
	return last
}

// holding is bytes that an operand is in.
type holding struct {
	root graph.Value
	off  int64
	size int64
}

// held is what an operand counts for: itself if it is part of a variable or of a
// constant, else all of the value that holds it.
func held(v graph.Value) holding {
	root, off := v.Resolve()
	if k := root.Node.Kind; k == graph.KindVariable || k == graph.KindConstant {
		return holding{root, off, v.Type().Bytes()}
	}
	return holding{root, 0, root.Type().Bytes()}
}

func need(n *graph.Node, last []graph.NodeID) int64 {
	total := n.Cost().Scratch
	for _, t := range n.Out {
		total += t.Bytes()
	}
	total += operands(n.In)
	if over, ok := takesOver(n, last); ok {
		total -= over
	}
	return total
}

// operands is what operands count for together.
func operands(in []graph.Value) (total int64) {
	const few = 8
	var seen []holding
	var known map[holding]bool // instead, if there are many
	if len(in) > few {
		known = make(map[holding]bool, len(in))
	}
	for _, v := range in {
		h := held(v)
		if known[h] || slices.Contains(seen, h) {
			continue
		}
		if total += h.size; known != nil {
			known[h] = true
		} else {
			seen = append(seen, h)
		}
	}
	return total
}

// takesOver is the bytes of the operand that result 0 may take over.
func takesOver(n *graph.Node, last []graph.NodeID) (int64, bool) {
	op, ok := n.Op.(graph.InPlacer)
	if !ok {
		return 0, false
	}
	for _, i := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[i].Resolve()
		if !root.Node.Leaf() && last[root.Node.ID] == n.ID &&
			root.Type().Bytes() == n.Out[0].Bytes() && readOnce(n.In, root) {
			return n.Out[0].Bytes(), true
		}
	}
	return 0, false
}

// readOnce reports whether one operand alone is in a value's bytes.
func readOnce(in []graph.Value, root graph.Value) bool {
	times := 0
	for _, v := range in {
		if r, _ := v.Resolve(); r == root {
			times++
		}
	}
	return times == 1
}

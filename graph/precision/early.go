package precision

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// canHalve reports whether a node may go over to bfloat16.
func canHalve(n *graph.Node) bool {
	return !n.Leaf() && n.Kind == graph.KindCompute && n.Phase != graph.Update && !n.Exchanges()
}

// readRounded are values of f32 that only move elements of others, and that all who read them
// take rounded. To round the others first comes to the same bits, and then what is moved, such as
// the frames that a window of each repeats, is never there in f32.
func readRounded(g *graph.Graph, live []bool, fetches []graph.Value) map[graph.Value]bool {
	rounded := map[graph.Value]bool{}
	plain := map[graph.Value]bool{} // that are read as they are, or fetched
	for _, v := range fetches {
		plain[v] = true
	}
	read := map[graph.Value]bool{}
	for _, n := range slices.Backward(g.Nodes()) {
		if !live[n.ID] {
			continue
		}
		takes := canHalve(n) && ops.HalvingOf(n.Op).Operands
		if canHalve(n) && len(n.Out) == 1 && read[n.Value(0)] && !plain[n.Value(0)] &&
			movesOnly(n) {
			takes, rounded[n.Value(0)] = true, true
		}
		for _, v := range n.In {
			read[v] = true
			plain[v] = plain[v] || !takes
		}
	}
	return rounded
}

// movesOnly reports whether a node moves elements, and of no value that is larger, unless it is a
// view of that: weights are rounded as they are, not before they are cut.
func movesOnly(n *graph.Node) bool {
	_, view := n.Op.(graph.Viewer)
	types := make([]graph.Type, len(n.In))
	for i, v := range n.In {
		types[i] = v.Type()
		if types[i].DType != graph.F32 {
			continue
		}
		if v.Node.Kind == graph.KindVariable || !view && types[i].Elems() > n.Out[0].Elems() {
			return false
		}
		types[i].DType = graph.BF16
	}
	out, err := n.Op.Infer(types)
	return err == nil && n.Out[0].DType == graph.F32 && out[0].DType == graph.BF16 &&
		!slices.ContainsFunc(types, func(t graph.Type) bool { return t.DType == graph.F32 })
}

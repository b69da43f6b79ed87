package mesh

import (
	"math/bits"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// exchange is one of those that processes have among each other.
type exchange struct {
	name    string
	kind    ConversionKind
	sent    int64                 // bytes, the mean over processes
	awaits  *graph.Node           // nil: this process takes no part
	users   map[graph.NodeID]bool // of the first graph: that read what is made of it
	fetches map[graph.Value]bool  // of the first graph: that are what is made of it
}

// Traffic is what a process sends by exchanges of a kind.
type Traffic struct {
	Kind  ConversionKind
	Count int
	Bytes int64 // the mean over processes, see [SumSent]; of some rows, at most
}

// RingFrom is how many bytes a sum over processes must have to go round a ring: what has less
// goes by recursive doubling, in fewer steps.
const RingFrom = 64 << 10

// SumSent is how many bytes n processes send, all together, for a sum of so many that all of
// them get. Round a ring each but for one in n of them passes every process twice. By doubling,
// all that a process has goes to another one in every round: of 2^d processes there are d. Of
// more than that, those beyond give theirs to another one before, and are given the sum.
func SumSent(bytes int64, n int) int64 {
	if bytes >= RingFrom {
		return 2 * int64(n-1) * bytes
	}
	rounds := bits.Len(uint(n)) - 1
	most := 1 << rounds
	return bytes * int64(rounds*most+2*(n-most))
}

// onWire is how many bytes a process sends for a change of a value that is exchanged in so
// many pieces, the mean over processes; of some rows at most.
func (l *lowerer) onWire(c change, t graph.Type, have spread, pieces int64) int64 {
	if c.kind != Reduce {
		return l.wire(c, t, have)
	}
	divided, placed := l.spreads(c.m, have)
	parts := l.spec.Mesh.Cluster[c.m]
	all := SumSent(t.Bytes()/(divided*pieces), parts) * pieces
	return all / (int64(parts) * placed)
}

// exchanged are the kinds of conversions among processes.
var exchanged = [...]ConversionKind{Gather, Swap, Reduce, Scatter, Copy, Send, GatherSome,
	ScatterSome}

// Traffic is what a process sends in one step of a target with some fetches and updates of
// the first graph, by kind; it is the same for all processes.
func (r *Result) Traffic(fetches []graph.Value, updates []graph.NodeID) []Traffic {
	needed := r.needed(fetches, updates)
	var list []Traffic
	for _, kind := range exchanged {
		t := Traffic{Kind: kind}
		for i, x := range r.exchanges {
			if needed[i] && x.kind == kind {
				t.Count, t.Bytes = t.Count+1, t.Bytes+x.sent
			}
		}
		if t.Count > 0 {
			list = append(list, t)
		}
	}
	return list
}

// needed says which exchanges some process needs for fetches and updates of the first graph.
func (r *Result) needed(fetches []graph.Value, updates []graph.NodeID) []bool {
	if r.composed != nil {
		fetches, updates = r.composed.roots(fetches, updates)
	}
	roots := slices.Clone(updates)
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	live, needed := r.Propagation.graph.Ancestors(roots), make([]bool, len(r.exchanges))
	for i, x := range r.exchanges {
		for id := range x.users {
			needed[i] = needed[i] || live[id]
		}
		for _, v := range fetches {
			needed[i] = needed[i] || x.fetches[v]
		}
	}
	return needed
}

// Kept are updates, which write nothing, that a target with some fetches and updates of the
// first graph has besides, so that this process takes part in exchanges of which it does not
// need the results itself, as others do. Call it once a target, before the graph is planned.
func (r *Result) Kept(fetches []graph.Value, updates []graph.NodeID) (list []*graph.Node,
	err error) {
	var roots []graph.NodeID
	for _, v := range fetches {
		roots = append(roots, r.fetched[v].Node.ID)
	}
	for _, id := range updates {
		for _, n := range r.updates[id] {
			roots = append(roots, n.ID)
		}
	}
	live, needed := r.Graph.Ancestors(roots), r.needed(fetches, updates)
	for i, x := range slices.Backward(r.exchanges) {
		if !needed[i] || x.awaits == nil || live[x.awaits.ID] {
			continue
		}
		name := x.name + "/kept"
		for slices.ContainsFunc(r.Graph.Nodes(), func(n *graph.Node) bool {
			return n.Name == name
		}) {
			name += "+"
		}
		op := ops.Kept()
		n, err := r.Graph.Copy(&graph.Node{Name: name, Kind: graph.KindUpdate, Op: op,
			Pos: x.awaits.Pos, Phase: graph.Update}, op, x.awaits.Value(0))
		if err != nil {
			return nil, err
		}
		list, roots = append(list, n), append(roots, n.ID)
		live = r.Graph.Ancestors(roots)
	}
	return list, nil
}

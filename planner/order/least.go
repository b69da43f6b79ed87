package order

import (
	"cmp"
	"slices"
	"sort"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// none is no node.
const none graph.NodeID = -1

// byPeak visits, of what is ready, the operation with the least (peak after it, bytes
// that it leaves behind, creation). What takes nothing of the device goes at once.
//
// A peak is not raised by the operations that need no more than is missing to it, so
// they are told apart by what they leave behind: the least of a prefix of all
// operations by need, which a tree finds. Inputs count as if they were there from the
// start, so that the need of an operation is one of two: with a result in place or
// without.
func byPeak(p *program.Program, a *Account) []graph.NodeID {
	l := newLeast(p, a)
	l.enter(l.first(p))
	for {
		var id graph.NodeID
		if k := len(l.free); k > 0 {
			id, l.free = l.free[k-1], l.free[:k-1]
		} else if id = l.choose(); id == none {
			return l.order
		}
		l.take(id)
	}
}

// least is a walk with what is ready in a tree.
type least struct {
	*walk
	*state
	free   []graph.NodeID // ready, and takes nothing
	slots  []needs        // of every operation one or two, by need
	at     [][2]int32     // by node: its slots, without and with a result in place
	in     []int32        // by node: the slot in which it is ready, or -1
	leaves []int64        // by node that is ready: the bytes that it leaves behind
	last   []graph.NodeID // by value: the exclusive or of the readers to come
	tree   []graph.NodeID // by range of slots: the best that is ready there
}

// needs is what an operation needs while it runs, beyond what is live.
type needs struct {
	bytes   int64
	id      graph.NodeID
	inPlace int
}

func newLeast(p *program.Program, a *Account) *least {
	early := *a // with the inputs there from the start
	early.Input = make([]bool, len(a.Input))
	l := &least{walk: newWalk(p), state: early.begin(), at: make([][2]int32, p.Graph.Len()),
		in: make([]int32, p.Graph.Len()), leaves: make([]int64, p.Graph.Len()),
		last: make([]graph.NodeID, p.Values())}
	for v, input := range a.Input {
		if input {
			l.live += a.Bytes[v]
		}
	}
	l.peak = l.live
	for i, runs := range a.Runs {
		id := graph.NodeID(i)
		l.in[id] = -1
		if !runs {
			continue
		}
		need := a.Makes[id] + a.Scratch[id] + a.Staged[id]
		l.slots = append(l.slots, needs{need, id, 0})
		if over := a.Over[id]; len(over) > 0 { // all candidates have the same size
			l.slots = append(l.slots, needs{need - a.Bytes[over[0]], id, 1})
		}
		for _, v := range a.Reads[id] {
			l.last[v] ^= id
		}
	}
	slices.SortFunc(l.slots, func(x, y needs) int {
		return cmp.Or(cmp.Compare(x.bytes, y.bytes), cmp.Compare(x.id, y.id))
	})
	for i, s := range l.slots {
		l.at[s.id][s.inPlace] = int32(i)
	}
	l.tree = make([]graph.NodeID, 2*len(l.slots))
	for i := range l.tree {
		l.tree[i] = none
	}
	return l
}

// enter notes what has become ready.
func (l *least) enter(ready []graph.NodeID) {
	for _, id := range slices.Backward(ready) {
		if l.Runs[id] {
			l.place(id)
		} else {
			l.free = append(l.free, id)
		}
	}
}

// place puts an operation that is ready where it belongs now.
func (l *least) place(id graph.NodeID) {
	var need int64
	need, l.leaves[id] = l.need(id)
	way := 0
	if need < l.Makes[id]+l.Scratch[id]+l.Staged[id] {
		way = 1
	}
	if at := l.at[id][way]; at != l.in[id] {
		l.remove(id)
		l.in[id] = at
	}
	l.set(l.in[id], id)
}

// remove takes an operation out of the tree, if it is there.
func (l *least) remove(id graph.NodeID) {
	if l.in[id] >= 0 {
		l.set(l.in[id], none)
		l.in[id] = -1
	}
}

// set changes what is in a slot.
func (l *least) set(slot int32, id graph.NodeID) {
	i := int(slot) + len(l.slots)
	for l.tree[i] = id; i > 1; i /= 2 {
		l.tree[i/2] = l.better(l.tree[i], l.tree[i^1])
	}
}

// better is the operation that leaves fewer bytes behind, or was created first.
func (l *least) better(x, y graph.NodeID) graph.NodeID {
	switch {
	case x == none:
		return y
	case y == none || l.leaves[x] < l.leaves[y]:
		return x
	case l.leaves[x] == l.leaves[y]:
		return min(x, y)
	}
	return y
}

// best is the best operation in the slots from a to before b.
func (l *least) best(a, b int) graph.NodeID {
	best := none
	for a, b = a+len(l.slots), b+len(l.slots); a < b; a, b = a/2, b/2 {
		if a%2 == 1 {
			best = l.better(best, l.tree[a])
			a++
		}
		if b%2 == 1 {
			b--
			best = l.better(best, l.tree[b])
		}
	}
	return best
}

// choose is the operation to visit next, or none.
func (l *least) choose() graph.NodeID {
	room := l.peak - l.live
	fit := l.upTo(room)
	if id := l.best(0, fit); id != none || fit == len(l.slots) {
		return id
	}
	first := sort.Search(len(l.slots)-fit, func(k int) bool {
		return l.best(fit, fit+k+1) != none
	})
	if fit+first == len(l.slots) {
		return none
	}
	return l.best(fit, l.upTo(l.slots[fit+first].bytes))
}

// upTo is the number of slots that need no more than so many bytes.
func (l *least) upTo(bytes int64) int {
	return sort.Search(len(l.slots), func(i int) bool { return l.slots[i].bytes > bytes })
}

// take visits an operation, and looks again at those that are now the only readers to
// come of a value.
func (l *least) take(id graph.NodeID) {
	if l.Runs[id] {
		l.remove(id)
		l.run(id)
		for _, v := range l.Reads[id] {
			l.last[v] ^= id
			if l.left[v] == 1 && l.in[l.last[v]] >= 0 {
				l.place(l.last[v])
			}
		}
	}
	l.visit(id)
	l.enter(l.walk.ready)
}

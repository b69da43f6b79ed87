package order

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// window is a stretch of at most 64 operations of an order. Sets of them are bits.
type window struct {
	*Account
	succ  graph.Adjacency
	local []int8  // by node: its number in the stretch, or -1
	value []int32 // by value: its index in values, or -1

	nodes  []graph.NodeID
	before []uint64 // by number: what must be executed first
	values []resident
	reads  [][]int32 // by number: indices in values
	over   [][]int32
}

// resident is a value that operations of the stretch read.
type resident struct {
	v       int32
	bytes   int64
	readers uint64 // in the stretch
	after   bool   // it has readers after the stretch
	feeds   bool   // an input that none has read before the stretch
}

func newWindow(p *program.Program, a *Account) *window {
	w := &window{Account: a, succ: p.Successors(), local: make([]int8, p.Graph.Len()),
		value: make([]int32, p.Values())}
	for i := range w.local {
		w.local[i] = -1
	}
	for i := range w.value {
		w.value[i] = -1
	}
	return w
}

// open takes up the operations that come next at a state of the load.
func (w *window) open(s *state, nodes []graph.NodeID) {
	w.nodes = append(w.nodes[:0], nodes...)
	w.before = append(w.before[:0], make([]uint64, len(nodes))...)
	w.values, w.reads, w.over = w.values[:0], w.reads[:0], w.over[:0]
	for i, id := range nodes {
		w.local[id] = int8(i)
	}
	for i, id := range nodes {
		for _, next := range w.succ.Of(id) {
			if k := w.local[next]; k >= 0 {
				w.before[k] |= 1 << i
			}
		}
		w.reads = append(w.reads, nil)
		for _, v := range w.Reads[id] {
			w.reads[i] = append(w.reads[i], w.see(s, v))
			w.values[w.value[v]].readers |= 1 << i
		}
		w.over = append(w.over, nil)
		for _, v := range w.Over[id] {
			w.over[i] = append(w.over[i], w.value[v])
		}
	}
	for i := range w.values {
		r := &w.values[i]
		r.after = int(s.left[r.v]) > bits.OnesCount64(r.readers)
	}
}

// see is the index of a value in the stretch.
func (w *window) see(s *state, v int32) int32 {
	if w.value[v] < 0 {
		w.value[v] = int32(len(w.values))
		w.values = append(w.values, resident{v: v, bytes: w.Bytes[v],
			feeds: w.Input[v] && s.left[v] == s.Readers[v]})
	}
	return w.value[v]
}

// close forgets the stretch.
func (w *window) close() {
	for _, id := range w.nodes {
		w.local[id] = -1
	}
	for _, r := range w.values {
		w.value[r.v] = -1
	}
}

// partial is an order of some operations of the stretch.
type partial struct {
	done       uint64
	live, peak int64 // bytes beyond those at the start of the stretch
	area       int64 // sum over the operations of what is live while they run
	last       int8  // the operation executed last
	from       int32 // the partial order before it
}

// better orders those of the same set; of others, the ones to go on with come first.
func (x partial) better(y partial) int {
	switch {
	case x.peak != y.peak:
		return cmp.Compare(x.peak, y.peak)
	case x.live != y.live:
		return cmp.Compare(x.live, y.live)
	case x.area != y.area:
		return cmp.Compare(x.area, y.area)
	}
	return cmp.Or(cmp.Compare(x.done, y.done), cmp.Compare(x.last, y.last),
		cmp.Compare(x.from, y.from))
}

// after is the partial order x, the from-th of its level, with operation i behind it.
func (w *window) after(x partial, i int, from int) partial {
	id := w.nodes[i]
	x.last, x.from = int8(i), int32(from)
	if w.Runs[id] {
		need, leaves := w.Makes[id]+w.Scratch[id]+w.Staged[id], w.Keeps[id]
		for _, k := range w.reads[i] {
			r := &w.values[k]
			if r.feeds && r.readers&x.done == 0 {
				need += r.bytes
				leaves += r.bytes
			}
			if r.dies(x.done, i) {
				leaves -= r.bytes
			}
		}
		for _, k := range w.over[i] {
			if w.values[k].dies(x.done, i) {
				need -= w.values[k].bytes
				break
			}
		}
		x.peak = max(x.peak, x.live+need)
		x.area += x.live + need
		x.live += leaves
	}
	x.done |= 1 << i
	return x
}

// dies reports whether operation i is the last reader if those done have run.
func (r *resident) dies(done uint64, i int) bool {
	return !r.after && r.readers&^done == 1<<i
}

// search finds a better order of the stretch, with less peak or, with the same, less
// area; nil if it finds none.
func (w *window) search(width int) []graph.NodeID {
	now := partial{}
	for i := range w.nodes {
		now = w.after(now, i, 0)
	}
	levels := [][]partial{{{}}}
	for k := range w.nodes {
		next := w.expand(levels[k], now.peak)
		if len(next) == 0 {
			return nil
		}
		levels = append(levels, prune(next, width))
	}
	x := levels[len(w.nodes)][0]
	if cmp.Or(cmp.Compare(x.peak, now.peak), cmp.Compare(x.area, now.area)) >= 0 {
		return nil
	}
	order := make([]graph.NodeID, len(w.nodes))
	for k := len(w.nodes); k > 0; k-- {
		order[k-1] = w.nodes[x.last]
		x = levels[k-1][x.from]
	}
	return order
}

// expand lists the partial orders with one operation more, but for those whose peak is
// above a limit. An operation that takes nothing goes alone, as soon as it is ready.
func (w *window) expand(level []partial, limit int64) []partial {
	var out []partial
	for from, x := range level {
		at := len(out)
		for i, id := range w.nodes {
			if x.done>>i&1 == 1 || w.before[i]&^x.done != 0 {
				continue
			}
			y := w.after(x, i, from)
			if !w.Runs[id] {
				out = append(out[:at], y)
				break
			}
			if y.peak <= limit {
				out = append(out, y)
			}
		}
	}
	return out
}

// prune keeps the best of those of the same set, and the best sets: these by set if all
// are kept, else the best first. Of a level's hundreds only so many are ever kept at once.
func prune(all []partial, width int) []partial {
	kept, lost := all[:0], false
	for _, x := range all {
		if len(kept) == width && x.better(kept[width-1]) > 0 {
			lost = lost || !has(kept, x.done)
			continue
		}
		same := slices.IndexFunc(kept, func(y partial) bool { return y.done == x.done })
		switch {
		case same >= 0 && kept[same].better(x) <= 0:
			continue
		case same >= 0:
			kept = slices.Delete(kept, same, same+1)
		case len(kept) == width:
			kept, lost = kept[:width-1], true
		}
		at := len(kept)
		for kept = append(kept, x); at > 0 && x.better(kept[at-1]) < 0; at-- {
			kept[at] = kept[at-1]
		}
		kept[at] = x
	}
	if !lost {
		slices.SortFunc(kept, func(x, y partial) int { return cmp.Compare(x.done, y.done) })
	}
	return kept
}

// has reports whether a set is among some.
func has(list []partial, done uint64) bool {
	return slices.ContainsFunc(list, func(x partial) bool { return x.done == done })
}

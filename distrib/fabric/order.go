package fabric

import (
	"container/heap"
	"math"
	"slices"
)

// picker orders a batch's updates (algorithm 2).
type picker struct {
	b    *Batch
	n    *Network
	last []int   // the last position that each update may have, from 1
	wait arrival // updates that are neither ordered nor dropped, by when they would arrive
	due  []int   // their last positions, sorted

	least []float64 // bytes of any update's components
}

// order is the order of a batch's updates, and which are dropped, by index. The network is one
// for itself: it is left with what the order has reserved.
func order(b *Batch, n *Network) (kept, dropped []int) {
	p := &picker{b: b, n: n, last: make([]int, len(b.Updates))}
	for i := range b.Updates {
		p.last[i] = b.latest(&b.Updates[i])
		p.wait = append(p.wait, arriving{i, b.finish(n, &b.Updates[i])})
		p.due = append(p.due, p.last[i])
	}
	slices.Sort(p.due)
	heap.Init(&p.wait)
	p.least = b.least()
	for len(p.wait) > 0 {
		position := len(kept) + 1
		dropped = append(dropped, p.expire(position)...)
		if len(p.wait) == 0 {
			break
		}
		i, forced := p.pick(position)
		m := n.mark()
		end := b.reserve(n, &b.Updates[i])
		if math.IsInf(end, 1) || forced && p.overtaken(position+1, end) {
			n.back(m)
			dropped = append(dropped, i)
			continue
		}
		kept = append(kept, i)
	}
	return kept, dropped
}

// latest is the last position of a batch at which an update's delay is within the bound.
func (b *Batch) latest(u *Update) int {
	if b.MaxDelay < 0 {
		return len(b.Updates)
	}
	return int(min(u.Version+b.MaxDelay-b.Version+1, int64(len(b.Updates))))
}

// least are the bytes of the smallest components, one a server.
func (b *Batch) least() []float64 {
	least := make([]float64, len(b.Servers))
	for j := range least {
		least[j] = math.Inf(1)
		for _, u := range b.Updates {
			least[j] = min(least[j], u.Bytes[j])
		}
	}
	return least
}

// expire takes out those that cannot be in time any more.
func (p *picker) expire(position int) (gone []int) {
	if len(p.due) == 0 || p.due[0] >= position {
		return nil
	}
	for _, a := range slices.Clone(p.wait) {
		if p.last[a.update] < position {
			p.remove(a.update)
			gone = append(gone, a.update)
		}
	}
	slices.Sort(gone)
	return gone
}

// tight is the end of the first prefix of positions, from this one on, that has no place for
// anybody but those who must be in it; 0 if there is none.
func (p *picker) tight(position int) int {
	for i, last := range p.due {
		if (i+1 == len(p.due) || p.due[i+1] != last) && i+1 >= last-position+1 {
			return last
		}
	}
	return 0
}

// pick takes the update of a position out: the first to arrive, of those that must be in the first
// tight prefix if there is one. It reports whether that keeps an earlier one from the position.
func (p *picker) pick(position int) (update int, forced bool) {
	end := p.tight(position)
	first := p.first()
	if end == 0 || p.last[first] <= end {
		p.remove(first)
		return first, false
	}
	update = p.among(end).update
	p.remove(update)
	return update, true
}

// first is who would arrive first. What was reserved since a time was counted can only make it
// later, so that one whose time is still right, and that is the least, is the first; and so is one
// that only the servers' links hold up, which hold up all others as long.
func (p *picker) first() int {
	floor := 0.0
	for j, bytes := range p.least {
		floor = max(floor, p.n.drain(p.b.Servers[j], 0, bytes))
	}
	for {
		top := &p.wait[0]
		at := p.b.finish(p.n, &p.b.Updates[top.update])
		if at == top.at || at == floor {
			return top.update
		}
		top.at = at
		heap.Fix(&p.wait, 0)
	}
}

// among is who would arrive first, of those with a last position up to a limit. It keeps no time
// that it counts: what is reserved now may be given back.
func (p *picker) among(limit int) arriving {
	best := arriving{-1, math.Inf(1)}
	for _, a := range p.wait {
		if p.last[a.update] > limit || best.update >= 0 && !a.before(best) {
			continue
		}
		a.at = p.b.finish(p.n, &p.b.Updates[a.update])
		if best.update < 0 || a.before(best) {
			best = a
		}
	}
	return best
}

// overtaken reports whether the next update would arrive before this one.
func (p *picker) overtaken(position int, end float64) bool {
	if len(p.wait) == 0 {
		return false
	}
	next := p.among(math.MaxInt)
	if t := p.tight(position); t != 0 && p.last[next.update] > t {
		next = p.among(t)
	}
	return next.at < end
}

func (p *picker) remove(update int) {
	for i := range p.wait {
		if p.wait[i].update == update {
			heap.Remove(&p.wait, i)
			break
		}
	}
	at, _ := slices.BinarySearch(p.due, p.last[update])
	p.due = slices.Delete(p.due, at, at+1)
}

// arriving is an update and when it would arrive, or that it would not before.
type arriving struct {
	update int
	at     float64
}

// before orders by time, and the same time by number.
func (a arriving) before(b arriving) bool {
	return a.at < b.at || a.at == b.at && a.update < b.update
}

// arrival is a heap of them.
type arrival []arriving

func (a arrival) Len() int           { return len(a) }
func (a arrival) Less(i, j int) bool { return a[i].before(a[j]) }
func (a arrival) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrival) Push(x any)        { *a = append(*a, x.(arriving)) }
func (a *arrival) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}

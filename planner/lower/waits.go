package lower

import (
	"slices"

	"github.com/google/btree"

	"github.com/gomem/gomem/plan"
)

// AddWaits gives every step the waits that order it after the steps on other
// streams that it conflicts with: those that wrote what it reads, those that
// read or wrote what it writes, those that touched the addresses of a slot
// before it was this slot, all of the partitions before the plan's window, and, of a plan that
// gathers, an await after the sends before it. A wait that follows from earlier ones is left
// out.
func AddWaits(p *plan.Plan) {
	w := &waiter{
		plan: p, streams: len(p.Streams),
		slots: make([]accesses, len(p.Slots)),
		clock: make([]int, len(p.Steps)*len(p.Streams)),
		known: make([][]int, len(p.Streams)),
		need:  make([]int, len(p.Streams)),
	}
	for s := range w.known {
		w.known[s] = make([]int, w.streams)
	}
	previous := previousOwners(p.Slots)
	past := make([]int, w.streams) // by stream: its last step of partitions that must be done
	first := 0                     // the first step that is not of these
	sent := 0                      // the last send, counted from one
	for i, step := range p.Steps {
		for ; p.Window > 0 && p.Steps[first].Part <= step.Part-p.Window; first++ {
			past[p.Steps[first].Stream] = first + 1
		}
		copy(w.need, past)
		plan.Each(step.Do, func(id plan.SlotID, write bool) {
			w.conflicts(id, write, previous[id])
		})
		switch step.Do.(type) {
		case plan.Send:
			sent = i + 1
		case plan.Await:
			if p.Gathers && sent > 0 {
				s := p.Steps[sent-1].Stream
				w.need[s] = max(w.need[s], sent)
			}
		}
		w.settle(i)
		plan.Each(step.Do, func(id plan.SlotID, write bool) {
			w.slots[id].add(i, step.Stream, write, w.streams)
		})
	}
}

// waiter finds waits. Steps are counted from one where zero means none.
type waiter struct {
	plan    *plan.Plan
	streams int
	slots   []accesses
	clock   []int   // by step and stream: the last step known to be done at its start
	known   [][]int // by stream: the same, for its latest step
	need    []int   // by stream: the last step that the present one must wait for
}

// accesses are the steps that touched a slot, by stream, counted from one.
type accesses struct {
	writer       int
	writerStream plan.StreamID
	readers      []int // since the last write
}

func (a *accesses) add(step int, stream plan.StreamID, write bool, streams int) {
	if write {
		a.writer, a.writerStream = step+1, stream
		clear(a.readers)
		return
	}
	if a.readers == nil {
		a.readers = make([]int, streams)
	}
	a.readers[stream] = step + 1
}

// conflicts raises what must be waited for before a slot is touched.
func (w *waiter) conflicts(id plan.SlotID, write bool, before []plan.SlotID) {
	a := &w.slots[id]
	if a.writer == 0 && a.readers == nil {
		for _, old := range before {
			w.after(&w.slots[old], true)
		}
	}
	w.after(a, write)
}

func (w *waiter) after(a *accesses, write bool) {
	if a.writer > 0 {
		w.need[a.writerStream] = max(w.need[a.writerStream], a.writer)
	}
	if write {
		for s, r := range a.readers {
			w.need[s] = max(w.need[s], r)
		}
	}
}

// settle turns needs into waits, the latest first, since it implies most.
func (w *waiter) settle(step int) {
	own := w.plan.Steps[step].Stream
	known := w.known[own]
	for {
		latest := -1
		for s, n := range w.need {
			if plan.StreamID(s) != own && n > known[s] && (latest < 0 || n > w.need[latest]) {
				latest = s
			}
		}
		if latest < 0 {
			break
		}
		wait := w.need[latest] - 1
		w.plan.Steps[step].Wait = append(w.plan.Steps[step].Wait, wait)
		known[latest] = wait + 1
		for s, n := range w.clock[wait*w.streams : (wait+1)*w.streams] {
			known[s] = max(known[s], n)
		}
	}
	slices.Sort(w.plan.Steps[step].Wait)
	copy(w.clock[step*w.streams:], known)
	known[own] = step + 1
}

// previousOwners lists, for every slot, the slots that had some of its addresses
// last before it.
func previousOwners(slots []plan.Slot) [][]plan.SlotID {
	out := make([][]plan.SlotID, len(slots))
	byStart := make([]plan.SlotID, 0, len(slots))
	for i := range slots {
		if !slots[i].Fixed && slots[i].Bytes > 0 {
			byStart = append(byStart, plan.SlotID(i))
		}
	}
	slices.SortStableFunc(byStart, func(a, b plan.SlotID) int {
		return slots[a].From - slots[b].From
	})
	var spaces []tenancy
	for _, id := range byStart {
		for int(slots[id].Space) >= len(spaces) {
			spaces = append(spaces, newTenancy(len(slots)))
		}
		out[id] = spaces[slots[id].Space].evict(slots[id], id)
	}
	return out
}

// tenancy knows who had the addresses of a space last.
type tenancy struct {
	tenants *btree.BTreeG[tenant] // by end; they do not overlap
	evicter []plan.SlotID         // by slot: the latest that took addresses from it, or NoSlot
	gone    []tenant              // to be used again
}

// tenant is the last slot to have the addresses from start to end.
type tenant struct {
	start, end int64
	slot       plan.SlotID
}

func newTenancy(slots int) tenancy {
	return tenancy{
		tenants: btree.NewG(32, func(a, b tenant) bool { return a.end < b.end }),
		evicter: slices.Repeat([]plan.SlotID{plan.NoSlot}, slots),
	}
}

// evict enters a slot and returns those whose addresses it takes.
func (t *tenancy) evict(s plan.Slot, id plan.SlotID) []plan.SlotID {
	lo, hi := s.Off, s.Off+s.Bytes
	t.gone = t.gone[:0]
	t.tenants.AscendGreaterOrEqual(tenant{end: lo + 1}, func(old tenant) bool {
		if old.start >= hi {
			return false
		}
		t.gone = append(t.gone, old)
		return true
	})
	var out []plan.SlotID
	for _, old := range t.gone {
		t.tenants.Delete(old)
		if old.start < lo {
			t.tenants.ReplaceOrInsert(tenant{old.start, lo, old.slot})
		}
		if old.end > hi {
			t.tenants.ReplaceOrInsert(tenant{hi, old.end, old.slot})
		}
		if t.evicter[old.slot] != id {
			t.evicter[old.slot] = id
			out = append(out, old.slot)
		}
	}
	t.tenants.ReplaceOrInsert(tenant{lo, hi, id})
	return out
}

package plan

import "github.com/google/btree"

// exclusive proves that no two live slots overlap, and that steps that touch
// the same bytes are ordered if one of them writes.
//
// It replays the steps over a map from addresses to the slot that had them
// last. When a slot becomes live it takes its addresses from earlier slots,
// which must be dead, and every step that touched those must be sure to be done
// before the first step that touches the new one.
func (v *verifier) exclusive() error {
	o := &occupancy{v: v, spaces: make([]*btree.BTreeG[segment], len(v.plan.Spaces)),
		use: make([]usage, len(v.plan.Slots))}
	for i := range o.spaces {
		o.spaces[i] = btree.NewG(32, func(a, b segment) bool { return a.lo < b.lo })
	}
	order := v.byStart()
	for i := range max(1, len(v.plan.Steps)) {
		for ; len(order) > 0 && v.plan.Slots[order[0]].From <= i; order = order[1:] {
			if err := o.occupy(order[0], i); err != nil {
				return err
			}
		}
		if i == len(v.plan.Steps) { // there are none, but variables
			break
		}
		if err := o.touch(i, v.plan.Steps[i].Do); err != nil {
			return err
		}
	}
	return nil
}

// byStart lists the slots in the order in which they become live, fixed ones
// before others.
func (v *verifier) byStart() []SlotID {
	next := make([]int, len(v.plan.Steps)+2) // by first step, fixed ones before all: how many
	at := func(s *Slot) int {
		if s.Fixed {
			return 0
		}
		return s.From + 1
	}
	for i := range v.plan.Slots {
		next[at(&v.plan.Slots[i])]++
	}
	sum := 0
	for i, n := range next {
		next[i], sum = sum, sum+n
	}
	order := make([]SlotID, len(v.plan.Slots))
	for i := range v.plan.Slots {
		k := &next[at(&v.plan.Slots[i])]
		order[*k] = SlotID(i)
		*k++
	}
	return order
}

// segment is a range of addresses and the slot that had it last.
type segment struct {
	lo, hi int64
	slot   SlotID
}

// usage is what has touched a slot so far.
type usage struct {
	touched   bool
	writer    int   // last step that wrote it, or -1
	readers   []int // steps that read it since, the last of each stream
	inherited []SlotID
}

type occupancy struct {
	v      *verifier
	spaces []*btree.BTreeG[segment]
	use    []usage
}

// occupy gives a slot its addresses at the start of a step, if it has any.
func (o *occupancy) occupy(id SlotID, step int) error {
	s := o.v.plan.Slots[id]
	tree := o.spaces[s.Space]
	o.use[id].writer = -1
	if s.Bytes == 0 {
		return nil
	}
	lo, hi := s.Off, s.Off+s.Bytes
	var hit []segment
	tree.DescendLessOrEqual(segment{lo: lo}, func(g segment) bool {
		if g.hi > lo {
			hit = append(hit, g)
		}
		return false
	})
	tree.AscendRange(segment{lo: lo + 1}, segment{lo: hi}, func(g segment) bool {
		hit = append(hit, g)
		return true
	})
	for _, g := range hit {
		if old := o.v.plan.Slots[g.slot]; old.Fixed || old.To >= step {
			return o.v.fail(-1, s.Value, "slot %d overlaps slot %d (%s) at step %d", id, g.slot,
				old.Value, step)
		}
		o.use[id].inherited = append(o.use[id].inherited, g.slot)
		tree.Delete(g)
		if g.lo < lo {
			tree.ReplaceOrInsert(segment{g.lo, lo, g.slot})
		}
		if g.hi > hi {
			tree.ReplaceOrInsert(segment{hi, g.hi, g.slot})
		}
	}
	tree.ReplaceOrInsert(segment{lo, hi, id})
	return nil
}

// touch checks and records what a step does to slots.
func (o *occupancy) touch(step int, do Action) (err error) {
	Each(do, func(id SlotID, write bool) {
		if err != nil {
			return
		}
		u := &o.use[id]
		if !u.touched {
			u.touched = true
			for _, old := range u.inherited {
				if err = o.after(step, old, true); err != nil {
					return
				}
			}
		}
		if err = o.after(step, id, write); err == nil {
			o.record(step, id, write)
		}
	})
	return err
}

// after demands that a step comes after what conflicts with it on a slot.
func (o *occupancy) after(step int, id SlotID, write bool) error {
	u := o.use[id]
	if w := u.writer; w >= 0 && w != step && !o.v.before(w, step) {
		return o.v.fail(step, "", "does not wait for step %d, which writes slot %d (%s)", w, id,
			o.v.plan.Slots[id].Value)
	}
	for _, r := range u.readers {
		if write && r != step && !o.v.before(r, step) {
			return o.v.fail(step, "", "overwrites slot %d (%s) without waiting for its reader, "+
				"step %d", id, o.v.plan.Slots[id].Value, r)
		}
	}
	return nil
}

func (o *occupancy) record(step int, id SlotID, write bool) {
	u := &o.use[id]
	if write {
		u.writer, u.readers = step, u.readers[:0]
		return
	}
	for i, r := range u.readers {
		if o.v.plan.Steps[r].Stream == o.v.plan.Steps[step].Stream {
			u.readers[i] = step
			return
		}
	}
	u.readers = append(u.readers, step)
}

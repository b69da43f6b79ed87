package spill

import (
	"cmp"
	"slices"
)

// gap is between a use of an object and the next.
type gap struct {
	object, use int32
	worth       float64 // events saved for what it costs
}

// gaps lists the gaps that save something, the best first.
func (t *table) gaps() []gap {
	var list []gap
	for i := range t.objects {
		o := &t.objects[i]
		bytes := float64(max(1, t.s.Stays[o.stay].Bytes))
		price := (bytes + access) / bytes
		if !o.leaf {
			price *= 2 // it is stored, too
		}
		for k := 1; k < len(o.uses); k++ {
			if free := o.uses[k].at - o.uses[k-1].at - 1; free > 0 {
				list = append(list, gap{int32(i), int32(k - 1), float64(free) / price})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b gap) int { return cmp.Compare(b.worth, a.worth) })
	return list
}

// choose cuts gaps until the load is within a limit.
func (t *table) choose(limit int64) {
	if t.load.peak() <= limit {
		return
	}
	for _, g := range t.gaps() {
		o := &t.objects[g.object]
		from, to := o.uses[g.use].at+1, o.uses[g.use+1].at-1
		if !o.uses[g.use].cut && t.load.within(from, to) > limit {
			t.cut(o, int(g.use))
		}
		if t.load.peak() <= limit {
			return
		}
	}
}

// cut moves an object to the disk after a use, until the next.
func (t *table) cut(o *object, k int) {
	first, last := o.around(k)
	from, to := o.uses[first].at, o.until(last)
	t.load.add(from, to, -t.bytes(o, first, last))
	o.uses[k].cut = true
	t.load.add(from, o.uses[k].at, t.bytes(o, first, k))
	t.load.add(o.uses[k+1].at, to, t.bytes(o, k+1, last))
}

// list makes the visits of all objects.
func (t *table) list() {
	for i := range t.objects {
		o := &t.objects[i]
		for first := 0; first < len(o.uses); {
			_, last := o.around(first)
			v := visit{object: int32(i), first: int32(first), last: int32(last),
				from: o.uses[first].at, to: o.until(last)}
			v.loads = (first > 0 || o.leaf) && !o.uses[first].fills
			for _, u := range o.uses[first : last+1] {
				v.stores = v.stores || o.leaf && u.writes
			}
			v.stores = v.stores || !o.leaf && first == 0 && last < len(o.uses)-1
			t.visits = append(t.visits, v)
			first = last + 1
		}
	}
}

// moves reports whether anything is on the disk.
func (t *table) moves() bool {
	return slices.ContainsFunc(t.visits, func(v visit) bool { return v.loads || v.stores }) ||
		slices.ContainsFunc(t.objects, func(o object) bool { return o.leaf })
}

// ends reports whether something leaves the host's memory sooner than in the schedule.
func (t *table) ends() bool {
	return slices.ContainsFunc(t.objects, func(o object) bool {
		return len(o.uses) > 0 && o.end < t.s.Stays[o.stay].To
	})
}

// spread has loads come early and stores end late, in the order in which they are
// needed, as far as the load allows.
func (t *table) spread(limit int64, ahead int32) {
	order := make([]int32, len(t.visits))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(t.visits[a].from, t.visits[b].from)
	})
	last := int32(max(0, len(t.s.Events)-1))
	for _, k := range order {
		v := &t.visits[k]
		bytes := t.bytes(&t.objects[v.object], int(v.first), int(v.last))
		if v.loads {
			earliest := int32(0)
			if v.first > 0 {
				earliest = t.objects[v.object].uses[v.first-1].at + 1
			}
			v.from -= t.free(limit, ahead, bytes, func(d int32) (from, to int32) {
				return max(v.from-d, earliest), v.from - 1
			})
		}
		if v.stores {
			v.to += t.free(limit, ahead, bytes, func(d int32) (from, to int32) {
				return v.to + 1, min(v.to+d, last)
			})
		}
	}
}

// free takes bytes for the longest of some distances that the load has room for, and
// is how many events that came to.
func (t *table) free(limit int64, ahead int32, bytes int64,
	during func(d int32) (from, to int32)) int32 {
	for d := ahead; d > 0; d /= 2 {
		from, to := during(d)
		if from > to {
			return 0
		}
		if t.load.within(from, to)+bytes <= limit {
			t.load.add(from, to, bytes)
			return to - from + 1
		}
	}
	return 0
}

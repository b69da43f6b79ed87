package search

import "slices"

// plan places the copies towards the device in the sequence: as late as the need
// and the copies after it allow, with half a copy's time to spare, but after the
// last position before the need at which there is no room for the bytes.
func (e *evaluator) plan() {
	e.order()
	e.latest()
	e.room.build(e.load[:len(e.seq)])
	e.drain()
	for k, i := range e.byNeed {
		e.place(i, e.begin[k])
	}
	e.issues()
}

// drain takes room for what is being copied to the host: until then, if nothing
// stalls, its bytes are not free.
func (e *evaluator) drain() {
	var out int64
	for p := range int32(len(e.seq)) {
		if e.repeated(p) {
			continue
		}
		o := &e.ops[e.seq[p]]
		for _, v := range o.out {
			if e.gone[v] {
				out = max(out, e.clock[p+1]) + e.values[v].out
				e.occupy(e.first[v], out)
			}
		}
		for _, v := range o.writes {
			if l := e.values[v].leaf; !e.atHome[l] {
				out = max(out, e.clock[p+1]) + e.leaves[l].out
				for j := e.ends.head[p]; j >= 0; j = e.ends.next[j] {
					if e.stays[j].value == v {
						e.occupy(j, out)
					}
				}
			}
		}
	}
}

// occupy takes room for a stay after its last position, until a time.
func (e *evaluator) occupy(j int32, until int64) {
	from := e.stays[j].last + 1
	to, _ := slices.BinarySearch(e.clock[:len(e.seq)], until)
	if int(from) < to {
		e.room.add(from, int32(to)-1, e.values[e.stays[j].value].bytes)
	}
}

// order lists the copied stays by need.
func (e *evaluator) order() {
	e.waiting.reset(len(e.seq), len(e.stays))
	e.before = sized(e.before, len(e.stays))
	value, last := int32(-1), int32(0)
	for i := range e.stays {
		y := &e.stays[i]
		e.before[i] = 0
		if y.value == value {
			e.before[i] = last + 1
		} else if va := &e.values[y.value]; va.brought {
			e.before[i] = e.start[va.producer+1]
		}
		value, last = y.value, y.last
	}
	for i := len(e.stays) - 1; i >= 0; i-- {
		if e.stays[i].copied {
			e.waiting.add(e.stays[i].first, int32(i))
		}
	}
	e.byNeed = e.waiting.all(e.byNeed[:0])
}

// all appends the items of all lists.
func (l *lists) all(to []int32) []int32 {
	for _, h := range l.head {
		for j := h; j >= 0; j = l.next[j] {
			to = append(to, j)
		}
	}
	return to
}

// switching is how much longer than its bytes a copy is taken to be, in
// nanoseconds.
const switching = 10_000

// latest works out when each copy must start at the latest, from the last to the
// first; begin is used to note it.
func (e *evaluator) latest() {
	e.begin = sized(e.begin, max(len(e.seq), len(e.byNeed)))
	next := int64(never)
	for k := len(e.byNeed) - 1; k >= 0; k-- {
		y := &e.stays[e.byNeed[k]]
		took := e.values[y.value].in + switching
		next = min(e.clock[y.first], next) - took
		e.begin[k] = next
	}
}

// place decides before which position a stay has its bytes.
func (e *evaluator) place(i int32, latest int64) {
	y := &e.stays[i]
	va := &e.values[y.value]
	at, _ := slices.BinarySearch(e.clock[:y.first], latest-va.in/2)
	q := max(int32(at)-1, e.before[i], 0)
	if q < y.first {
		if full := e.room.lastOver(q, y.first-1, e.budget.Device-va.bytes); full >= 0 {
			q = full + 1
		}
	}
	q = min(q, y.first)
	if q < y.first {
		e.room.add(q, y.first-1, va.bytes)
	}
	y.issue = q
}

// issues lists the copied stays by issue, and by need at the same position.
func (e *evaluator) issues() {
	e.issued.reset(len(e.seq), len(e.stays))
	for k := len(e.byNeed) - 1; k >= 0; k-- {
		i := e.byNeed[k]
		e.issued.add(e.stays[i].issue, i)
	}
	e.arrivals = e.issued.all(e.arrivals[:0])
}

// tree holds a number for every position, adds to ranges of them, and finds the
// last of a range above a limit, each in logarithmic time: a segment tree whose
// nodes keep the maximum below them, what was added to the node as a whole
// included.
type tree struct {
	n          int32
	top, added []int64
}

func (t *tree) build(a []int64) {
	t.n = 1
	for int(t.n) < len(a) {
		t.n *= 2
	}
	t.top, t.added = sized(t.top, int(2*t.n)), zeroed(t.added, int(2*t.n))
	copy(t.top[t.n:], a)
	for i := int(t.n) + len(a); i < len(t.top); i++ {
		t.top[i] = -never
	}
	for i := t.n - 1; i > 0; i-- {
		t.top[i] = max(t.top[2*i], t.top[2*i+1])
	}
}

// add adds x to positions l to r.
func (t *tree) add(l, r int32, x int64) { t.addBelow(1, 0, t.n-1, l, r, x) }

func (t *tree) addBelow(k, lo, hi, l, r int32, x int64) {
	if l <= lo && hi <= r {
		t.top[k] += x
		t.added[k] += x
		return
	}
	mid := (lo + hi) / 2
	if l <= mid {
		t.addBelow(2*k, lo, mid, l, r, x)
	}
	if r > mid {
		t.addBelow(2*k+1, mid+1, hi, l, r, x)
	}
	t.top[k] = max(t.top[2*k], t.top[2*k+1]) + t.added[k]
}

// lastOver is the last position from l to r whose number is above a limit, or -1.
func (t *tree) lastOver(l, r int32, limit int64) int32 {
	return t.overBelow(1, 0, t.n-1, l, r, limit)
}

func (t *tree) overBelow(k, lo, hi, l, r int32, limit int64) int32 {
	if hi < l || lo > r || t.top[k] <= limit {
		return -1
	}
	if lo == hi {
		return lo
	}
	mid := (lo + hi) / 2
	if at := t.overBelow(2*k+1, mid+1, hi, l, r, limit-t.added[k]); at >= 0 {
		return at
	}
	return t.overBelow(2*k, lo, mid, l, r, limit-t.added[k])
}

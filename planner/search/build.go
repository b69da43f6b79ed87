package search

import "slices"

// A position of the sequence of executions is known by its key: an operation and
// its anchor, which is the operation itself, or, if it is executed again, the one
// that it comes before. Keys in order are the sequence.
func keyOf(anchor, operation int32) int64 { return int64(anchor)<<32 | int64(operation) }

func anchor(key int64) int32    { return int32(key >> 32) }
func operation(key int64) int32 { return int32(key) }

// build works out the executions of a state, the stays of all values and how many
// bytes of the device they need.
func (e *evaluator) build(s *state) {
	e.count++
	e.settle(s)
	e.collect(s)
	e.repeat(s)
	e.sequence()
	e.cutStays(s)
	e.index()
	e.profile(s)
}

// hosted reports whether an operation runs on the host.
func (e *evaluator) hosted(s *state, o *op) bool {
	return o.group >= 0 && s.home[o.group] == onHost
}

// settle finds out which leaves are on the device.
func (e *evaluator) settle(s *state) {
	e.fixed = 0
	for g := range e.groups {
		if e.groups[g].hosted {
			s.home[g] = onHost
		}
	}
	for g := range e.groups {
		here := s.home[g] == resident
		for _, r := range e.groups[g].readers {
			here = here && s.home[r] != onHost
		}
		for _, l := range e.groups[g].leaves {
			e.atHome[l] = here && e.forced[l] >= 0 || e.forced[l] > 0
			if e.atHome[l] {
				e.fixed += e.leaves[l].bytes
			}
		}
	}
}

// collect lists the uses of all values by the operations that run on the device. Only what
// differs from the state before is listed anew: the values that the operations of groups
// touch which have moved, and those whose producers or readers were executed again.
func (e *evaluator) collect(s *state) {
	for _, v := range e.touched {
		e.uses[v], e.reread[v], e.dirty[v] = e.plain[v], false, false
	}
	e.touched = e.touched[:0]
	e.moves = false
	for g := range e.groups {
		if away := s.home[g] == onHost; away != e.away[g] {
			e.away[g], e.moves = away, true
			e.spoil(g)
		}
	}
	for _, v := range e.stale {
		e.list(v)
		e.spoilt[v] = false
	}
	e.stale = e.stale[:0]
}

// spoil notes the values that a group's operations touch, each once: all groups may read the
// same learning rate.
func (e *evaluator) spoil(group int) {
	for _, i := range e.groups[group].ops {
		for _, values := range [][]int32{e.ops[i].in, e.ops[i].out} {
			for _, v := range values {
				if !e.spoilt[v] {
					e.spoilt[v] = true
					e.stale = append(e.stale, v)
				}
			}
		}
	}
}

// list enters the uses of a value by the operations that run on the device, each once.
func (e *evaluator) list(v int32) {
	from, to := e.usersAt[v], e.usersAt[v+1]
	keys := e.keys[from:from:to]
	e.hostReads[v] = false
	for _, i := range e.users[from:to] {
		if g := e.ops[i].group; g < 0 || !e.away[g] {
			keys = append(keys, keyOf(i, i))
		} else if i != e.values[v].producer {
			e.hostReads[v] = true
		}
	}
	e.plain[v] = keys[:len(keys):len(keys)]
	e.uses[v] = e.plain[v]
}

// sorted are the keys of a value in order.
func (e *evaluator) sorted(v int32) []int64 {
	u := e.uses[v]
	if e.dirty[v] {
		slices.Sort(u)
		e.dirty[v] = false
	}
	return u
}

// repeat enters the executions that are repeated, from the last operation to the
// first, so that all readers of a result are known when its turn comes.
func (e *evaluator) repeat(s *state) {
	for _, b := range e.anchors {
		e.again[b] = e.again[b][:0]
		e.mark[b] = -1
	}
	e.anchors = e.anchors[:0]
	for v := len(s.act) - 1; v >= 0; v-- {
		if s.act[v] != recompute {
			continue
		}
		i := e.values[v].producer
		if i < 0 || e.ops[i].limit <= i {
			continue
		}
		o := &e.ops[i]
		e.fresh = e.fresh[:0]
		for _, w := range o.out {
			if s.act[w] == recompute {
				e.cuts(s, w, i)
			}
		}
		if len(e.fresh) > 0 {
			e.enter(s, i)
		}
		v = int(o.out[0]) // what one operation makes is numbered one after the other
	}
}

// cuts puts an operation before the ends of those gaps in which a result of it is
// away.
func (e *evaluator) cuts(s *state, v, i int32) {
	u := e.sorted(v)
	longest := e.longest(u, e.ops[i].limit)
	if longest < 0 {
		return
	}
	for g := 0; g+1 < len(u); g++ {
		b := anchor(u[g+1])
		if g != longest && !e.alsoCut(s, anchor(u[g]), b) || b > e.ops[i].limit ||
			e.mark[b] == i {
			continue
		}
		e.mark[b] = i
		if len(e.again[b]) == 0 {
			e.anchors = append(e.anchors, b)
		}
		e.again[b] = append(e.again[b], i)
		e.fresh = append(e.fresh, keyOf(b, i))
	}
}

// enter notes the uses by executions again of an operation.
func (e *evaluator) enter(s *state, i int32) {
	o := &e.ops[i]
	for _, w := range o.in {
		e.also(w)
	}
	for _, w := range o.out {
		if s.act[w] == recompute {
			e.also(w)
		}
	}
}

// also adds the fresh keys to those of a value, in memory of its own.
func (e *evaluator) also(w int32) {
	if !e.reread[w] {
		e.touched, e.reread[w] = append(e.touched, w), true
		e.own[w] = append(e.own[w][:0], e.plain[w]...)
	}
	e.own[w] = append(e.own[w], e.fresh...)
	e.uses[w], e.dirty[w] = e.own[w], true
}

// longest is the gap of a value that takes longest, of those that end no later
// than an operation: between use i and i+1. -1: there is none.
func (e *evaluator) longest(u []int64, limit int32) int {
	best, at := int64(0), -1
	for i := 0; i+1 < len(u); i++ {
		a, b := anchor(u[i]), anchor(u[i+1])
		if b > limit {
			break
		}
		if g := e.begins[b] - e.begins[a]; g > best && b > a+1 {
			best, at = g, i
		}
	}
	return at
}

// alsoCut reports whether a recomputed value is away between two operations that
// are not the ends of its longest gap.
func (e *evaluator) alsoCut(s *state, a, b int32) bool {
	return s.cut > 0 && b > a+1 &&
		e.begins[b]-e.begins[a] > s.cut*e.begins[len(e.ops)]/1000
}

// sequence lists the executions on the device, unless they are those of the state before.
func (e *evaluator) sequence() {
	if !e.moves && len(e.anchors) == 0 && e.straight {
		return
	}
	e.straight = len(e.anchors) == 0
	n := 0
	for _, b := range e.anchors {
		slices.Reverse(e.again[b])
		n += len(e.again[b])
	}
	n += len(e.ops)
	e.seq, e.key, e.clock = sized(e.seq, n), sized(e.key, n), sized(e.clock, n+1)
	at, now := int32(0), int64(0)
	put := func(key int64, i int32) {
		e.seq[at], e.key[at], e.clock[at] = i, key, now
		now += e.brief[i].time
		at++
	}
	for i := range int32(len(e.ops)) {
		e.start[i] = at
		for _, x := range e.again[i] {
			put(keyOf(i, x), x)
		}
		if g := e.brief[i].group; g < 0 || !e.away[g] {
			put(keyOf(i, i), i)
		}
	}
	e.start[len(e.ops)], e.clock[at] = at, now
	e.seq, e.key, e.clock = e.seq[:at], e.key[:at], e.clock[:at+1]
}

// position is where the execution of a key is.
func (e *evaluator) position(key int64) int32 {
	a, x := anchor(key), operation(key)
	if a == x {
		return e.start[a+1] - 1
	}
	j, _ := slices.BinarySearch(e.again[a], x)
	return e.start[a] + int32(j)
}

// repeated reports whether position p is not the operation's own.
func (e *evaluator) repeated(p int32) bool {
	return anchor(e.key[p]) != e.seq[p]
}

// cutStays cuts the uses of every value into stays.
func (e *evaluator) cutStays(s *state) {
	e.stays = e.stays[:0]
	for v := range e.values {
		u := e.sorted(int32(v))
		e.absent[v], e.gone[v] = false, false
		if len(u) == 0 {
			continue
		}
		if l := e.values[v].leaf; l >= 0 && e.atHome[l] {
			continue
		}
		e.cutValue(s, int32(v), u)
	}
}

func (e *evaluator) cutValue(s *state, v int32, u []int64) {
	va := &e.values[v]
	p := e.position(u[0])
	cur := stay{value: v, first: p, last: p, issue: p, copied: va.bound()}
	e.first[v] = int32(len(e.stays))
	if s.act[v] == keep { // most are
		cur.last = e.position(u[len(u)-1])
		u = u[:1]
	}
	for _, key := range u[1:] {
		p := e.position(key)
		away := p > cur.last+1 && (s.act[v] == shun ||
			s.act[v] == swap && e.long(s, va, cur.last+1, p))
		anew := p > cur.last && s.act[v] == recompute && operation(key) == va.producer
		if !away && !anew {
			cur.last = p
			continue
		}
		e.stays = append(e.stays, cur)
		cur = stay{value: v, first: p, last: p, issue: p, copied: away}
		e.absent[v] = e.absent[v] || away && !va.bound()
	}
	e.stays = append(e.stays, cur)
	e.gone[v] = !va.bound() && (va.fetched || e.hostReads[v] || e.absent[v])
}

// long reports whether a swapped value is away from position a to b. Copies back
// from short absences queue behind those for later needs.
func (e *evaluator) long(s *state, va *value, a, b int32) bool {
	return e.clock[b]-e.clock[a] > copies(va)+e.begins[len(e.ops)]>>s.slack
}

// copies is how long a gap must be for a value to be away in it.
func copies(va *value) int64 {
	if va.bound() {
		return va.in * 13 / 10
	}
	return (va.in + va.out) * 11 / 10
}

// index lists the stays by the positions at which they begin and end.
func (e *evaluator) index() {
	e.ends.reset(len(e.seq), len(e.stays))
	e.made.reset(len(e.seq), len(e.stays))
	for i := len(e.stays) - 1; i >= 0; i-- {
		y := &e.stays[i]
		e.ends.add(y.last, int32(i))
		if !y.copied {
			e.made.add(y.first, int32(i))
		}
	}
}

// profile adds up the bytes at every position: what is there, what is made, and
// what the operation needs besides.
func (e *evaluator) profile(s *state) {
	n := len(e.seq)
	e.load, e.need, e.over = zeroed(e.load, n+1), zeroed(e.need, n), sized(e.over, n)
	for i := range e.stays {
		y := &e.stays[i]
		b := e.bytes[y.value]
		e.load[y.first] += b
		e.load[y.last+1] -= b
		if !y.copied {
			e.need[y.first] += b
		}
	}
	now := e.fixed
	e.peak, e.peakAt = e.fixed, 0
	for p := range n {
		now += e.load[p]
		extra := e.extra(s, int32(p)) + e.spareAt(int32(p))
		e.load[p] = now + extra
		if e.load[p] > e.peak {
			e.peak, e.peakAt = e.load[p], int32(p)
		}
		e.need[p] += extra
	}
}

// extra is what an execution needs besides its stays: workspace, room for results
// that nobody wants again, less what it takes over.
func (e *evaluator) extra(s *state, p int32) int64 {
	i := e.seq[p]
	b, again := e.brief[i].scratch, e.repeated(p)
	e.over[p] = -1
	if !again && !e.brief[i].replaces {
		return b
	}
	o := &e.ops[i]
	if again {
		for _, v := range o.out {
			if s.act[v] != recompute {
				b += e.bytes[v]
			}
		}
	}
	e.over[p] = e.takenOver(s, o, p)
	if j := e.over[p]; j >= 0 {
		b -= e.bytes[e.stays[j].value]
	}
	return b
}

// takenOver is the stay whose bytes the first result of an execution takes over,
// or -1: one that ends with it and is not being copied.
func (e *evaluator) takenOver(s *state, o *op, p int32) int32 {
	if len(o.over) == 0 || e.repeated(p) && s.act[o.out[0]] != recompute {
		return -1
	}
	for _, v := range o.over {
		for j := e.ends.head[p]; j >= 0; j = e.ends.next[j] {
			if y := &e.stays[j]; y.value == v && (y.copied || y.first < p && !e.copying(j)) {
				return j
			}
		}
	}
	return -1
}

// copying reports whether a stay is the one that is copied to the host.
func (e *evaluator) copying(j int32) bool {
	y := &e.stays[j]
	return e.gone[y.value] && !e.repeated(y.first)
}

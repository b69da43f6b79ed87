package auto

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
	e.sequence(s)
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

// collect lists the uses of all values by the operations that run on the device.
func (e *evaluator) collect(s *state) {
	clear(e.dirty)
	clear(e.hostReads)
	for i := range e.uses {
		e.uses[i] = e.uses[i][:0]
	}
	for i := range e.ops {
		o := &e.ops[i]
		if e.hosted(s, o) {
			for _, v := range o.in {
				e.hostReads[v] = true
			}
			continue
		}
		key := keyOf(int32(i), int32(i))
		for _, v := range o.in {
			e.uses[v] = append(e.uses[v], key)
		}
		for _, v := range o.out {
			e.uses[v] = append(e.uses[v], key)
		}
	}
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
	for i := range e.again {
		e.again[i] = e.again[i][:0]
		e.mark[i] = -1
	}
	for i := int32(len(e.ops)) - 1; i >= 0; i-- {
		o := &e.ops[i]
		if o.limit <= i {
			continue
		}
		e.fresh = e.fresh[:0]
		for _, v := range o.out {
			if s.act[v] == recompute {
				e.cuts(s, v, i)
			}
		}
		if len(e.fresh) > 0 {
			e.enter(s, i)
		}
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
		e.again[b] = append(e.again[b], i)
		e.fresh = append(e.fresh, keyOf(b, i))
	}
}

// enter notes the uses by executions again of an operation.
func (e *evaluator) enter(s *state, i int32) {
	o := &e.ops[i]
	for _, w := range o.in {
		e.uses[w] = append(e.uses[w], e.fresh...)
		e.dirty[w] = true
	}
	for _, w := range o.out {
		if s.act[w] == recompute {
			e.uses[w] = append(e.uses[w], e.fresh...)
			e.dirty[w] = true
		}
	}
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

// sequence lists the executions on the device.
func (e *evaluator) sequence(s *state) {
	e.seq, e.key, e.clock = e.seq[:0], e.key[:0], e.clock[:0]
	now := int64(0)
	put := func(anchor int, i int32) {
		e.seq = append(e.seq, i)
		e.key = append(e.key, keyOf(int32(anchor), i))
		e.clock = append(e.clock, now)
		now += e.ops[i].time
	}
	for i := range e.ops {
		e.start[i] = int32(len(e.seq))
		slices.Reverse(e.again[i])
		for _, x := range e.again[i] {
			put(i, x)
		}
		if !e.hosted(s, &e.ops[i]) {
			put(i, int32(i))
		}
	}
	e.start[len(e.ops)] = int32(len(e.seq))
	e.clock = append(e.clock, now)
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
	e.load, e.need, e.over = zeroed(e.load, n+1), sized(e.need, n), sized(e.over, n)
	for i := range e.stays {
		y := &e.stays[i]
		b := e.values[y.value].bytes
		e.load[y.first] += b
		e.load[y.last+1] -= b
	}
	now := e.fixed
	e.peak, e.peakAt = e.fixed, 0
	for p := range n {
		now += e.load[p]
		extra := e.extra(s, int32(p))
		e.load[p] = now + extra
		if e.load[p] > e.peak {
			e.peak, e.peakAt = e.load[p], int32(p)
		}
		e.need[p] = extra
		for j := e.made.head[p]; j >= 0; j = e.made.next[j] {
			e.need[p] += e.values[e.stays[j].value].bytes
		}
	}
}

// extra is what an execution needs besides its stays: workspace, room for results
// that nobody wants again, less what it takes over.
func (e *evaluator) extra(s *state, p int32) int64 {
	o := &e.ops[e.seq[p]]
	b := o.scratch
	if e.repeated(p) {
		for _, v := range o.out {
			if s.act[v] != recompute {
				b += e.values[v].bytes
			}
		}
	}
	e.over[p] = e.takenOver(s, o, p)
	if j := e.over[p]; j >= 0 {
		b -= e.values[e.stays[j].value].bytes
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

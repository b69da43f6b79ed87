package search

import (
	"slices"
	"time"

	"github.com/gomem/gomem/planner/machine"
)

// heap is what will be free when, the earliest first.
type heap []freeing

type freeing struct{ at, bytes int64 }

func (h *heap) push(x freeing) {
	a := append(*h, x)
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 2
		if a[up].at <= x.at {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = x
	*h = a
}

func (h *heap) pop() freeing {
	a := *h
	top, last := a[0], a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	if len(a) == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= len(a) {
			break
		}
		if c+1 < len(a) && a[c+1].at < a[c].at {
			c++
		}
		if last.at <= a[c].at {
			break
		}
		a[i] = a[c]
		i = c
	}
	a[i] = last
	return top
}

// run is the state of a simulation: how far the engines have come, how many bytes
// are free, and when what was granted last became free.
type run struct {
	device, in, out int64
	free, mem       int64
	host            [awaits + 1]int64 // by side: since when it is idle
	peer            int64             // what is sent and awaited after one between devices begins
	next            int32             // the operations before it have run, if they are the host's
}

// simulate runs the sequence and returns how long it takes: an execution or copy
// starts when its engine, what it reads and its memory are there. Memory is granted
// in the order of the sequence. What was built must be within the budget. Engines that share a
// processor take no less than they work together. It ends as soon as it is seen that a limit is
// passed, and returns a time above that.
func (e *evaluator) simulate(s *state, limit int64) int64 {
	n := len(e.seq)
	e.begin, e.end = sized(e.begin, n), sized(e.end, n)
	e.copyIn, e.copyEnd = sized(e.copyIn, len(e.stays)), sized(e.copyEnd, len(e.stays))
	e.freed = sized(e.freed, len(e.stays))
	clear(e.outEnd)
	clear(e.backEnd)
	clear(e.staged)
	e.frees = e.frees[:0]
	e.moved, e.work = 0, machine.Work{}
	r := run{free: e.budget.Device - e.fixed}
	next := 0
	for p := range int32(n) {
		for ; next < len(e.arrivals) && e.stays[e.arrivals[next]].issue <= p; next++ {
			e.arrive(s, &r, e.arrivals[next])
		}
		e.execute(s, &r, p)
		e.depart(s, &r, p)
		e.release(&r, p)
		if least := r.device + e.clock[n] - e.clock[p+1]; least > limit {
			return least
		}
	}
	e.timeDev, e.timeIn, e.timeOut = r.device, r.in, r.out
	e.onHost(s, &r, int32(len(e.ops))-1)
	e.timeHst = slices.Max(r.host[:])
	e.took = max(r.device, r.in, r.out, e.timeHst, int64(e.work.Least(e.model)))
	return e.took
}

// grant takes bytes as soon as so many are free.
func (e *evaluator) grant(r *run, bytes int64) {
	for r.free < bytes {
		f := e.frees.pop()
		r.free += f.bytes
		r.mem = max(r.mem, f.at)
	}
	r.free -= bytes
}

// arrive copies a stay's value to the device.
func (e *evaluator) arrive(s *state, r *run, i int32) {
	v := e.stays[i].value
	va := &e.values[v]
	e.grant(r, va.bytes)
	start := max(r.in, r.mem, e.outEnd[v])
	if va.brought {
		e.onHost(s, r, va.producer)
		start = max(start, e.hostEnd[va.producer])
	}
	r.in = start + va.in
	e.copyIn[i], e.copyEnd[i] = start, r.in
	e.moved += va.bytes
	e.work.Copies += time.Duration(va.in)
	if va.leaf >= 0 {
		g := e.leaves[va.leaf].group
		e.staged[g] = max(e.staged[g], r.in)
	}
}

// execute runs the operation at a position. An exchange between devices comes after all sends
// before it, as on the other workers.
func (e *evaluator) execute(s *state, r *run, p int32) {
	start := r.device
	if i := e.seq[p]; e.ops[i].side == peers {
		e.onHost(s, r, i-1)
		start = max(start, r.host[sends])
	}
	if e.need[p] != 0 {
		e.grant(r, e.need[p])
		if e.need[p] > 0 {
			start = max(start, r.mem)
		}
	}
	for j := e.waiting.head[p]; j >= 0; j = e.waiting.next[j] {
		start = max(start, e.copyEnd[j])
	}
	took := e.ops[e.seq[p]].time
	r.device = start + took
	e.begin[p], e.end[p] = start, r.device
	if e.ops[e.seq[p]].side == peers {
		r.peer = start + 1
	} else {
		e.work.Device += time.Duration(took)
	}
}

// depart copies what an execution has made, and variables that it has updated, to
// the host.
func (e *evaluator) depart(s *state, r *run, p int32) {
	if e.repeated(p) {
		return
	}
	o := &e.ops[e.seq[p]]
	for _, v := range o.out {
		if e.gone[v] {
			r.out = max(r.out, e.end[p]) + e.values[v].out
			e.outEnd[v] = r.out
			e.moved += e.values[v].bytes
			e.work.Copies += time.Duration(e.values[v].out)
		}
	}
	for _, v := range o.writes {
		l := e.values[v].leaf
		if !e.atHome[l] {
			r.out = max(r.out, e.end[p]) + e.leaves[l].out
			e.backEnd[l] = r.out
			e.moved += e.leaves[l].bytes
			e.work.Copies += time.Duration(e.leaves[l].out)
		}
	}
}

// release frees what ends with an execution, once it is not being copied either.
func (e *evaluator) release(r *run, p int32) {
	end, over := e.end[p], e.over[p]
	for j := e.ends.head[p]; j >= 0; j = e.ends.next[j] {
		e.freed[j] = end
		if j != over {
			e.freed[j] = max(end, e.drained(j))
			e.frees.push(freeing{e.freed[j], e.values[e.stays[j].value].bytes})
		}
	}
	if b := e.beside(p); b > 0 {
		e.frees.push(freeing{end, b})
	}
}

// beside is the bytes that an execution needs beside those of stays.
func (e *evaluator) beside(p int32) int64 {
	b := e.need[p]
	for j := e.made.head[p]; j >= 0; j = e.made.next[j] {
		b -= e.values[e.stays[j].value].bytes
	}
	if j := e.over[p]; j >= 0 {
		b += e.values[e.stays[j].value].bytes
	}
	return b
}

// drained is when the copy that reads a stay is done, or 0.
func (e *evaluator) drained(j int32) int64 {
	y := &e.stays[j]
	va := &e.values[y.value]
	switch {
	case va.leaf >= 0:
		if e.ops[e.seq[y.last]].updates(y.value) {
			return e.backEnd[va.leaf]
		}
		return 0
	case !y.copied && e.copying(j):
		return e.outEnd[y.value]
	}
	return 0
}

// updates reports whether an operation updates a value.
func (o *op) updates(v int32) bool {
	for _, w := range o.writes {
		if w == v {
			return true
		}
	}
	return false
}

// onHost runs the operations of the host up to one, one after the other: each when what
// it reads has come, and when the copies that read the variables it writes are done. All
// operations of the device up to that one have run. Sends and awaits have engines of their
// own: a send follows the one before it, and an await all sends before it.
func (e *evaluator) onHost(s *state, r *run, last int32) {
	for ; r.next <= last; r.next++ {
		i := r.next
		o := &e.ops[i]
		if !e.hosted(s, o) {
			continue
		}
		at := r.host[o.side]
		switch o.side {
		case awaits:
			at = max(at, r.host[sends], r.peer)
		case sends:
			at = max(at, r.peer)
		}
		for _, v := range o.in {
			at = max(at, e.outEnd[v], e.madeOnHost(s, v))
		}
		for _, v := range o.writes {
			at = max(at, e.staged[e.leaves[e.values[v].leaf].group])
		}
		e.hostStart[i] = at
		e.hostEnd[i] = at + o.host
		if o.side == neither {
			e.work.Host += time.Duration(o.host)
		}
		r.host[o.side] = e.hostEnd[i]
		e.read(o, e.hostEnd[i])
	}
}

// madeOnHost is when a value is there that an operation of the host makes, or 0.
func (e *evaluator) madeOnHost(s *state, v int32) int64 {
	p := e.values[v].producer
	if p < 0 || !e.hosted(s, &e.ops[p]) {
		return 0
	}
	return e.hostEnd[p]
}

// read has updates of the variables that an exchange reads come after it.
func (e *evaluator) read(o *op, end int64) {
	if o.side == neither {
		return
	}
	for _, v := range o.in {
		if l := e.values[v].leaf; l >= 0 {
			g := e.leaves[l].group
			e.staged[g] = max(e.staged[g], end)
		}
	}
}

package search

import (
	"cmp"
	"slices"
)

// hostBound is at least what a simulated state needs of the host at once: all that
// it ever has there, at the same time.
func (e *evaluator) hostBound(s *state) int64 {
	sum, most := e.feeds, int64(0)
	for l := range e.leaves {
		if !e.atHome[l] {
			sum += e.leaves[l].bytes
		}
	}
	for i := range e.ops {
		o := &e.ops[i]
		hosted := e.hosted(s, o)
		for _, v := range o.out {
			if (hosted || e.gone[v]) && o.takes < 0 {
				sum += e.values[v].bytes
			}
		}
		if hosted {
			most = max(most, o.scratch)
		}
	}
	return sum + most
}

// load is bytes that are taken, or freed if negative, at times.
type load []change

type change struct{ at, bytes int64 }

// hold notes bytes that are taken during a time.
func (l *load) hold(from, to, bytes int64) {
	*l = append(*l, change{from, bytes}, change{to, -bytes})
}

// peak is the most bytes at once, beside others. What is free at a time can be
// taken at that time.
func (l load) peak(others int64) int64 {
	slices.SortFunc(l, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.bytes, b.bytes))
	})
	now, peak := others, others
	for _, c := range l {
		now += c.bytes
		peak = max(peak, now)
	}
	return peak
}

// devicePeak is the most bytes of the device that a simulated state takes at once.
func (e *evaluator) devicePeak() int64 {
	var l load
	for i := range e.stays {
		y := &e.stays[i]
		from, to := e.begin[y.first], e.freed[i]
		if y.copied {
			from = e.copyIn[i]
		}
		if e.over[y.last] == int32(i) {
			to = e.begin[y.last]
		}
		l.hold(from, to, e.values[y.value].bytes)
	}
	for p := range e.seq {
		if b := e.beside(int32(p)) - e.spareAt(int32(p)); b > 0 {
			l.hold(e.begin[p], e.end[p], b)
		}
	}
	return l.peak(e.fixed)
}

// hostPeak is the most bytes of the host that a simulated state needs at once, the
// inputs throughout.
func (e *evaluator) hostPeak(s *state) int64 {
	var changes load
	now := e.feeds
	for l := range e.leaves {
		if !e.atHome[l] {
			now += e.leaves[l].bytes
		}
	}
	until := e.lastOnHost(s)
	for i := range e.ops {
		o := &e.ops[i]
		hosted := e.hosted(s, o)
		for _, v := range o.out {
			switch b := e.values[v].bytes; {
			case o.takes >= 0: // within those of the operand
			case hosted:
				changes.hold(e.hostStart[i], until[v], b)
			case e.gone[v]:
				changes.hold(e.outEnd[v]-e.values[v].out, until[v], b)
			}
		}
		if hosted && o.scratch > 0 {
			changes.hold(e.hostStart[i], e.hostEnd[i], o.scratch)
		}
	}
	return changes.peak(now)
}

// lastOnHost is, by value, when its bytes on the host are read for the last time:
// at least when they are there, and never if the value is fetched.
func (e *evaluator) lastOnHost(s *state) []int64 {
	until := slices.Clone(e.outEnd)
	for i := range e.stays {
		if y := &e.stays[i]; y.copied {
			until[y.value] = max(until[y.value], e.copyEnd[i])
		}
	}
	for i := range e.ops {
		o := &e.ops[i]
		if !e.hosted(s, o) {
			continue
		}
		for _, v := range o.in {
			until[v] = max(until[v], e.hostEnd[i])
		}
		for _, v := range o.out {
			until[v] = max(until[v], e.hostEnd[i])
		}
	}
	for _, v := range e.fetches {
		until[v] = never
	}
	for i := len(e.ops) - 1; i >= 0; i-- {
		if o := &e.ops[i]; o.takes >= 0 {
			until[o.takes] = max(until[o.takes], until[o.out[0]])
		}
	}
	return until
}

package spill

import "math"

// load is the bytes of a memory that are taken at every event: a segment tree, whose
// nodes have the most below them.
type load struct {
	size int
	most []int64 // by node: the largest of its leaves, with what is added to the node
	more []int64 // by node: what is added to all of its leaves
}

// newLoad is the tree over the sums of changes, one an event.
func newLoad(changes []int64) *load {
	l := &load{size: 1}
	for l.size < len(changes) {
		l.size *= 2
	}
	l.most, l.more = make([]int64, 2*l.size), make([]int64, 2*l.size)
	var sum int64
	for i, c := range changes {
		sum += c
		l.most[l.size+i] = sum
	}
	for i := l.size - 1; i > 0; i-- {
		l.most[i] = max(l.most[2*i], l.most[2*i+1])
	}
	return l
}

// add adds bytes to the events from one to another.
func (l *load) add(from, to int32, bytes int64) {
	if bytes != 0 && from <= to {
		l.raise(1, 0, l.size-1, int(from), int(to), bytes)
	}
}

func (l *load) raise(node, low, high, from, to int, bytes int64) {
	if to < low || high < from {
		return
	}
	if from <= low && high <= to {
		l.most[node] += bytes
		l.more[node] += bytes
		return
	}
	middle := (low + high) / 2
	l.raise(2*node, low, middle, from, to, bytes)
	l.raise(2*node+1, middle+1, high, from, to, bytes)
	l.most[node] = max(l.most[2*node], l.most[2*node+1]) + l.more[node]
}

// peak is the most of all events.
func (l *load) peak() int64 { return l.most[1] }

// within is the most of the events from one to another; of none, less than anything.
func (l *load) within(from, to int32) int64 {
	return l.largest(1, 0, l.size-1, int(from), int(to))
}

func (l *load) largest(node, low, high, from, to int) int64 {
	if from > to || to < low || high < from {
		return math.MinInt64 / 2
	}
	if from <= low && high <= to {
		return l.most[node]
	}
	middle := (low + high) / 2
	return l.more[node] + max(l.largest(2*node, low, middle, from, to),
		l.largest(2*node+1, middle+1, high, from, to))
}

package arena

import "slices"

// shelf finds the lowest addresses that are free throughout a time. It is a tree over time
// whose nodes know which addresses are taken, not by whom: where memory is full that is a
// few spans, however many blocks there are. So to place a block takes about a logarithm of
// the number of times, where a look at all that it meets is hundreds or thousands of looks.
type shelf struct {
	leaves      int      // of the tree, one a time; the node k has the nodes 2k and 2k+1
	here, below [][]span // by node: what is taken throughout its time; and at some of it
	lists       [][]span // room for those in question
}

// newShelf is an empty one for times from 0 to, but without, a number.
func newShelf(times int) *shelf {
	s := &shelf{leaves: 1}
	for s.leaves < times {
		s.leaves *= 2
	}
	s.here, s.below = make([][]span, 2*s.leaves), make([][]span, 2*s.leaves)
	return s
}

// place takes the lowest addresses that are free from one time to another.
func (s *shelf) place(from, to int, size int64) int64 {
	s.lists = s.lists[:0]
	s.gather(1, 0, s.leaves-1, from, to)
	at := s.free(size)
	s.take(1, 0, s.leaves-1, from, to, span{at, at + size})
	return at
}

// gather finds the lists of what is taken at some time, below a node that is for first to
// last.
func (s *shelf) gather(node, first, last, from, to int) {
	list := s.here[node]
	inside := from <= first && last <= to
	if inside {
		list = s.below[node]
	}
	if len(list) > 0 {
		s.lists = append(s.lists, list)
	}
	if inside {
		return
	}
	middle := (first + last) / 2
	if from <= middle {
		s.gather(2*node, first, middle, from, to)
	}
	if to > middle {
		s.gather(2*node+1, middle+1, last, from, to)
	}
}

// free is the lowest address from which on so many bytes are in none of the lists. What is
// in the way of one shuts out all up to its end.
func (s *shelf) free(size int64) int64 {
	at := int64(0)
	for before := int64(-1); before < at; {
		before = at
		left := s.lists[:0]
		for _, list := range s.lists {
			n := 0
			for n < len(list) && list[n].lo < at+size {
				at = max(at, list[n].hi)
				n++
			}
			if n < len(list) {
				left = append(left, list[n:])
			}
		}
		s.lists = left
	}
	return at
}

// take notes that addresses are taken from one time to another.
func (s *shelf) take(node, first, last, from, to int, taken span) {
	s.below[node] = with(s.below[node], taken)
	if from <= first && last <= to {
		s.here[node] = with(s.here[node], taken)
		return
	}
	middle := (first + last) / 2
	if from <= middle {
		s.take(2*node, first, middle, from, to, taken)
	}
	if to > middle {
		s.take(2*node+1, middle+1, last, from, to, taken)
	}
}

// with is spans in order, none of which touches another, with one more.
func with(list []span, s span) []span {
	from, end := 0, len(list)
	for from < end { // by hand: packing does little else
		if middle := int(uint(from+end) / 2); list[middle].hi < s.lo {
			from = middle + 1
		} else {
			end = middle
		}
	}
	to := from
	for to < len(list) && list[to].lo <= s.hi {
		to++
	}
	if from == to {
		return slices.Insert(list, from, s)
	}
	list[from] = span{min(s.lo, list[from].lo), max(s.hi, list[to-1].hi)}
	if to == from+1 {
		return list
	}
	return slices.Delete(list, from+1, to)
}

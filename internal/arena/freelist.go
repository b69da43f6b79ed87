package arena

import "github.com/google/btree"

// freeList hands out addresses by best fit: the smallest gap that is large
// enough, the lowest of those. Above the last block in use memory has no end.
type freeList struct {
	bySize, byOffset *btree.BTreeG[span]
	top              int64
}

func newFreeList(base int64) *freeList {
	return &freeList{
		bySize: btree.NewG(16, func(a, b span) bool {
			if x, y := a.hi-a.lo, b.hi-b.lo; x != y {
				return x < y
			}
			return a.lo < b.lo
		}),
		byOffset: btree.NewG(16, func(a, b span) bool { return a.lo < b.lo }),
		top:      base,
	}
}

func (l *freeList) take(size int64) int64 {
	gap, ok := span{}, false
	l.bySize.AscendGreaterOrEqual(span{0, size}, func(s span) bool {
		gap, ok = s, true
		return false
	})
	if !ok {
		return l.extend(size)
	}
	l.remove(gap)
	if rest := (span{gap.lo + size, gap.hi}); rest.lo < rest.hi {
		l.insert(rest)
	}
	return gap.lo
}

// extend takes size bytes at the top, using a free gap that ends there.
func (l *freeList) extend(size int64) int64 {
	at := l.top
	if last, ok := l.byOffset.Max(); ok && last.hi == l.top {
		l.remove(last)
		at = last.lo
	}
	l.top = at + size
	return at
}

func (l *freeList) give(lo, size int64) {
	s := span{lo, lo + size}
	l.byOffset.DescendLessOrEqual(s, func(left span) bool {
		if left.hi == s.lo {
			s.lo = left.lo
		}
		return false
	})
	if s.lo < lo {
		l.remove(span{s.lo, lo})
	}
	if right, ok := l.byOffset.Get(span{lo: s.hi}); ok {
		l.remove(right)
		s.hi = right.hi
	}
	l.insert(s)
}

func (l *freeList) insert(s span) {
	l.bySize.ReplaceOrInsert(s)
	l.byOffset.ReplaceOrInsert(s)
}

func (l *freeList) remove(s span) {
	l.bySize.Delete(s)
	l.byOffset.Delete(s)
}

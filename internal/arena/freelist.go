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
	return l.cut(gap, gap.lo, size)
}

// after takes size bytes of the first gap from an address on that has as many, or of the first of
// all if there is none.
func (l *freeList) after(at, size int64) (off int64, ok bool) {
	var gap span
	l.byOffset.DescendLessOrEqual(span{lo: at}, func(s span) bool {
		gap, ok = s, s.hi-at >= size
		return false
	})
	if ok {
		return l.cut(gap, at, size), true
	}
	fits := func(s span) bool {
		gap, ok = s, s.hi-s.lo >= size
		return !ok
	}
	if l.byOffset.AscendGreaterOrEqual(span{lo: at}, fits); !ok {
		l.byOffset.AscendLessThan(span{lo: at}, fits)
	}
	if !ok {
		return 0, false
	}
	return l.cut(gap, gap.lo, size), true
}

// cut takes size bytes out of a gap.
func (l *freeList) cut(gap span, off, size int64) int64 {
	l.remove(gap)
	for _, rest := range [2]span{{gap.lo, off}, {off + size, gap.hi}} {
		if rest.lo < rest.hi {
			l.insert(rest)
		}
	}
	return off
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

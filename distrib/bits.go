package distrib

import "math/bits"

// bitset is a set of rows.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s bitset) set(i int)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) clear(i int)    { s[i/64] &^= 1 << (i % 64) }

// setRange adds [from, from+n).
func (s bitset) setRange(from, n int) {
	for i := from; i < from+n; i++ {
		if i%64 == 0 && from+n-i >= 64 {
			s[i/64] = ^uint64(0)
			i += 63
			continue
		}
		s.set(i)
	}
}

// clearRange takes [from, from+n) out.
func (s bitset) clearRange(from, n int) {
	for i := from; i < from+n; i++ {
		s.clear(i)
	}
}

// next is the first member that is at least i, or end.
func (s bitset) next(i, end int) int {
	for i < end {
		if w := s[i/64] >> (i % 64); w != 0 {
			return min(i+bits.TrailingZeros64(w), end)
		}
		i = (i/64 + 1) * 64
	}
	return end
}

// run is the first run of members in [i, end): empty, at end, if there is none.
func (s bitset) run(i, end int) (from, to int) {
	from = s.next(i, end)
	to = from
	for to < end && s.has(to) {
		to++
	}
	return from, to
}

func (s bitset) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s bitset) bytes() int64 { return int64(8 * len(s)) }

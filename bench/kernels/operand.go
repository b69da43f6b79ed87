package main

import "unsafe"

// operands are the arrays of one problem, with the contents that the peers give
// theirs.
func operands(lengths ...int) [][]float32 {
	var all [][]float32
	for i, n := range lengths {
		all = append(all, operand(i, n))
	}
	return all
}

// operand allocates n elements that begin where the peers' operand i does, in
// bytes from a page: whether a load meets a store to the same offset is luck
// that both sides must share.
func operand(i, n int) []float32 {
	const page, skew = 4096, 448
	x := make([]float32, n+2*page/4)
	address := int(uintptr(unsafe.Pointer(unsafe.SliceData(x))))
	start := ((page-address%page)%page + skew*i) / 4
	x = x[start : start+n : start+n]
	fill(x, uint32(i))
	return x
}

// fill sets x to reproducible numbers in [-1, 1), the same as in peer/peer.c.
func fill(x []float32, seed uint32) {
	for i := range x {
		h := (uint32(i) + seed*0x9e3779b9) * 2654435761
		h ^= h >> 16
		h *= 0x85ebca6b
		h ^= h >> 13
		x[i] = float32(h>>8)/8388608 - 1
	}
}

// sums are what two programs compare instead of their results: a weighted sum,
// and that of magnitudes.
type sums struct{ value, magnitude float64 }

func sumsOf(x []float32) sums {
	var s sums
	for i, v := range x {
		w := float64(v) * float64(1+i%7)
		s.value += w
		s.magnitude += max(w, -w)
	}
	return s
}

// near reports sums of results that differ by rounding alone.
func (s sums) near(t sums) bool {
	d := s.value - t.value
	return max(d, -d) <= 1e-4*max(s.magnitude, t.magnitude)
}

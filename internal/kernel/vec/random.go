package vec

import "math"

// Philox fills dst with elements counter, counter+1, … of the stream of 32-bit
// words that key selects, uniform over all words. Element e of a stream is word
// e mod 4 of Philox4x32-10 at the 128-bit counter ⌊e/4⌋: the same whatever slice
// it is asked for in. Elements are counted modulo 2⁶⁴.
//
// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011.
func Philox(dst []uint32, key, counter uint64) {
	head := min(len(dst), int(-counter%4))
	philoxGo(dst[:head], key, counter)
	dst, counter = dst[head:], counter+uint64(head)
	for lo, hi := range spans(len(dst)) {
		active.philox(dst[lo:hi], key, counter+uint64(lo))
	}
}

// Dropout sets dst[i] = x[i]·(1/keep) where element offset+i of the key's
// Philox stream is less than keep·2³², else to +0. The same call on dy is the
// gradient. A keep of 1 or more copies x; of 0 or less, or NaN, clears dst.
func Dropout(dst, x []float32, keep float32, key, offset uint64) {
	cover(dst, x)
	x = x[:len(dst)]
	switch {
	case !(keep > 0):
		clear(dst)
	case keep >= 1:
		copy(dst, x)
	default:
		dropout(dst, x, keep, key, offset, false)
	}
}

// DropoutFar is Dropout for a destination that is too large for a cache; see Far.
func DropoutFar(dst, x []float32, keep float32, key, offset uint64) {
	if !(keep > 0 && keep < 1) {
		Dropout(dst, x, keep, key, offset)
		return
	}
	cover(dst, x)
	dropout(dst, x[:len(dst)], keep, key, offset, true)
}

func dropout(dst, x []float32, keep float32, key, offset uint64, far bool) {
	limit := uint32(math.Ceil(float64(keep)*(1<<32)) - 1)
	scale := 1 / keep
	head := min(len(dst), int(-offset%4))
	dropoutGo(dst[:head], x[:head], scale, limit, key, offset)
	dst, x, offset = dst[head:], x[head:], offset+uint64(head)
	near := func(lo, hi int) {
		active.dropout(dst[lo:hi], x[lo:hi], scale, limit, key, offset+uint64(lo))
	}
	if !far || toLine(dst) != 0 { // a far kernel's index must be a multiple of four, too
		for lo, hi := range spans(len(dst)) {
			near(lo, hi)
		}
		return
	}
	inParts(dst, 2*farBlock, among(dst, x), near, func(lo, hi int) {
		active.far.dropout(dst[lo:hi], x[lo:hi], scale, limit, key, offset+uint64(lo))
	})
}

// philoxBlock is Philox4x32-10: ten rounds of two multiplications whose high
// halves mix the other words and the keys, which step by constants a round.
func philoxBlock(key, block uint64) [4]uint32 {
	return philox4x32([4]uint32{uint32(block), uint32(block >> 32)}, uint32(key), uint32(key>>32))
}

func philox4x32(c [4]uint32, k0, k1 uint32) [4]uint32 {
	for range philoxRounds {
		p0, p1 := uint64(c[0])*philoxM0, uint64(c[2])*philoxM1
		c = [4]uint32{
			uint32(p1>>32) ^ c[1] ^ k0, uint32(p1),
			uint32(p0>>32) ^ c[3] ^ k1, uint32(p0),
		}
		k0, k1 = k0+philoxW0, k1+philoxW1
	}
	return c
}

const (
	philoxRounds       = 10
	philoxM0, philoxM1 = 0xd2511f53, 0xcd9e8d57
	philoxW0, philoxW1 = 0x9e3779b9, 0xbb67ae85 // the golden ratio and √3 − 1
)

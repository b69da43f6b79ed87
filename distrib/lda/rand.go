package lda

import "math/bits"

// source is a sequence of random numbers: SplitMix64 (Steele, Lea and Flood 2014). It begins with a
// number of what it is for, so that nobody shares one, and nothing depends on who draws first.
type source uint64

const golden = 0x9e3779b97f4a7c15

// sourceOf is the sequence of these numbers, and of no others.
func sourceOf(numbers ...uint64) source {
	var s source
	for _, x := range numbers {
		s = source(s.next() ^ x*golden)
	}
	return s
}

func (s *source) next() uint64 {
	*s += golden
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit is a number from 0, below 1, of 53 bits.
func (s *source) unit() float64 { return float64(s.next()>>11) / (1 << 53) }

// below is a number from 0, below n.
func (s *source) below(n int) int {
	hi, _ := bits.Mul64(s.next(), uint64(n))
	return int(hi)
}

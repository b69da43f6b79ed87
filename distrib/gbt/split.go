package gbt

import (
	"encoding/binary"
	"math"
)

// split is the best one of a leaf: what its samples are, what those that go left are, and where
// they are told apart. The feature is -1 if there is none.
type split struct {
	gain         float64
	feature, bin int32
	all, left    sums
}

// The bytes of a split in a message.
const splitBytes = 16 + 2*sumsBytes

func (s split) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.gain))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.feature))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.bin))
	return s.left.append(s.all.append(b))
}

func splitOf(b []byte) split {
	return split{math.Float64frombits(binary.LittleEndian.Uint64(b)),
		int32(binary.LittleEndian.Uint32(b[8:])), int32(binary.LittleEndian.Uint32(b[12:])),
		sumsOf(b[16:]), sumsOf(b[16+sumsBytes:])}
}

// better is the one of two that is taken. Who has no features knows no sums either.
func (s split) better(x split) split {
	switch {
	case s.all.n == 0 || x.feature >= 0 && s.feature < 0:
		return x
	case x.feature < 0:
		return s
	case x.gain > s.gain || x.gain == s.gain && x.feature < s.feature:
		return x
	}
	return s
}

// leastH is the least sum of second derivatives of a leaf.
const leastH = 1e-3

// best is the best split by some features, by a histogram of theirs.
func (o Options) best(hist []sums, l *layout, u units) split {
	s := split{feature: -1}
	for _, j := range l.features {
		s = s.better(o.bestBy(int32(j), l.bins(hist, j), u))
	}
	return s
}

// bestBy is the best split by a feature.
func (o Options) bestBy(feature int32, bins []sums, u units) split {
	s := split{feature: -1}
	for _, c := range bins {
		s.all.add(c)
	}
	whole, _ := o.score(s.all, u)
	var left sums
	for bin, c := range bins[:len(bins)-1] {
		left.add(c)
		right := s.all.less(left)
		if c.n == 0 || left.n < int64(o.MinLeaf) {
			continue
		}
		if right.n < int64(o.MinLeaf) {
			break
		}
		a, ok := o.score(left, u)
		b, too := o.score(right, u)
		if gain := a + b - whole; ok && too && gain > s.gain {
			s.gain, s.feature, s.bin, s.left = gain, feature, int32(bin), left
		}
	}
	return s
}

// score is how much less the loss is by the value of a leaf, twice; !ok if it has too little to
// say.
func (o Options) score(x sums, u units) (score float64, ok bool) {
	g, h := u.real(x)
	return float64(g*g) / (h + o.L2), h >= leastH
}

// value is a leaf's.
func (o Options) value(x sums, u units) float32 {
	g, h := u.real(x)
	if h+o.L2 == 0 {
		return 0
	}
	return float32(-float64(o.Rate*g) / (h + o.L2))
}

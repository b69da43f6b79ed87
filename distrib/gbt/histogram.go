package gbt

import (
	"encoding/binary"
	"math"
	"slices"
)

// sums are of samples: derivatives in units of the tree's, and how many there are.
type sums struct{ g, h, n int64 }

func (s *sums) add(x sums) { s.g, s.h, s.n = s.g+x.g, s.h+x.h, s.n+x.n }

func (s sums) less(x sums) sums { return sums{s.g - x.g, s.h - x.h, s.n - x.n} }

// The bytes of sums in a message.
const sumsBytes = 24

func (s sums) append(b []byte) []byte {
	for _, x := range []int64{s.g, s.h, s.n} {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

func sumsOf(b []byte) sums {
	at := func(k int) int64 { return int64(binary.LittleEndian.Uint64(b[8*k:])) }
	return sums{at(0), at(1), at(2)}
}

// layout is where the bins of some features are in a histogram, one behind the other.
type layout struct {
	features []int // ascending
	at, n    []int // of each feature of all; of others both are 0
	cells    int
}

func layoutOf(features []int, limits [][]float32) *layout {
	l := &layout{features: features, at: make([]int, len(limits)),
		n: make([]int, len(limits))}
	for _, j := range features {
		l.at[j], l.n[j] = l.cells, len(limits[j])+1
		l.cells += l.n[j]
	}
	return l
}

// histogram is an empty one. Behind it there is room, so that any feature's bins may be looked at
// as an array of [MaxBins].
func (l *layout) histogram() []sums { return make([]sums, l.cells, l.cells+MaxBins+1) }

// bins are those of a feature.
func (l *layout) bins(hist []sums, feature int) []sums {
	return hist[l.at[feature]:][:l.n[feature]]
}

// samples are those that a worker counts, in the order of the leaves that they are in.
type samples struct {
	order []int32
	leaf  []span // by node
	spare []int32
}

type span struct{ from, to int }

func (s *samples) of(node int) []int32 { return s.order[s.leaf[node].from:s.leaf[node].to] }

// begin has all of them in the root.
func (s *samples) begin() {
	clear(s.leaf)
	s.leaf[0] = span{0, len(s.order)}
}

// split divides those of a node; left says which go there, in their order.
func (s *samples) split(node int, left func(k int, sample int32) bool) {
	own := s.of(node)
	s.spare = slices.Grow(s.spare[:0], len(own))[:len(own)]
	n := 0
	for k, i := range own {
		own[n], s.spare[k-n] = i, i // no branch that a processor would have to guess
		if left(k, i) {
			n++
		}
	}
	copy(own[n:], s.spare[:len(own)-n])
	at := s.leaf[node]
	s.leaf[2*node+1], s.leaf[2*node+2] = span{at.from, at.from + n}, span{at.from + n, at.to}
}

// block is a block of the schedule: some samples, and some features of them.
type block struct {
	*samples
	features []int
}

// pair is a sample's derivatives.
type pair struct{ g, h int32 }

// count adds the samples of a node to a histogram, and is the memory that it took for that.
func (b *block) count(node int, w *Worker, to []sums, gathered []pair) []pair {
	own := b.of(node)
	gathered = gathered[:0]
	for _, i := range own {
		gathered = append(gathered, w.derived[i])
	}
	for _, j := range b.features {
		of := (*[MaxBins + 1]sums)(to[w.counted.at[j]:][:MaxBins+1])
		if w.Loss == Squares {
			tallyFirst(own, w.bins[j], gathered, of)
			for k := range w.counted.n[j] {
				of[k].h = of[k].n * int64(w.units.pair(0, 1).h)
			}
		} else {
			tally(own, w.bins[j], gathered, of)
		}
	}
	return gathered
}

// tally adds samples to the histogram of a feature, whose bins are in an array that is as large as
// any may be, so that none is out of its bounds.
func tally(own []int32, bins []uint8, of []pair, to *[MaxBins + 1]sums) {
	of = of[:len(own)]
	for k, i := range own {
		c, d := &to[bins[i]], of[k]
		c.g += int64(d.g)
		c.h += int64(d.h)
		c.n++
	}
}

// tallyFirst is tally without the second derivatives, which are the same of all samples.
func tallyFirst(own []int32, bins []uint8, of []pair, to *[MaxBins + 1]sums) {
	of = of[:len(own)]
	for k, i := range own {
		c := &to[bins[i]]
		c.g += int64(of[k].g)
		c.n++
	}
}

// units are what derivatives are counted in: powers of two.
type units struct{ g, h float64 }

// pair is derivatives in these units.
func (u units) pair(g, h float64) pair {
	return pair{int32(math.RoundToEven(g / u.g)), int32(math.RoundToEven(h / u.h))}
}

// real are the first and the second derivatives of sums.
func (u units) real(s sums) (g, h float64) {
	return float64(float64(s.g) * u.g), float64(float64(s.h) * u.h)
}

// unit is one by which a number of at most this size has 30 bits.
func unit(most float64) float64 {
	_, e := math.Frexp(most)
	return math.Ldexp(1, max(e-30, -1000))
}

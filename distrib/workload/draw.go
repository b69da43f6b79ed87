package workload

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/internal/libm"
)

// The shape of the covertype data (Blackard and Dean, 1998).
const (
	coverClasses    = 7
	coverMeasures   = 10 // numbers, scaled to [0, 1]
	coverWilderness = 4  // one of these areas
	coverSoils      = 40 // one of these types
	coverFeatures   = coverMeasures + coverWilderness + coverSoils
)

// coverShares are how many of all samples each class has.
var coverShares = [coverClasses]float64{.365, .488, .062, .005, .016, .030, .034}

// Covertype draws samples of the shape of Bösen's example: 54 features, of which ten are
// measures and the others say which of four areas and forty soils it is; seven classes as
// frequent as in the forest. How far a class is from the others is set so that a linear
// classifier is about as good as it is there: an entropy near 0.61, an error near 1/5.
func Covertype(seed uint64, train, test int) (*Samples, *Samples) {
	c := newCover(seed)
	return c.samples(train), c.samples(test)
}

type cover struct {
	rng         *rand.Rand
	mean        [coverClasses][coverMeasures]float64
	area, soils [coverClasses][]float64 // cumulative
}

// How much classes differ in their measures, and how much samples of a class do.
const (
	coverBetween = 0.08
	coverWithin  = 0.17
)

func newCover(seed uint64) *cover {
	c := &cover{rng: rand.New(rand.NewPCG(seed, 7))}
	for k := range coverClasses {
		for j := range coverMeasures {
			c.mean[k][j] = 0.5 + float64(coverBetween*libm.Normal(c.rng))
		}
		c.area[k], c.soils[k] = c.chances(coverWilderness), c.chances(coverSoils)
	}
	return c
}

// chances are cumulative probabilities of n kinds, drawn too.
func (c *cover) chances(n int) []float64 {
	p := make([]float64, n)
	sum := 0.0
	for i := range p {
		sum += float64(c.rng.Float64())
		p[i] = sum
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func (c *cover) pick(cumulative []float64) int32 {
	u := c.rng.Float64()
	for i, p := range cumulative {
		if u < p {
			return int32(i)
		}
	}
	return int32(len(cumulative) - 1)
}

func (c *cover) samples(n int) *Samples {
	s := &Samples{Features: coverFeatures, Classes: coverClasses, start: []int32{0}}
	var shares []float64
	sum := 0.0
	for _, p := range coverShares {
		sum += p
		shares = append(shares, sum)
	}
	for range n {
		k := c.pick(shares)
		for j := range int32(coverMeasures) {
			v := c.mean[k][j] + float64(coverWithin*libm.Normal(c.rng))
			s.index = append(s.index, j)
			s.value = append(s.value, float32(min(max(v, 0), 1)))
		}
		s.index = append(s.index, coverMeasures+c.pick(c.area[k]),
			coverMeasures+coverWilderness+c.pick(c.soils[k]))
		s.value = append(s.value, 1, 1)
		s.end(k)
	}
	return s
}

// Linear draws samples of so many entries among many features, as texts have: the first
// features are more frequent, half of all entries in a quarter of them. The class is the
// one with the largest of linear functions of the sample, drawn once, plus noise of a
// standard deviation, whose values have variance 1.
func Linear(seed uint64, train, test, features, classes, entries int,
	noise float64) (*Samples, *Samples) {
	rng := rand.New(rand.NewPCG(seed, 9))
	teacher := normals(rng, classes*features)
	draw := func(n int) *Samples {
		s := &Samples{Features: features, Classes: classes, start: []int32{0}}
		for range n {
			index, value := entriesOf(rng, features, entries)
			s.index, s.value = append(s.index, index...), append(s.value, value...)
			s.end(taught(rng, teacher, features, classes, index, value, noise))
		}
		return s
	}
	return draw(train), draw(test)
}

// entriesOf are distinct features, ascending, with normal values of a vector of length
// one, about.
func entriesOf(rng *rand.Rand, features, entries int) ([]int32, []float32) {
	seen := map[int32]bool{}
	var index []int32
	for len(index) < min(entries, features) {
		u := rng.Float64()
		at := int32(float64(u*u) * float64(features))
		if !seen[at] {
			seen[at] = true
			index = append(index, at)
		}
	}
	slices.Sort(index)
	value := make([]float32, len(index))
	for i := range value {
		value[i] = float32(libm.Normal(rng) / math.Sqrt(float64(entries)))
	}
	return index, value
}

func taught(rng *rand.Rand, teacher []float64, features, classes int, index []int32,
	value []float32, noise float64) int32 {
	label, top := 0, math.Inf(-1)
	for c := range classes {
		sum := noise * libm.Normal(rng)
		for i, at := range index {
			sum += float64(teacher[c*features+int(at)] * float64(value[i]))
		}
		if sum > top {
			label, top = c, sum
		}
	}
	return int32(label)
}

// LowRank draws n known elements of a matrix of a rank, plus noise of a standard
// deviation: numbers of variance 1. Rows are equally likely, and of columns the first
// ones more so: half of all elements are in a quarter of the columns, as some films are seen by
// many.
func LowRank(seed uint64, rows, cols, rank, n int, noise float64) *Ratings {
	rng := rand.New(rand.NewPCG(seed, 8))
	l, t := normals(rng, rows*rank), normals(rng, cols*rank)
	r := &Ratings{Rows: rows, Cols: cols}
	seen := map[[2]int32]bool{}
	n = min(n, rows*cols/2)
	for len(seen) < n {
		u := rng.Float64()
		at := [2]int32{rng.Int32N(int32(rows)), int32(float64(u*u) * float64(cols))}
		if seen[at] {
			continue
		}
		seen[at] = true
		v := dot(rowOf(l, rank, at[0]), rowOf(t, rank, at[1])) / math.Sqrt(float64(rank))
		r.add(at[0], at[1], float32(v+float64(noise*libm.Normal(rng))))
	}
	r.sorted()
	return r
}

func normals(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = libm.Normal(rng)
	}
	return x
}

package orion

import (
	"iter"
	"sort"
)

// Axis is a coordinate of iterations, a sum of their indices times coefficients, cut into parts:
// part k has the values from Cuts[k] to below Cuts[k+1].
type Axis struct {
	Row  []int64
	Cuts []int64
}

// maxBuckets is how fine a histogram is.
const maxBuckets = 1 << 16

// Parts is how many parts there are.
func (a Axis) Parts() int { return len(a.Cuts) - 1 }

// Part is the part that an iteration is in.
func (a Axis) Part(index []int64) int {
	x := dot(a.Row, index)
	return sort.Search(len(a.Cuts), func(k int) bool { return a.Cuts[k] > x }) - 1
}

func dot(a, b []int64) (sum int64) {
	for k, x := range a {
		sum += x * b[k]
	}
	return sum
}

// axis cuts a coordinate into a number of parts, or fewer if it has fewer values: equal ranges if
// there are no points, and else as many of them in each part as can be.
func (c *Choice) axis(row []int64, parts int, points iter.Seq[[]int64]) Axis {
	r := c.Loop.reach(row)
	n := r.to - r.from + 1
	if points == nil {
		parts = int(min(int64(parts), n))
		cuts := make([]int64, parts+1)
		for k := range cuts {
			cuts[k] = r.from + n/int64(parts)*int64(k) + n%int64(parts)*int64(k)/int64(parts)
		}
		return Axis{row, cuts}
	}
	width := (n + maxBuckets - 1) / maxBuckets
	histogram := make([]int64, (n+width-1)/width)
	for p := range points {
		histogram[(dot(row, p)-r.from)/width]++
	}
	cuts := balanced(histogram, min(parts, len(histogram)))
	for k, b := range cuts {
		cuts[k] = min(r.from+b*width, r.to+1)
	}
	return Axis{row, cuts}
}

// balanced cuts buckets into a number of runs, none of them empty of buckets. Each has as nearly as
// can be its share of what those before it have left.
func balanced(histogram []int64, parts int) []int64 {
	var left int64
	for _, n := range histogram {
		left += n
	}
	cuts := make([]int64, parts+1)
	at := int64(0)
	for k := 1; k < parts; k++ {
		last := int64(len(histogram) - (parts - k)) // buckets are left for those to come
		share, have := left/int64(parts-k+1), int64(0)
		for ; at < last && (at == cuts[k-1] || 2*have+histogram[at] <= 2*share); at++ {
			have += histogram[at]
		}
		cuts[k], left = at, left-have
	}
	cuts[parts] = int64(len(histogram))
	return cuts
}

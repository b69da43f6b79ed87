package orion

import (
	"cmp"
	"slices"
)

// How far the search for a transformation goes: rows of one bound of coefficients, and pairs of
// rows.
const (
	maxRows  = 50_000
	maxTimes = 100
	maxSides = 1000
)

// skewed are coordinates by which a wavefront is sound: time is positive for all vectors, space
// never negative, and the two are rows of a unimodular matrix. Times with few steps come first, and
// all candidates have the first that there is a space for.
func (c *Choice) skewed() ([]candidate, string) {
	const none = "no combination of dimensions is positive for all vectors, with another that is " +
		"never negative"
	if !c.skewable() {
		return nil, none
	}
	n := len(c.Loop.Space)
	most := power(1+c.farthest(), n-1) // is enough where no entry is anything
	for bound := int64(1); bound <= most && power(2*bound+1, n) <= maxRows; bound++ {
		times, sides := c.rows(bound)
		for _, t := range times[:min(len(times), maxTimes)] {
			var found []candidate
			for _, s := range sides[:min(len(sides), maxSides)] {
				if extends(t, s) {
					found = append(found, candidate{s, t})
				}
			}
			if found != nil {
				return found, ""
			}
		}
	}
	return nil, none
}

// skewable reports whether two dimensions at least are anything in no vector, and each vector is
// not 0 in one of these: others are in no combination that has a least value.
func (c *Choice) skewable() bool {
	var dims []int
	for k, d := range c.Loop.Space {
		if d.Size > 1 && !slices.ContainsFunc(c.Vectors, func(v Vector) bool {
			return v[k].Form == Any
		}) {
			dims = append(dims, k)
		}
	}
	return len(dims) > 1 && !slices.ContainsFunc(c.Vectors, func(v Vector) bool {
		return !slices.ContainsFunc(dims, func(k int) bool { return !v[k].zero() })
	})
}

// farthest is the largest number of any vector, without its sign; no more than rows can be had of.
func (c *Choice) farthest() (most int64) {
	for _, v := range c.Vectors {
		for _, e := range v {
			most = max(most, e.N, -e.N)
		}
	}
	return min(most, maxRows)
}

// rows are the combinations of dimensions with coefficients within a bound that are positive for
// all vectors, and those that are never negative, each by how many values they have.
func (c *Choice) rows(bound int64) (times, sides [][]int64) {
	row := make([]int64, len(c.Loop.Space))
	var fill func(k int)
	fill = func(k int) {
		if k < len(row) {
			for row[k] = -bound; row[k] <= bound; row[k]++ {
				fill(k + 1)
			}
			return
		}
		least, bounded := c.least(row)
		if r := c.Loop.reach(row); bounded && least >= 0 && r.from < r.to {
			sides = append(sides, slices.Clone(row))
			if least > 0 {
				times = append(times, sides[len(sides)-1])
			}
		}
	}
	fill(0)
	for _, list := range [][][]int64{times, sides} {
		slices.SortStableFunc(list, func(a, b []int64) int {
			return cmp.Compare(c.Loop.span(a), c.Loop.span(b))
		})
	}
	return times, sides
}

// least is the least that a combination is for any vector, if there is such a number.
func (c *Choice) least(row []int64) (least int64, bounded bool) {
	least = maxSize
	for _, v := range c.Vectors {
		var sum int64
		for k, e := range v {
			switch {
			case row[k] == 0:
			case e.Form == Any || e.Form == Positive && row[k] < 0:
				return 0, false
			case e.Form == Positive:
				sum += row[k]
			default:
				sum += row[k] * e.N
			}
		}
		least = min(least, sum)
	}
	return least, true
}

// extends reports whether two rows are those of a matrix of whole numbers whose determinant is 1:
// whether their minors have no divisor in common.
func extends(a, b []int64) bool {
	var divisor int64
	for i := range a {
		for j := range i {
			divisor = gcd(divisor, a[i]*b[j]-a[j]*b[i])
		}
	}
	return divisor == 1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// power is a power, or enough.
func power(x int64, n int) int64 {
	out := int64(1)
	for range n {
		out = min(out*x, maxSize)
	}
	return out
}

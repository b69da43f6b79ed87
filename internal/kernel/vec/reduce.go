package vec

import "math"

// Sum returns Σ x[i], zero for an empty x.
func Sum(x []float32) float32 {
	var sum float32
	for lo, hi := range spans(len(x)) {
		sum += active.sum(x[lo:hi])
	}
	return sum
}

// SumSquares returns Σ x[i]².
func SumSquares(x []float32) float32 {
	var sum float32
	for lo, hi := range spans(len(x)) {
		sum += active.sumSquares(x[lo:hi])
	}
	return sum
}

// Dot returns Σ a[i]·b[i] over the length of a.
func Dot(a, b []float32) float32 {
	cover(a, b)
	var sum float32
	for lo, hi := range spans(len(a)) {
		sum += active.dot(a[lo:hi], b[lo:hi])
	}
	return sum
}

// MaxOf returns the largest element, NaN if any is NaN, −Inf for an empty x.
func MaxOf(x []float32) float32 {
	most := float32(math.Inf(-1))
	for lo, hi := range spans(len(x)) {
		most = max32(most, active.maxOf(x[lo:hi]))
	}
	return most
}

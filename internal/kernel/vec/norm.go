package vec

import (
	"fmt"
	"math"
)

// Moments returns the mean of x and 1/√(variance + eps). The variance is that of
// the differences from the mean, as float32 has it: a difference of two large
// sums would cancel.
func Moments(x []float32, eps float32) (mean, inv float32) {
	n := float64(len(x))
	mean = float32(float64(Sum(x)) / n)
	var squares float32
	for lo, hi := range spans(len(x)) {
		squares += active.sumSquaresFrom(x[lo:hi], mean)
	}
	return mean, inverseRoot(squares, n, eps)
}

// InverseRMS returns 1/√(mean of x² + eps).
func InverseRMS(x []float32, eps float32) float32 {
	return inverseRoot(SumSquares(x), float64(len(x)), eps)
}

func inverseRoot(squares float32, n float64, eps float32) float32 {
	return float32(1 / math.Sqrt(float64(squares)/n+float64(eps)))
}

// Affine sets dst[i] = (x[i]−shift)·factor + offset; the difference and the rest
// are rounded once each.
func Affine(dst, x []float32, shift, factor, offset float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.affine(dst[lo:hi], x[lo:hi], shift, factor, offset)
	}
}

// Normalize sets dst[i] = (x[i]−mean)·inv·scale[i] + bias[i]. With dst as bias it
// adds up gradients of a scale.
func Normalize(dst, x, scale, bias []float32, mean, inv float32) {
	cover(dst, x, scale, bias)
	active.normalizeRow(dst, x, scale, bias, mean, inv)
}

func (e *elementwise) normalizeRow(dst, x, scale, bias []float32, mean, inv float32) {
	for lo, hi := range spans(len(dst)) {
		e.normalize(dst[lo:hi], x[lo:hi], scale[lo:hi], bias[lo:hi], mean, inv)
	}
}

// LayerNorm normalises rows as long as scale: it sets a row of dst to the row of
// x less its mean, divided by its standard deviation, times scale, plus bias.
// The elements of dst are a multiple of those of scale. As for all functions of
// rows, far says that dst is too large to be found in a cache by whoever reads
// it; see Far.
func LayerNorm(dst, x, scale, bias []float32, eps float32, far bool) {
	cover(dst, x)
	cover(scale, bias)
	n := len(scale)
	e, done := stores(far, n, dst, x)
	for lo := 0; lo < len(dst); lo += n {
		row := x[lo : lo+n]
		mean, inv := Moments(row, eps)
		e.normalizeRow(dst[lo:lo+n], row, scale, bias, mean, inv)
	}
	done()
}

// RMSNorm sets every row of dst, as long as scale, to the row of x divided by its
// root mean square, times scale.
func RMSNorm(dst, x, scale []float32, eps float32, far bool) {
	cover(dst, x)
	n := len(scale)
	e, done := stores(far, n, dst, x)
	for at := 0; at < len(dst); at += n {
		row := x[at : at+n]
		inv := InverseRMS(row, eps)
		for lo, hi := range spans(n) {
			e.mulScaled(dst[at+lo:at+hi], row[lo:hi], scale[lo:hi], inv)
		}
	}
	done()
}

// LayerNormGrad sets dx to the gradient of LayerNorm by x where d is that by its
// result: with y the normalised row and g = d·scale,
//
//	dx = inv·(g − mean(g) − y·mean(g·y))
func LayerNormGrad(dx, x, scale, d []float32, eps float32, far bool) {
	normGrads(dx, x, scale, d, eps, far, func(x, d []float32) (mean, meanGrad float32) {
		var sum, dot float32
		for lo, hi := range spans(len(x)) {
			s, p := active.sumAndDot(x[lo:hi], d[lo:hi], scale[lo:hi])
			sum, dot = sum+s, dot+p
		}
		return float32(float64(sum) / float64(len(x))), dot / float32(len(x))
	})
}

// RMSNormGrad is the gradient of RMSNorm by x: with g = d·scale,
//
//	dx = inv·g − x·inv³·mean(g·x)
func RMSNormGrad(dx, x, scale, d []float32, eps float32, far bool) {
	normGrads(dx, x, scale, d, eps, far, func(_, _ []float32) (mean, meanGrad float32) {
		return 0, 0
	})
}

// normGrads is the gradient of rows less means, over the roots of their squares.
func normGrads(dx, x, scale, d []float32, eps float32, far bool,
	means func(x, d []float32) (mean, meanGrad float32)) {
	cover(dx, x, d)
	n := len(scale)
	e, done := stores(far, n, dx, x, d)
	for at := 0; at < len(dx); at += n {
		x, d, dx := x[at:at+n], d[at:at+n], dx[at:at+n]
		mean, meanGrad := means(x, d)
		var squares, dot float32
		for lo, hi := range spans(n) {
			s, p := active.squaresAndDot(x[lo:hi], d[lo:hi], scale[lo:hi], mean)
			squares, dot = squares+s, dot+p
		}
		inv := inverseRoot(squares, float64(n), eps)
		along := -float32(float64(inv) * float64(inv) * float64(inv) * float64(dot) / float64(n))
		for lo, hi := range spans(n) {
			e.normGrad(dx[lo:hi], x[lo:hi], scale[lo:hi], d[lo:hi], mean, meanGrad, inv, along)
		}
	}
	done()
}

// stores returns the kernels that write rows of n elements, and what to call
// after the last row. It panics if dst is not of such rows.
func stores(far bool, n int, dst []float32, sources ...[]float32) (e *elementwise, done func()) {
	if len(dst) > 0 && (n < 1 || len(dst)%n != 0) {
		panic(fmt.Sprintf("vec: %d elements are no rows of %d", len(dst), n))
	}
	if !far || active.far == nil || n%farBlock != 0 || toLine(dst) != 0 || among(dst, sources...) {
		return &active.elementwise, func() {}
	}
	return active.far, storeFence
}

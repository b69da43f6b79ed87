package vec

import "math"

// Exp sets dst[i] = e^x[i]. Largest error over all inputs: 0.91 ulp.
func Exp(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.exp(dst[lo:hi], x[lo:hi])
	}
}

// ExpSum sets dst[i] = e^(x[i]−shift) and returns Σ dst[i]. The difference is
// rounded before the exponential, which is that of Exp.
func ExpSum(dst, x []float32, shift float32) float32 {
	cover(dst, x)
	var sum float32
	for lo, hi := range spans(len(dst)) {
		sum += active.expSum(dst[lo:hi], x[lo:hi], shift)
	}
	return sum
}

// Log sets dst[i] to the natural logarithm of x[i]: −Inf for zeros, NaN for
// negative numbers. Largest error over all inputs: 0.84 ulp.
func Log(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.log(dst[lo:hi], x[lo:hi])
	}
}

// Tanh sets dst[i] to the hyperbolic tangent of x[i]. Largest error over all
// inputs: 2.50 ulp.
func Tanh(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.tanh(dst[lo:hi], x[lo:hi])
	}
}

// TanhGrad sets dx[i] = dy[i]·(1 − y[i]²), y being the output of Tanh.
func TanhGrad(dx, y, dy []float32) {
	cover(dx, y, dy)
	for lo, hi := range spans(len(dx)) {
		active.tanhGrad(dx[lo:hi], y[lo:hi], dy[lo:hi])
	}
}

// Sigmoid sets dst[i] = 1/(1 + e^−x[i]). Largest error over all inputs: 2.41 ulp.
func Sigmoid(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.sigmoid(dst[lo:hi], x[lo:hi])
	}
}

// SigmoidGrad sets dx[i] = dy[i]·(y[i] − y[i]²), y being the output of Sigmoid.
func SigmoidGrad(dx, y, dy []float32) {
	cover(dx, y, dy)
	for lo, hi := range spans(len(dx)) {
		active.sigmoidGrad(dx[lo:hi], y[lo:hi], dy[lo:hi])
	}
}

// Erf sets dst[i] to the error function of x[i]. Largest error over all inputs:
// 1.36 ulp.
func Erf(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.erf(dst[lo:hi], x[lo:hi])
	}
}

// Gelu sets dst[i] = x[i]·Φ(x[i]), Φ being the normal distribution function
// (the exact form, ½x·(1 + erf(x/√2)), without its cancellation at negative x).
// Largest error over all inputs: 6.9 ulp, at −12; 2.7 for positive inputs.
func Gelu(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.gelu(dst[lo:hi], x[lo:hi])
	}
}

// GeluGrad sets dx[i] = dy[i]·(Φ(x[i]) + x[i]·φ(x[i])), x being the input of
// Gelu and φ the normal density. The factor of dy
// is within 1.2·10⁻⁷.
func GeluGrad(dx, x, dy []float32) {
	cover(dx, x, dy)
	for lo, hi := range spans(len(dx)) {
		active.geluGrad(dx[lo:hi], x[lo:hi], dy[lo:hi])
	}
}

// Softmax sets dst[i] = e^(x[i]−m)/Σ e^(x[j]−m), m being the largest element:
// one row. A row of −Inf alone gives NaN, as it has no distribution.
func Softmax(dst, x []float32) {
	cover(dst, x)
	x = x[:len(dst)]
	sum := ExpSum(dst, x, MaxOf(x))
	MulScalar(dst, dst, 1/sum)
}

// SoftmaxRows is Softmax of every row of n elements; far as in LayerNorm.
func SoftmaxRows(dst, x []float32, n int, far bool) {
	cover(dst, x)
	e, done := stores(far, n, dst, x)
	for lo := 0; lo < len(dst); lo += n {
		if row := x[lo : lo+n]; e == active.far {
			most := MaxOf(row)
			e.expRow(dst[lo:lo+n], row, most, 1/sumExp(row, most), 0)
		} else {
			Softmax(dst[lo:lo+n], row)
		}
	}
	done()
}

// SoftmaxGrad sets dx, row by row of n elements, to the gradient of softmax by
// its operand: y·(d − Σ y·d), with y the softmax and d its gradient.
func SoftmaxGrad(dx, y, d []float32, n int, far bool) {
	cover(dx, y, d)
	e, done := stores(far, n, dx, y, d)
	for at := 0; at < len(dx); at += n {
		yRow, dRow := y[at:at+n], d[at:at+n]
		dot := Dot(yRow, dRow)
		for lo, hi := range spans(n) {
			e.mulShifted(dx[at+lo:at+hi], dRow[lo:hi], yRow[lo:hi], dot)
		}
	}
	done()
}

// SoftmaxAffine sets dst[i] = factor·s[i] + offset, with s the softmax of x: one
// row, which may be dst. The gradient of a cross-entropy is of this form.
func SoftmaxAffine(dst, x []float32, factor, offset float32) {
	cover(dst, x)
	x = x[:len(dst)]
	sum := ExpSum(dst, x, MaxOf(x))
	Affine(dst, dst, 0, factor/sum, offset)
}

func (e *elementwise) expRow(dst, x []float32, shift, factor, offset float32) {
	for lo, hi := range spans(len(dst)) {
		e.expAffine(dst[lo:hi], x[lo:hi], shift, factor, offset)
	}
}

// sumExp is Σ e^(x[i]−shift).
func sumExp(x []float32, shift float32) float32 {
	var sum float32
	for lo, hi := range spans(len(x)) {
		sum += active.sumExp(x[lo:hi], shift)
	}
	return sum
}

// LogSumExp returns log Σ e^x[i] in two parts, the largest element and what the others
// add to it: 0 to log n. Their sum would lose the second where the first is large, so
// callers subtract the first from what they compare first. If the largest is infinite
// or NaN, or x is empty, rest is NaN.
func LogSumExp(x []float32) (most, rest float32) {
	most = MaxOf(x)
	if math.IsInf(float64(most), 0) {
		return most, float32(math.NaN())
	}
	return most, log32(sumExp(x, most))
}

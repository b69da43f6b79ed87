package vec

// Add sets dst[i] = a[i] + b[i].
func Add(dst, a, b []float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.add(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// Sub sets dst[i] = a[i] − b[i].
func Sub(dst, a, b []float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.sub(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// Mul sets dst[i] = a[i]·b[i].
func Mul(dst, a, b []float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.mul(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// MulShifted sets dst[i] = (a[i]−shift)·b[i]; the difference is rounded before the product.
func MulShifted(dst, a, b []float32, shift float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.mulShifted(dst[lo:hi], a[lo:hi], b[lo:hi], shift)
	}
}

// Div sets dst[i] = a[i]/b[i], correctly rounded.
func Div(dst, a, b []float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.div(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// Max sets dst[i] to the larger of a[i] and b[i], to NaN where either is NaN,
// and to b[i] where both are zeros.
func Max(dst, a, b []float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.max(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// Min sets dst[i] to the smaller of a[i] and b[i], to NaN where either is NaN,
// and to b[i] where both are zeros.
func Min(dst, a, b []float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.min(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// AddScalar sets dst[i] = a[i] + s.
func AddScalar(dst, a []float32, s float32) {
	cover(dst, a)
	for lo, hi := range spans(len(dst)) {
		active.addScalar(dst[lo:hi], a[lo:hi], s)
	}
}

// MulScalar sets dst[i] = a[i]·s.
func MulScalar(dst, a []float32, s float32) {
	cover(dst, a)
	for lo, hi := range spans(len(dst)) {
		active.mulScalar(dst[lo:hi], a[lo:hi], s)
	}
}

// DivScalar sets dst[i] = a[i]/s, correctly rounded.
func DivScalar(dst, a []float32, s float32) {
	cover(dst, a)
	for lo, hi := range spans(len(dst)) {
		active.divScalar(dst[lo:hi], a[lo:hi], s)
	}
}

// ScalarDiv sets dst[i] = s/b[i], correctly rounded.
func ScalarDiv(dst []float32, s float32, b []float32) {
	cover(dst, b)
	for lo, hi := range spans(len(dst)) {
		active.scalarDiv(dst[lo:hi], b[lo:hi], s)
	}
}

// ScalarSub sets dst[i] = s − b[i].
func ScalarSub(dst []float32, s float32, b []float32) { Affine(dst, b, 0, -1, s) }

// MaxScalar sets dst[i] to the larger of a[i] and s, to NaN where either is NaN.
func MaxScalar(dst, a []float32, s float32) {
	cover(dst, a)
	for lo, hi := range spans(len(dst)) {
		active.maxScalar(dst[lo:hi], a[lo:hi], s)
	}
}

// MinScalar sets dst[i] to the smaller of a[i] and s, to NaN where either is NaN.
func MinScalar(dst, a []float32, s float32) {
	cover(dst, a)
	for lo, hi := range spans(len(dst)) {
		active.minScalar(dst[lo:hi], a[lo:hi], s)
	}
}

// AtLeast sets dst[i] to 1 where a[i] ≥ b[i], else to 0.
func AtLeast(dst, a, b []float32) {
	cover(dst, a, b)
	for lo, hi := range spans(len(dst)) {
		active.atLeast(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// AtLeastScalar sets dst[i] to 1 where a[i] ≥ s, else to 0.
func AtLeastScalar(dst, a []float32, s float32) {
	cover(dst, a)
	for lo, hi := range spans(len(dst)) {
		active.atLeastScalar(dst[lo:hi], a[lo:hi], s)
	}
}

// ScalarAtLeast sets dst[i] to 1 where s ≥ b[i], else to 0.
func ScalarAtLeast(dst []float32, s float32, b []float32) {
	cover(dst, b)
	for lo, hi := range spans(len(dst)) {
		active.scalarAtLeast(dst[lo:hi], b[lo:hi], s)
	}
}

// Axpy adds s·x[i] to dst[i], with one rounding.
func Axpy(dst []float32, s float32, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.axpy(dst[lo:hi], x[lo:hi], s)
	}
}

// Fma sets dst[i] = a[i]·b[i] + c[i], with one rounding.
func Fma(dst, a, b, c []float32) {
	cover(dst, a, b, c)
	for lo, hi := range spans(len(dst)) {
		active.fma(dst[lo:hi], a[lo:hi], b[lo:hi], c[lo:hi])
	}
}

// Relu sets dst[i] to x[i] where it is not negative, else to zero. NaN stays NaN.
func Relu(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.relu(dst[lo:hi], x[lo:hi])
	}
}

// ReluGrad sets dx[i] to zero where y[i] ≤ 0, else to dy[i]: also where y[i] is NaN,
// which has no slope, as PyTorch does. y is the output of Relu or its input: the sign
// is the same.
func ReluGrad(dx, y, dy []float32) {
	cover(dx, y, dy)
	for lo, hi := range spans(len(dx)) {
		active.reluGrad(dx[lo:hi], y[lo:hi], dy[lo:hi])
	}
}

// Sqrt sets dst[i] = √x[i], correctly rounded.
func Sqrt(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.sqrt(dst[lo:hi], x[lo:hi])
	}
}

// Rsqrt sets dst[i] = 1/√x[i], the quotient and the root each correctly rounded.
func Rsqrt(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.rsqrt(dst[lo:hi], x[lo:hi])
	}
}

// Square sets dst[i] = x[i]².
func Square(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.square(dst[lo:hi], x[lo:hi])
	}
}

// Neg sets dst[i] = −x[i], by the sign bit alone.
func Neg(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.neg(dst[lo:hi], x[lo:hi])
	}
}

// Abs sets dst[i] = |x[i]|, by the sign bit alone.
func Abs(dst, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.abs(dst[lo:hi], x[lo:hi])
	}
}

package quant

import "math"

// Steps are searched for: codes by a candidate, then the step that is the best for these codes, by
// least squares. An element of a large magnitude counts more, since an input that is as likely as
// any other then makes more of its error.

// trials are how many candidates on either side of the plain one are tried, and apart how far each
// is from the next, as a part of a code. Three times as many, a third as far, find steps whose
// errors are 0.3 % less.
const (
	trials = 3
	apart  = 0.3
)

// weights sets w to how much each element counts, its magnitude and the mean one, and wx to that
// times the element. It returns the sums of both.
func weights(w, wx []float64, x []float32) (sw, sx float64) {
	var squares float64
	for _, v := range x {
		squares += float64(float64(v) * float64(v))
	}
	mean := math.Sqrt(squares / float64(len(x)))
	for i, v := range x {
		counts := mean + math.Abs(float64(v))
		times := float64(counts * float64(v))
		w[i], wx[i] = counts, times
		sw += counts
		sx += times
	}
	return sw, sx
}

// affine is a part whose step and floor are searched for: how much elements count, that times the
// elements, the sums of both, and how far elements are above the lowest.
type affine struct {
	w, wx  [32]float64
	above  [32]float32
	sw, sx float64
}

// fitAffine finds a step and a floor, neither negative, so that codes from 0 to 15 times the step,
// less the floor, are near to the elements of x.
func fitAffine(x *[32]float32) (step, floor float32) {
	low, high := min(x[0], 0), x[0]
	for _, v := range x {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	if high == low {
		return 0, -low
	}
	var a affine
	a.sw, a.sx = weights(a.w[:], a.wx[:], x[:])
	for i, v := range x {
		a.above[i] = v - low
	}
	best := math.Inf(1)
	for trial := -trials; trial <= trials; trial++ {
		inverse := (15 + float32(apart*float32(trial))) / (high - low)
		if s, f, err := a.refit(inverse); err < best {
			step, floor, best = s, f, err
		}
	}
	return step, floor
}

// levels are the numbers of codes of 4 bits, and of those above, which are the largest.
var levels = [32]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15}

// refit is the best step and floor for the codes that above*inverse, at most 31, are nearest to,
// and how far off they leave the elements, but for a constant.
func (a *affine) refit(inverse float32) (step, floor float32, err float64) {
	sq, sqq, sqx := a.sums(inverse)
	if sqq == 0 {
		return 0, float32(-a.sx / a.sw), -a.sx * a.sx / a.sw
	}
	base, slope := 0.0, sqx/sqq
	if det := float64(a.sw*sqq) - float64(sq*sq); det > 0 {
		if b := (float64(sqq*a.sx) - float64(sq*sqx)) / det; b < 0 {
			base, slope = b, (float64(a.sw*sqx)-float64(a.sx*sq))/det
		}
	}
	if !(slope > 0) {
		return 0, 0, math.Inf(1)
	}
	return float32(slope), float32(-base), -float64(slope*sqx) - float64(base*a.sx)
}

// sums are those of how much elements count times their codes, times the codes' squares, and times
// codes and elements. Two of each are added up beside each other, for time.
func (a *affine) sums(inverse float32) (sq, sqq, sqx float64) {
	var rq, rqq, rqx float64
	for i := 0; i < len(a.above); i += 2 {
		q := levels[nearest(float32(a.above[i]*inverse))&31]
		r := levels[nearest(float32(a.above[i+1]*inverse))&31]
		wq, wr := float64(a.w[i]*q), float64(a.w[i+1]*r)
		sq, rq = sq+wq, rq+wr
		sqq, rqq = sqq+float64(wq*q), rqq+float64(wr*r)
		sqx, rqx = sqx+float64(a.wx[i]*q), rqx+float64(a.wx[i+1]*r)
	}
	return sq + rq, sqq + rqq, sqx + rqx
}

// fitLinear finds a step, of either sign, so that codes from -32 to 31 times the step are near to
// the elements of x.
func fitLinear(x *[16]float32) (step float32) {
	most := largest(x[:])
	if abs(most) < 0x1p-120 {
		return 0
	}
	var w, wx [16]float64
	weights(w[:], wx[:], x[:])
	best := 0.0
	for trial := -trials; trial <= trials; trial++ {
		inverse := -(32 + float32(apart*float32(trial))) / most
		var sqq, sqx float64
		for i, v := range x {
			q := float64(min(max(nearest(float32(v*inverse)), -32), 31))
			sqq += float64(float64(w[i]*q) * q)
			sqx += float64(wx[i] * q)
		}
		if gain := float64(sqx*sqx) / sqq; gain > best {
			step, best = float32(sqx/sqq), gain
		}
	}
	return step
}

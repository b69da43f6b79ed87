package quant

import "math"

// Steps are searched for: codes by a candidate, then the step that is the best for these codes, by
// least squares. An element of a large magnitude counts more, since an input that is as likely as
// any other then makes more of its error.

// trials are how many candidates on either side of the plain one are tried, and apart how far each
// is from the next, as a part of a code.
const (
	trials = 10
	apart  = 0.1
)

// weights returns how much each element counts: its magnitude and the mean one.
func weights(x []float32) (w [32]float64) {
	var squares float64
	for _, v := range x {
		squares += float64(float64(v) * float64(v))
	}
	mean := math.Sqrt(squares / float64(len(x)))
	for i, v := range x {
		w[i] = mean + math.Abs(float64(v))
	}
	return w
}

// fitAffine finds a step and a floor, neither negative, so that codes from 0 to 15 times the step,
// less the floor, are near to the up to 32 elements of x.
func fitAffine(x []float32) (step, floor float32) {
	low, high := min(x[0], 0), x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	if high == low {
		return 0, -low
	}
	w := weights(x)
	best := math.Inf(1)
	for trial := -trials; trial <= trials; trial++ {
		inverse := (15 + float32(apart*float32(trial))) / (high - low)
		if s, f, err := refitAffine(x, &w, low, inverse); err < best {
			step, floor, best = s, f, err
		}
	}
	return step, floor
}

// refitAffine is the best step and floor for the codes that (x-low)*inverse are nearest to, and how
// far off they leave the elements, but for a constant.
func refitAffine(x []float32, w *[32]float64, low, inverse float32) (step, floor float32,
	err float64) {
	var sw, sx, sq, sqq, sqx float64
	for i, v := range x {
		code := min(max(nearest(float32((v-low)*inverse)), 0), 15)
		q, x := float64(code), float64(v)
		wq := w[i] * q
		sw += w[i]
		sx += float64(w[i] * x)
		sq += float64(wq)
		sqq += float64(wq * q)
		sqx += float64(wq * x)
	}
	if sqq == 0 {
		return 0, float32(-sx / sw), -sx * sx / sw
	}
	base, slope := 0.0, sqx/sqq
	if det := float64(sw*sqq) - float64(sq*sq); det > 0 {
		if b := (float64(sqq*sx) - float64(sq*sqx)) / det; b < 0 {
			base, slope = b, (float64(sw*sqx)-float64(sx*sq))/det
		}
	}
	if !(slope > 0) {
		return 0, 0, math.Inf(1)
	}
	return float32(slope), float32(-base), -float64(slope*sqx) - float64(base*sx)
}

// fitLinear finds a step, of either sign, so that codes from -32 to 31 times the step are near to
// the up to 32 elements of x.
func fitLinear(x []float32) (step float32) {
	most := largest(x)
	if abs(most) < 0x1p-120 {
		return 0
	}
	w := weights(x)
	best := 0.0
	for trial := -trials; trial <= trials; trial++ {
		inverse := -(32 + float32(apart*float32(trial))) / most
		var sqq, sqx float64
		for i, v := range x {
			q := float64(min(max(nearest(float32(v*inverse)), -32), 31))
			wq := w[i] * q
			sqq += float64(wq * q)
			sqx += float64(wq * float64(v))
		}
		if gain := float64(sqx*sqx) / sqq; gain > best {
			step, best = float32(sqx/sqq), gain
		}
	}
	return step
}

package libm

import (
	"math"
	"math/bits"
)

// The functions of this file take and give float32 and are computed in 64 bits, with
// an error of little more than half a unit in the last place, for every operand.

// Sin32 is the sine of x; NaN for infinities.
func Sin32(x float32) float32 {
	if x == 0 {
		return x
	}
	sin, _ := sincos32(x)
	return float32(sin)
}

// Cos32 is the cosine of x; NaN for infinities.
func Cos32(x float32) float32 { _, cos := sincos32(x); return float32(cos) }

func sincos32(x float32) (sin, cos float64) {
	wide := float64(x)
	if !(math.Abs(wide) >= 1<<20) || math.IsInf(wide, 0) {
		return Sincos(wide)
	}
	quadrant, r := reduceHuge(math.Abs(wide))
	sin, cos = Sincos(r)
	switch quadrant {
	case 1:
		sin, cos = cos, -sin
	case 2:
		sin, cos = -sin, -cos
	case 3:
		sin, cos = -cos, sin
	}
	return math.Copysign(1, wide) * sin, cos
}

// twoOverPi is the bits of 2/π behind the point.
var twoOverPi = [5]uint64{
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0,
}

// reduceHuge is x = 4k·π/2 + quadrant·π/2 + r with |r| ≤ π/4 for a float32 x of 2²⁰
// or more (Payne and Hanek, "Radian reduction for trigonometric functions", 1983):
// of 2/π only the bits matter that give quarter turns and parts of them.
func reduceHuge(x float64) (quadrant int, r float64) {
	m, e := math.Frexp(x)
	mantissa, shift := uint64(m*(1<<24)), e-24-2 // x·2/π = mantissa·2/π·2^(shift+2)
	hi, lo := bitsFrom(shift), bitsFrom(shift+64)
	carry, low := bits.Mul64(mantissa, lo)
	turn := mantissa*hi + carry // in units of 2⁻⁶² quarter turns, whole circles dropped
	part := float64(int64(turn<<2)>>2) + float64(float64(low)*0x1p-64)
	return int((turn + 1<<61) >> 62), float64(part * (math.Pi / 2 * 0x1p-62))
}

// bitsFrom is 64 bits of 2/π from one on; those before the point are zeros.
func bitsFrom(at int) uint64 {
	if at < 0 {
		return twoOverPi[0] >> -at
	}
	word, off := at/64, at%64
	if off == 0 {
		return twoOverPi[word]
	}
	return twoOverPi[word]<<off | twoOverPi[word+1]>>(64-off)
}

// Log1p32 is log(1+x): −Inf for −1, NaN below.
func Log1p32(x float32) float32 {
	if x == 0 || math.IsInf(float64(x), 1) {
		return x
	}
	return float32(Log1p(float64(x)))
}

// Expm1of32 is eˣ − 1.
func Expm1of32(x float32) float32 {
	wide := float64(x)
	if !(math.Abs(wide) < 1e-5) {
		return float32(Exp(wide) - 1)
	}
	if x == 0 {
		return x
	}
	square := float64(wide * wide)
	return float32(wide + float64(0.5*square) + float64(square*float64(wide*(1./6))))
}

// Softplus32 is log(1+eˣ).
func Softplus32(x float32) float32 {
	wide := float64(x)
	return float32(math.Max(wide, 0) + Log1p(Exp(-math.Abs(wide))))
}

// Pow32 is x^y; see [PowSigned].
func Pow32(x, y float32) float32 { return float32(PowSigned(float64(x), float64(y))) }

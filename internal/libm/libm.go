// Package libm has the elementary functions that results depend on, with the same
// bits on every architecture. Package math's are in assembly on some, and where a
// compiler may fuse a product and a sum, which rounds once instead of twice, the
// bits of its Go versions differ as well. Here every product is converted to its own
// type, float64(a*b), which forbids that. Of package math only what is exact or
// correctly rounded is used.
//
// Errors are below 1.5 units in the last place, unless a function says otherwise.
package libm

import "math"

// log 2 in two parts, of which the first has so few bits that its product with the
// exponent of a number is exact.
const (
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = 0x1.a39ef35793c76p-33
)

// Exp is eˣ.
func Exp(x float64) float64 {
	const overflows, vanishes = 710, -746
	switch {
	case x != x:
		return x
	case x > overflows:
		return math.Inf(1)
	case x < vanishes:
		return 0
	}
	n := math.Floor(float64(x*math.Log2E) + 0.5)
	r := (x - float64(n*ln2Hi)) - float64(n*ln2Lo)
	tail := float64(float64(r*r) * horner(r, expTaylor))
	return math.Ldexp(1+(r+tail), int(n))
}

// expTaylor are 1/k! for k from 13 to 2: e^r = 1 + r + r²·p(r) for |r| ≤ ½·log 2.
var expTaylor = []float64{
	1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
	1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2,
}

// horner evaluates the polynomial with coefficients c, highest power first.
func horner(x float64, c []float64) float64 {
	p := c[0]
	for _, a := range c[1:] {
		p = float64(p*x) + a
	}
	return p
}

// Log is the natural logarithm: −Inf for zero, NaN for negative numbers.
func Log(x float64) float64 {
	switch {
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x != x || math.IsInf(x, 1):
		return x
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	k, f := float64(e), m-1
	s := f / (2 + f)
	z := float64(s * s)
	half := float64(float64(0.5*f) * f)
	rest := float64(s*(half+float64(z*horner(z, logTaylor)))) + float64(k*ln2Lo)
	return float64(k*ln2Hi) - ((half - rest) - f)
}

// logTaylor are 2/(2k+1) for k from 11 to 1: log((1+s)/(1−s)) = 2s + s·z·p(z) with
// z = s², |s| ≤ 0.1717.
var logTaylor = []float64{
	2. / 23, 2. / 21, 2. / 19, 2. / 17, 2. / 15, 2. / 13, 2. / 11, 2. / 9, 2. / 7, 2. / 5, 2. / 3,
}

// Log1p is log(1+x) for a finite x, within 3 units in the last place. What the
// sum loses of x, the quotient makes up for (Kahan).
func Log1p(x float64) float64 {
	u := 1 + x
	if u == 1 {
		return x
	}
	return float64(Log(u)*x) / (u - 1)
}

// Pow is x^y for x ≥ 0; 0^y is zero. Its relative error is some units in the last
// place, growing with the logarithm of y, and more for |y| ≥ 2³¹.
func Pow(x, y float64) float64 {
	if x == 0 {
		return 0
	}
	if math.IsInf(x, 1) || !(math.Abs(y) < 1<<31) {
		return Exp(float64(y * Log(x)))
	}
	whole, part := math.Modf(math.Abs(y))
	if part > 0.5 {
		whole, part = whole+1, part-1
	}
	p, e := 1.0, 0 // the result is p·2^e
	if part != 0 {
		p = Exp(float64(part * Log(x)))
	}
	m, k := math.Frexp(x)
	for i := int64(whole); i != 0; i >>= 1 {
		if i&1 == 1 {
			p, e = float64(p*m), e+k
		}
		if m, k = float64(m*m), 2*k; m < 0.5 {
			m, k = 2*m, k-1
		}
	}
	if y < 0 {
		p, e = 1/p, -e
	}
	return math.Ldexp(p, e)
}

// π/2 in three parts, of which the first two have 33 bits.
const (
	halfPiHi  = 0x1.921fb544p+0
	halfPiMid = 0x1.0b4611a6p-34
	halfPiLo  = 0x1.3198a2e037073p-69
)

// Sincos is the sine and the cosine of |x| < 2²⁰, each within 2⁻⁵² of the truth; NaN
// for others.
func Sincos(x float64) (sin, cos float64) {
	if !(math.Abs(x) < 1<<20) {
		return math.NaN(), math.NaN()
	}
	n := math.Floor(float64(x*(2/math.Pi)) + 0.5)
	r := ((x - float64(n*halfPiHi)) - float64(n*halfPiMid)) - float64(n*halfPiLo)
	z := float64(r * r)
	s := r + float64(float64(r*z)*horner(z, sinTaylor))
	c := 1 + float64(z*horner(z, cosTaylor))
	switch int(n) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// Sin is the sine of |x| < 2²⁰; see [Sincos].
func Sin(x float64) float64 { sin, _ := Sincos(x); return sin }

// Cos is the cosine of |x| < 2²⁰; see [Sincos].
func Cos(x float64) float64 { _, cos := Sincos(x); return cos }

// sin r = r + r·z·p(z) and cos r = 1 + z·p(z), with z = r² and |r| ≤ π/4: ±1/k! for k
// from 17 and from 16 down.
var (
	sinTaylor = []float64{
		1. / 355687428096000, -1. / 1307674368000, 1. / 6227020800, -1. / 39916800, 1. / 362880,
		-1. / 5040, 1. / 120, -1. / 6,
	}
	cosTaylor = []float64{
		1. / 20922789888000, -1. / 87178291200, 1. / 479001600, -1. / 3628800, 1. / 40320,
		-1. / 720, 1. / 24, -1. / 2,
	}
)

package libm

import "math"

// PowSigned is x^y with the special cases of C's pow (ISO/IEC 9899:2018, F.10.4.4): 1 for
// x = 1 or y = 0 whatever the other is, NaN for a finite x < 0 and a y that is no
// integer. Its error is that of [Pow].
func PowSigned(x, y float64) float64 {
	a := math.Abs(x)
	switch {
	case x == 1 || y == 0:
		return 1
	case x != x || y != y:
		return math.NaN()
	case math.IsInf(y, 0):
		return powOfInfinity(a, y > 0)
	}
	whole := y == math.Trunc(y)
	odd := whole && math.Abs(y) < 1<<53 && int64(y)&1 == 1
	if x < 0 && !whole && !math.IsInf(a, 1) {
		return math.NaN()
	}
	p := powOfPositive(a, y)
	if odd && math.Signbit(x) {
		p = -p
	}
	return p
}

// powOfPositive is a^b for a ≥ 0, infinite too, and a finite b that is not zero.
func powOfPositive(a, b float64) float64 {
	switch {
	case a == 0 && b < 0, math.IsInf(a, 1) && b > 0:
		return math.Inf(1)
	case a == 0 || math.IsInf(a, 1):
		return 0
	}
	return Pow(a, b)
}

// powOfInfinity is a^∞ if up, else a^−∞.
func powOfInfinity(a float64, up bool) float64 {
	switch {
	case a == 1:
		return 1
	case (a > 1) == up:
		return math.Inf(1)
	}
	return 0
}

// Expm1 is eˣ − 1, within 2 units in the last place: of x = n·log 2 + r, 2ⁿ·(e^r − 1) and 2ⁿ − 1,
// which is exact.
func Expm1(x float64) float64 {
	if !(math.Abs(x) < 40) { // where 1 is less than half a unit, or hides the rest
		return Exp(x) - 1
	}
	n := math.Floor(float64(x*math.Log2E) + 0.5)
	r := (x - float64(n*ln2Hi)) - float64(n*ln2Lo)
	t := r + float64(float64(r*r)*horner(r, expTaylor))
	if n == 0 {
		return t
	}
	p := math.Ldexp(1, int(n))
	return float64(p*t) + (p - 1)
}

// Tanh is the hyperbolic tangent, within 4 units in the last place.
func Tanh(x float64) float64 {
	t := Expm1(-2 * math.Abs(x))
	return math.Copysign(-t/(2+t), x)
}

// Sigmoid is 1/(1+e⁻ˣ), within 3 units in the last place.
func Sigmoid(x float64) float64 {
	e := Exp(-math.Abs(x))
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

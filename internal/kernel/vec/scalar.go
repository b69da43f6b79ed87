package vec

import "math"

// This file is the arithmetic of the package on one element. The assembly
// performs the same operations in the same order, so that every implementation
// gives the same bits. A conversion around a product, float32(a*b), keeps the
// compiler from fusing it with a later sum where the architecture lets it.

// fma32 returns a·b + c with one rounding. The product is exact in float64; the
// sum is rounded there and again to float32, which is wrong only if the first
// rounding lands on a tie of the second or the result is subnormal.
func fma32(a, b, c float32) float32 {
	p := float64(float64(a) * float64(b))
	s := p + float64(c)
	if math.Float64bits(s)<<35 != 1<<63 && math.Abs(s) >= 0x1p-126 {
		return float32(s)
	}
	return roundOdd(p, float64(c), s)
}

// roundOdd returns p + c rounded to float32 where s is the sum rounded to
// float64. An inexact s is replaced by whichever of its neighbours around the
// exact sum is odd, from which the second rounding is right (Boldo and
// Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
func roundOdd(p, c, s float64) float32 {
	t := s - p
	rest := (p - (s - t)) + (c - t)
	bits := math.Float64bits(s)
	if rest != 0 && rest == rest && bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}

// max32 is the larger of a and b, NaN if either is, b if both are zeros.
func max32(a, b float32) float32 {
	if a > b || a != a {
		return a
	}
	return b
}

// min32 is the smaller of a and b, NaN if either is, b if both are zeros.
func min32(a, b float32) float32 {
	if a < b || a != a {
		return a
	}
	return b
}

func add32(a, b float32) float32 { return a + b }

func div32(a, b float32) float32 { return a / b }

func atLeast32(a, b float32) float32 {
	if a >= b {
		return 1
	}
	return 0
}

func relu32(x float32) float32 {
	if 0 > x {
		return 0
	}
	return x
}

func abs32(x float32) float32  { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
func neg32(x float32) float32  { return math.Float32frombits(math.Float32bits(x) ^ 1<<31) }
func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func rsqrt32(x float32) float32  { return 1 / sqrt32(x) }
func square32(x float32) float32 { return x * x }

func reluGrad32(y, dy float32) float32 {
	if y <= 0 {
		return 0
	}
	return dy
}

func tanhGrad32(y, dy float32) float32    { return dy * fma32(-y, y, 1) }
func sigmoidGrad32(y, dy float32) float32 { return dy * fma32(-y, y, y) }
func geluGrad32(x, dy float32) float32    { return dy * geluSlope32(x) }

// clamp32 limits x to [lo, hi]; NaN stays NaN.
func clamp32(x, lo, hi float32) float32 { return min32(max32(x, lo), hi) }

// horner evaluates the polynomial with coefficients c, highest power first.
func horner(x float32, c []float32) float32 {
	p := c[0]
	for _, a := range c[1:] {
		p = fma32(p, x, a)
	}
	return p
}

// The constants of the exponential. log 2 is split so that n·ln2Hi is exact for
// every n that occurs; adding and subtracting roundMagic rounds to an integer.
const (
	log2E      = 0x1.715476p+0
	roundMagic = 0x1.8p+23
	ln2Hi      = 0x1.63p-1
	ln2Lo      = -0x1.bd0106p-13
	expLow     = -110 // e^x is zero here and below
	expHigh    = 89   // e^x is +Inf here and above
)

// Minimax polynomials, the relative error on the interval in brackets.
var (
	// e^r = 1 + r + r²·p(r) for |r| ≤ ½·log 2, relative to e^r − 1 [1.4e-8].
	expPoly = []float32{0x1.6ac8a2p-10, 0x1.122c0cp-7, 0x1.555798p-5, 0x1.5554aap-3, 0x1.fffffep-2}
	// log((1+s)/(1−s)) = 2s + s·z·p(z), z = s², |s| ≤ 0.1717 [1.4e-9].
	logPoly = []float32{0x1.321c12p-2, 0x1.995cc2p-2, 0x1.55557cp-1}
	// Φ(−t) = e^(−t²/2)·u·p(t·u), u = 1/(1 + millsScale·t), 0 ≤ t ≤ 14 [4.3e-9].
	millsPoly = []float32{
		0x1.b47e08p-22, -0x1.4259bp-18, 0x1.04e496p-16, 0x1.f76e6ep-18, 0x1.d9293p-15,
		-0x1.288f3ap-10, -0x1.1ec836p-9, 0x1.c7bf5ep-5, -0x1.fdd566p-3, 0.5,
	}
	// erf x = x + x·p(x²) for |x| ≤ 1 [1.4e-9].
	erfPoly = []float32{
		0x1.4771fcp-14, -0x1.a3515ep-11, 0x1.53f224p-8, -0x1.b7f71ap-6, 0x1.ce2ce6p-4,
		-0x1.81273ep-2, 0x1.06eba8p-3,
	}
)

const (
	millsScale = 0x1.333334p-2
	millsEnd   = 15 // Φ(−t) is zero in float32 here and above
)

// reduce returns n and r with x = n·log 2 + r, n an integer and |r| ≤ ½·log 2.
func reduce(x float32) (n, r float32) {
	n = fma32(x, log2E, roundMagic) - roundMagic
	return n, fma32(n, -ln2Lo, fma32(n, -ln2Hi, x))
}

// scale returns p·2ⁿ with one rounding; |n| may pass the exponents of float32 by half.
func scale(p, n float32) float32 {
	k := int32(n)
	h := k >> 1
	return float32(p * pow2(h) * pow2(k-h))
}

// pow2 returns 2ᵏ for a normal result.
func pow2(k int32) float32 { return math.Float32frombits(uint32(k+127) << 23) }

// expReduced returns e^r for |r| ≤ ½·log 2.
func expReduced(r float32) float32 { return fma32(fma32(horner(r, expPoly), r, 1), r, 1) }

func exp32(x float32) float32 {
	n, r := reduce(clamp32(x, expLow, expHigh))
	return scale(expReduced(r), n)
}

func log32(x float32) float32 {
	m, less := x, float32(0)
	if x < 0x1p-126 {
		m, less = x*0x1p23, 23
	}
	const sqrtHalf = 0x3f3504f3 // the bits of √½: the mantissa is in [√½, √2)
	i := int32(math.Float32bits(m)) - sqrtHalf
	k := float32(i>>23) - less
	f := math.Float32frombits(uint32(i&0x7fffff+sqrtHalf)) - 1
	s := f / (2 + f)
	z := float32(s * s)
	h := float32(float32(0.5*f) * f)
	t := fma32(s, fma32(z, horner(z, logPoly), h), float32(k*ln2Lo))
	t = fma32(k, ln2Hi, (t-h)+f)
	switch {
	case x < 0:
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	case x <= math.MaxFloat32:
		return t
	}
	return x // +Inf and NaN
}

// tanh32 uses tanh|x| = −u/(2+u) with u = e^(−2|x|) − 1, computed without
// cancellation.
func tanh32(x float32) float32 {
	const saturated = -40 // e^y − 1 is −1 in float32 here and below
	n, r := reduce(max32(float32(-2*abs32(x)), saturated))
	p := fma32(horner(r, expPoly), float32(r*r), r)
	s := pow2(int32(n))
	u := fma32(s, p, s-1)
	return copySign(-u/(2+u), x)
}

// copySign returns |x| with the sign of y.
func copySign(x, y float32) float32 {
	const sign = 1 << 31
	return math.Float32frombits(math.Float32bits(x)&^sign | math.Float32bits(y)&sign)
}

// sigmoid32 takes the exponential of −|x|, which cannot overflow.
func sigmoid32(x float32) float32 {
	e := exp32(neg32(abs32(x)))
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

// normalTail returns m, p and n such that Φ(−t) = m·p·2ⁿ and e^(−t²/2) = p·2ⁿ
// for 0 ≤ t ≤ millsEnd; scaling last keeps subnormal results exact. The rounding
// error of t² is carried into the reduced argument, or it would be multiplied by
// the exponential's slope.
func normalTail(t float32) (m, p, n float32) {
	u := 1 / fma32(t, millsScale, 1)
	h := float32(t * t)
	l := fma32(t, t, -h)
	n, r := reduce(float32(-0.5 * h))
	return float32(u * horner(float32(t*u), millsPoly)), expReduced(fma32(l, -0.5, r)), n
}

// gelu32 is max(x, 0) − |x|·Φ(−|x|), which equals x·Φ(x).
func gelu32(x float32) float32 {
	t := min32(abs32(x), millsEnd)
	m, p, n := normalTail(t)
	return relu32(x) - scale(float32(t*m)*p, n)
}

// geluSlope32 returns Φ(x) + x·φ(x) through the same of |x|: the two add up to 1.
func geluSlope32(x float32) float32 {
	const invSqrt2Pi = 0x1.988454p-2
	t := min32(abs32(x), millsEnd)
	m, p, n := normalTail(t)
	s := scale(float32(fma32(-t, invSqrt2Pi, m)*p), n)
	if x > 0 {
		return 1 - s
	}
	return s
}

func erf32(x float32) float32 {
	const sqrt2 = 0x1.6a09e6p+0
	a := abs32(x)
	if a < 1 {
		return fma32(horner(float32(x*x), erfPoly), x, x)
	}
	m, p, n := normalTail(min32(float32(a*sqrt2), millsEnd))
	return copySign(fma32(scale(float32(m*p), n), -2, 1), x)
}

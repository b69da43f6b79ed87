package main

// This file mirrors scalar.go of package vec, operation for operation.

const (
	signBit  = 1 << 31
	infinity = 0x7f800000
	nan      = 0x7fc00000

	log2E      = 0x1.715476p+0
	roundMagic = 0x1.8p+23
	ln2Hi      = 0x1.63p-1
	ln2Lo      = -0x1.bd0106p-13
	expLow     = -110
	expHigh    = 89
	millsScale = 0x1.333334p-2
	millsEnd   = 15
	vanishing  = -154 // p·2ⁿ is zero for all n less and all p that occur, which are under 2⁴
)

var (
	expPoly = []float64{0x1.6ac8a2p-10, 0x1.122c0cp-7, 0x1.555798p-5, 0x1.5554aap-3,
		0x1.fffffep-2}
	logPoly   = []float64{0x1.321c12p-2, 0x1.995cc2p-2, 0x1.55557cp-1}
	millsPoly = []float64{
		0x1.b47e08p-22, -0x1.4259bp-18, 0x1.04e496p-16, 0x1.f76e6ep-18, 0x1.d9293p-15,
		-0x1.288f3ap-10, -0x1.1ec836p-9, 0x1.c7bf5ep-5, -0x1.fdd566p-3, 0.5,
	}
	erfPoly = []float64{
		0x1.4771fcp-14, -0x1.a3515ep-11, 0x1.53f224p-8, -0x1.b7f71ap-6, 0x1.ce2ce6p-4,
		-0x1.81273ep-2, 0x1.06eba8p-3,
	}
)

// horner evaluates the polynomial with coefficients c, highest power first.
func (b *builder) horner(x *value, c []float64) *value {
	p := b.f(c[0])
	for _, a := range c[1:] {
		p = b.fma(p, x, b.f(a))
	}
	return p
}

func (b *builder) abs(x *value) *value { return b.and(x, b.bits(signBit-1)) }
func (b *builder) neg(x *value) *value { return b.xor(x, b.bits(signBit)) }

// copySign is |x| with the sign of y.
func (b *builder) copySign(x, y *value) *value {
	return b.or(b.abs(x), b.and(y, b.bits(signBit)))
}

// max and min are NaN where either operand is.
func (b *builder) max(x, y *value) *value {
	return b.sel(b.cmp(unordered, x, x), x, b.above(x, y))
}

func (b *builder) min(x, y *value) *value {
	return b.sel(b.cmp(unordered, x, x), x, b.below(x, y))
}

// atLeast is 1 where x ≥ y, else 0.
func (b *builder) atLeast(x, y *value) *value { return b.only(b.cmp(lessEqual, y, x), b.f(1)) }

func (b *builder) relu(x *value) *value { return b.above(b.bits(0), x) }

// reduce returns n and r with x = n·log 2 + r, n an integer and |r| ≤ ½·log 2.
func (b *builder) reduce(x *value) (n, r *value) {
	n = b.sub(b.fma(x, b.f(log2E), b.f(roundMagic)), b.f(roundMagic))
	return n, b.fma(n, b.f(-ln2Lo), b.fma(n, b.f(-ln2Hi), x))
}

// pow2 returns 2ᵏ for an integer k and a normal result.
func (b *builder) pow2(k *value) *value { return b.shl(b.addi(k, b.bits(127)), 23) }

// scale returns p·2ⁿ with one rounding. Without an instruction for it, results
// that vanish are multiplied by zero, because underflow takes processors long.
func (b *builder) scale(p, n *value) *value {
	if b.masks {
		return b.op("VSCALEFPS", p, n)
	}
	k := b.toInt(n)
	h := b.sar(k, 1)
	rest := b.op("VANDNPS", b.cmp(less, n, b.f(vanishing)), b.pow2(b.subi(k, h)))
	return b.mul(b.mul(p, b.pow2(h)), rest)
}

func (b *builder) expReduced(r *value) *value {
	p := b.horner(r, expPoly)
	return b.fma(b.fma(p, r, b.f(1)), r, b.f(1))
}

func (b *builder) exp(x *value) *value {
	x = b.below(b.f(expHigh), b.above(b.f(expLow), x))
	n, r := b.reduce(x)
	return b.scale(b.expReduced(r), n)
}

func (b *builder) log(x *value) *value {
	const sqrtHalf = 0x3f3504f3
	tiny := b.cmp(less, x, b.f(0x1p-126))
	m := b.sel(tiny, b.mul(x, b.f(0x1p23)), x)
	i := b.subi(m, b.bits(sqrtHalf))
	k := b.sub(b.fromInt(b.sar(i, 23)), b.sel(tiny, b.f(23), b.f(0)))
	f := b.sub(b.addi(b.and(i, b.bits(0x7fffff)), b.bits(sqrtHalf)), b.f(1))
	s := b.div(f, b.add(f, b.f(2)))
	z := b.mul(s, s)
	h := b.mul(b.mul(f, b.f(0.5)), f)
	t := b.fma(s, b.fma(z, b.horner(z, logPoly), h), b.mul(k, b.f(ln2Lo)))
	t = b.fma(k, b.f(ln2Hi), b.add(b.sub(t, h), f))
	t = b.sel(b.cmp(less, x, b.bits(infinity)), t, x)
	t = b.sel(b.cmp(less, x, b.f(0)), b.bits(nan), t)
	return b.sel(b.cmp(equal, x, b.f(0)), b.bits(signBit|infinity), t)
}

func (b *builder) tanh(x *value) *value {
	const saturated = -40
	n, r := b.reduce(b.above(b.f(saturated), b.mul(b.abs(x), b.f(-2))))
	p := b.fma(b.horner(r, expPoly), b.mul(r, r), r)
	s := b.pow2(b.toInt(n))
	u := b.fma(s, p, b.sub(s, b.f(1)))
	return b.copySign(b.div(u, b.add(u, b.f(2))), x)
}

func (b *builder) sigmoid(x *value) *value {
	e := b.exp(b.or(x, b.bits(signBit)))
	return b.div(b.sel(b.cmp(less, x, b.f(0)), e, b.f(1)), b.add(e, b.f(1)))
}

// normalTail returns m, p and n such that Φ(−t) = m·p·2ⁿ and e^(−t²/2) = p·2ⁿ.
func (b *builder) normalTail(t *value) (m, p, n *value) {
	u := b.div(b.f(1), b.fma(t, b.f(millsScale), b.f(1)))
	h := b.mul(t, t)
	l := b.fma(t, t, b.neg(h))
	n, r := b.reduce(b.mul(h, b.f(-0.5)))
	m = b.mul(u, b.horner(b.mul(t, u), millsPoly))
	return m, b.expReduced(b.fma(l, b.f(-0.5), r)), n
}

func (b *builder) gelu(x *value) *value {
	t := b.below(b.f(millsEnd), b.abs(x))
	m, p, n := b.normalTail(t)
	return b.sub(b.relu(x), b.scale(b.mul(b.mul(t, m), p), n))
}

// geluGrad is dy·(Φ(x) + x·φ(x)).
func (b *builder) geluGrad(x, dy *value) *value {
	const invSqrt2Pi = 0x1.988454p-2
	t := b.below(b.f(millsEnd), b.abs(x))
	m, p, n := b.normalTail(t)
	s := b.scale(b.mul(b.fnma(t, b.f(invSqrt2Pi), m), p), n)
	return b.mul(dy, b.sel(b.cmp(less, b.f(0), x), b.sub(b.f(1), s), s))
}

func (b *builder) erf(x *value) *value {
	const sqrt2 = 0x1.6a09e6p+0
	a := b.abs(x)
	m, p, n := b.normalTail(b.below(b.f(millsEnd), b.mul(a, b.f(sqrt2))))
	far := b.copySign(b.fma(b.scale(b.mul(m, p), n), b.f(-2), b.f(1)), x)
	near := b.fma(b.horner(b.mul(x, x), erfPoly), x, x)
	return b.sel(b.cmp(less, a, b.f(1)), near, far)
}

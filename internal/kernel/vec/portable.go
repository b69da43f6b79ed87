package vec

import "math"

// portable is the implementation in plain Go, the reference of the others.
func portable() kernels {
	return complete(kernels{
		name: "portable",

		elementwise: elementwise{
			add: addGo, sub: subGo, mul: mulGo, div: divGo, max: each2(max32), min: each2(min32),
			addScalar: addScalarGo, mulScalar: mulScalarGo, fma: fmaGo,
			divScalar: withScalar(div32), maxScalar: withScalar(max32),
			minScalar:     withScalar(min32),
			atLeastScalar: withScalar(atLeast32),
			scalarDiv:     withScalar(func(b, s float32) float32 { return s / b }),
			scalarAtLeast: withScalar(func(b, s float32) float32 { return atLeast32(s, b) }),
			atLeast:       each2(atLeast32),
			relu:          each(relu32), sqrt: each(sqrt32), rsqrt: each(rsqrt32),
			square: each(square32), neg: each(neg32), abs: each(abs32),
			exp: each(exp32), log: each(log32), tanh: each(tanh32),
			sigmoid: each(sigmoid32), erf: each(erf32), gelu: each(gelu32),
			reluGrad: each2(reluGrad32), tanhGrad: each2(tanhGrad32),
			sigmoidGrad: each2(sigmoidGrad32), geluGrad: each2(geluGrad32),

			expAffine: expAffineGo, affine: affineGo, mulScaled: mulScaledGo,
			mulShifted: mulShiftedGo,
			normalize:  normalizeGo, normGrad: normGradGo,

			dropout: dropoutGo,
		},

		axpy: axpyGo,

		sum: sumGo, sumSquares: sumSquaresGo, maxOf: maxOfGo, maxAbsOf: maxAbsOfGo,
		dot: dotGo, sumSquaresFrom: sumSquaresFromGo, dotFrom: dotFromGo,
		expSum: expSumGo, sumExp: sumExpGo,

		momentum: momentumGo, adam: adamGo,

		philox: philoxGo,

		bf16FromF32: each(bf16FromF32), f32FromBF16: each(f32FromBF16),
		f16FromF32: each(f16FromF32), f32FromF16: each(f32FromF16),

		bf16Low: drawn(bf16Low), bf16High: drawn(bf16High),
		signed8: drawn(signed8), unsigned8: drawn(unsigned8),
		fromSigned8: each(fromSigned8), fromUnsigned8: each(fromUnsigned8),
	})
}

// each makes a kernel of a function of one element.
func each[D, S any](f func(S) D) func(dst []D, x []S) {
	return func(dst []D, x []S) {
		for i, v := range x {
			dst[i] = f(v)
		}
	}
}

// each2 makes a kernel of a function of two elements.
func each2(f func(a, b float32) float32) func(dst, a, b []float32) {
	return func(dst, a, b []float32) {
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
}

// withScalar makes a kernel of a function of an element and a scalar.
func withScalar(f func(a, s float32) float32) func(dst, a []float32, s float32) {
	return func(dst, a []float32, s float32) {
		for i, v := range a {
			dst[i] = f(v, s)
		}
	}
}

func addGo(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func subGo(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mulGo(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func divGo(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

func addScalarGo(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = v + s
	}
}

func mulScalarGo(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = v * s
	}
}

func axpyGo(dst, x []float32, s float32) {
	for i, v := range x {
		dst[i] = fma32(s, v, dst[i])
	}
}

func fmaGo(dst, a, b, c []float32) {
	for i := range dst {
		dst[i] = fma32(a[i], b[i], c[i])
	}
}

func expAffineGo(dst, x []float32, shift, factor, offset float32) {
	for i, v := range x {
		dst[i] = fma32(exp32(v-shift), factor, offset)
	}
}

func affineGo(dst, x []float32, shift, factor, offset float32) {
	for i, v := range x {
		dst[i] = fma32(v-shift, factor, offset)
	}
}

func mulScaledGo(dst, x, scale []float32, s float32) {
	for i, v := range x {
		dst[i] = float32(v*s) * scale[i]
	}
}

func mulShiftedGo(dst, a, b []float32, s float32) {
	for i, v := range a {
		dst[i] = (v - s) * b[i]
	}
}

func normalizeGo(dst, x, scale, bias []float32, shift, factor float32) {
	for i, v := range x {
		dst[i] = fma32((v-shift)*factor, scale[i], bias[i])
	}
}

func normGradGo(dst, x, scale, d []float32, shift, mean, factor, along float32) {
	for i, v := range x {
		g := float32(float32(d[i]*scale[i])-mean) * factor
		dst[i] = fma32(v-shift, along, g)
	}
}

// lanes are the accumulators of a reduction: element i of a span goes to lane i mod 64.
type lanes [64]float32

// fold combines the lanes by halves: lane i with lane i+32, then i+16, and so on.
func (l *lanes) fold(op func(a, b float32) float32) float32 {
	for w := len(l) / 2; w > 0; w /= 2 {
		for i := range w {
			l[i] = op(l[i], l[i+w])
		}
	}
	return l[0]
}

func sumGo(x []float32) float32 {
	var l lanes
	for i, v := range x {
		l[i%len(l)] += v
	}
	return l.fold(add32)
}

func sumSquaresGo(x []float32) float32 { return dotGo(x, x) }

func dotGo(a, b []float32) float32 {
	var l lanes
	for i, v := range a {
		l[i%len(l)] = fma32(v, b[i], l[i%len(l)])
	}
	return l.fold(add32)
}

func sumSquaresFromGo(x []float32, shift float32) float32 {
	var l lanes
	for i, v := range x {
		l[i%len(l)] = fma32(v-shift, v-shift, l[i%len(l)])
	}
	return l.fold(add32)
}

func dotFromGo(a, b, x []float32, shift float32) float32 {
	var l lanes
	for i, v := range x {
		l[i%len(l)] = fma32(a[i]*b[i], v-shift, l[i%len(l)])
	}
	return l.fold(add32)
}

func maxOfGo(x []float32) float32 {
	var l lanes
	for i := range l {
		l[i] = float32(math.Inf(-1))
	}
	for i, v := range x {
		l[i%len(l)] = max32(v, l[i%len(l)])
	}
	return l.fold(max32)
}

func maxAbsOfGo(x []float32) float32 {
	var l lanes
	for i, v := range x {
		l[i%len(l)] = max32(abs32(v), l[i%len(l)])
	}
	return l.fold(max32)
}

func expSumGo(dst, x []float32, shift float32) float32 {
	var l lanes
	for i, v := range x {
		dst[i] = exp32(v - shift)
		l[i%len(l)] += dst[i]
	}
	return l.fold(add32)
}

func sumExpGo(x []float32, shift float32) float32 {
	var l lanes
	for i, v := range x {
		l[i%len(l)] += exp32(v - shift)
	}
	return l.fold(add32)
}

func momentumGo(w, m, g []float32, step, mu float32) {
	for i := range w {
		m[i] = fma32(mu, m[i], g[i])
		w[i] = fma32(step, m[i], w[i])
	}
}

func adamGo(w, m, v, g []float32, step, beta1, keep1, beta2, keep2, root, eps float32) {
	for i := range w {
		m[i] = fma32(beta1, m[i], float32(keep1*g[i]))
		v[i] = fma32(beta2, v[i], float32(float32(keep2*g[i])*g[i]))
		w[i] = fma32(step, m[i]/fma32(sqrt32(v[i]), root, eps), w[i])
	}
}

func philoxGo(dst []uint32, key, index uint64) {
	for len(dst) > 0 {
		words := philoxBlock(key, index/4)
		n := copy(dst, words[index%4:])
		dst, index = dst[n:], index+uint64(n)
	}
}

func dropoutGo(dst, x []float32, scale float32, limit uint32, key, offset uint64) {
	var words [4]uint32
	for i, v := range x {
		e := offset + uint64(i)
		if i == 0 || e%4 == 0 {
			words = philoxBlock(key, e/4)
		}
		dst[i] = 0
		if words[e%4] <= limit {
			dst[i] = v * scale
		}
	}
}

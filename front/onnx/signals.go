package onnx

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// signals are operators of sounds.
var signals = each(map[string]func(n *node){
	"DFT": dft, "STFT": shortDFT, "MelWeightMatrix": mel,
	"HannWindow": window(0.5, 0.5, 0), "HammingWindow": window(25.0/46, 21.0/46, 0),
	"BlackmanWindow": window(0.42, 0.5, 0.08),
})

// window is a − b·cos(2πi/n) + c·cos(4πi/n).
func window(a, b, c float64) func(n *node) {
	return func(n *node) {
		size := int(n.scalar(0, 0))
		if size < 1 || size > math.MaxInt32 {
			fail("a window of %d elements", size)
		}
		to := typed(n.int("output_datatype", 1))
		length := float64(size)
		if !n.flag("periodic", true) {
			length--
		}
		v := tensor.New(tensor.Of(tensor.F64, size))
		for i := range v.F64() {
			at := 2 * math.Pi * float64(i) / length
			v.F64()[i] = a - float64(b*math.Cos(at)) + float64(c*math.Cos(2*at))
		}
		n.giveKnown(v.To(to))
	}
}

// transform is a Fourier transform along an axis: how many elements it has, of which how many are
// given, and what it gives.
type transform struct {
	length            int
	inverse, onesided bool
}

// dft is a product with a matrix.
func dft(n *node) {
	x := n.wide(0)
	rank := x.Type().Rank()
	a := -2
	if n.version() < 20 {
		a = n.int("axis", 1)
	} else if n.has(2) {
		a = int(n.scalar(2, 0))
	}
	if a = axis(a, rank); a == rank-1 {
		fail("axis %d has the parts of numbers", a)
	}
	t := transform{inverse: n.flag("inverse", false), onesided: n.flag("onesided", false)}
	t.length = x.Type().Size(a)
	if t.inverse && t.onesided {
		t.length = 2 * (t.length - 1)
	}
	t.length = int(n.scalar(1, float64(t.length)))
	x = ops.Transpose(x, moved(a, rank-2, rank)...)
	y := t.apply(n, x)
	n.give(n.narrow(ops.Transpose(y, moved(rank-2, a, rank)...)))
}

// apply transforms [… n parts], parts being 1 of real numbers, and 2 of complex ones.
func (t transform) apply(n *node, x value) value {
	sizes := slices.Clone(x.Type().Sizes())
	rank := len(sizes)
	have, parts := sizes[rank-2], sizes[rank-1]
	if t.length < 1 || parts < 1 || parts > 2 || t.inverse && t.onesided && parts == 1 {
		fail("a transform of %d elements of %s", t.length, x.Type())
	}
	m, given := t.matrix(min(have, t.length), parts)
	x = ops.Slice(x, rank-2, 0, given)
	x = ops.ReshapeSizes(x, elems(sizes[:rank-2]), given*parts)
	y := ops.MatMul(x, n.b.g.Constant("transform", m))
	sizes[rank-1] = 2
	if t.inverse && t.onesided {
		sizes[rank-1] = 1
	}
	sizes[rank-2] = m.Type.Size(1) / sizes[rank-1]
	return ops.ReshapeSizes(y, sizes...)
}

// matrix is f32[given·parts outputs·parts], and how many elements it takes. Of half a spectrum,
// whose other half is its mirror image, an inverse is real, and what is in it twice counts twice.
func (t transform) matrix(given, parts int) (m tensor.View, taken int) {
	outputs, out := t.length, 2
	switch {
	case t.inverse && t.onesided:
		given, out = min(given, t.length/2+1), 1
	case t.onesided:
		outputs = t.length/2 + 1
	}
	m = tensor.New(tensor.Of(tensor.F32, given*parts, outputs*out))
	for i := range given {
		weight, sign := 1.0, -1.0
		if t.inverse {
			weight, sign = 1/float64(t.length), 1
			if t.onesided && i > 0 && 2*i < t.length {
				weight *= 2
			}
		}
		for k := range outputs {
			sin, cos := math.Sincos(2 * math.Pi * float64(i*k%t.length) / float64(t.length))
			re, im := weight*cos, weight*sign*sin
			at := m.F32()[i*parts*outputs*out+k*out:]
			at[0] = float32(re)
			if out == 2 {
				at[1] = float32(im)
			}
			if parts == 2 {
				at = at[outputs*out:]
				at[0] = float32(-im)
				if out == 2 {
					at[1] = float32(re)
				}
			}
		}
	}
	return m, given
}

// shortDFT transforms pieces of a signal [batch n parts].
func shortDFT(n *node) {
	x := n.wide(0)
	step := int(n.scalar(1, 0))
	length := 0
	if n.has(2) {
		length = n.x(2).Type().Elems()
	}
	length = int(n.scalar(3, float64(length)))
	if x.Type().Rank() != 3 || step < 1 || length < 1 || length > x.Type().Size(1) {
		fail("frames of %d elements, %d apart, of %s", length, step, x.Type())
	}
	count := (x.Type().Size(1)-length)/step + 1
	var list []int
	for i := range count {
		for k := range length {
			list = append(list, i*step+k)
		}
	}
	y := ops.Take(x, n.b.indices(list), 1)
	y = ops.ReshapeSizes(y, x.Type().Size(0), count, length, x.Type().Size(2))
	if n.has(2) {
		y = ops.Mul(y, ops.ReshapeSizes(n.wide(2), length, 1))
	}
	t := transform{length: length, onesided: n.flag("onesided", true)}
	n.give(n.narrow(t.apply(n, y)))
}

// mel is the matrix that makes bands, of equal width to the ear, of a spectrum.
func mel(n *node) {
	bands, length, rate := int(n.scalar(0, 0)), int(n.scalar(1, 0)), n.scalar(2, 0)
	lo, hi := n.scalar(3, 0), n.scalar(4, 0)
	to := typed(n.int("output_datatype", 1))
	if bands < 1 || length < 1 || rate <= 0 || lo < 0 || hi < lo {
		fail("%d bands of %v to %v Hz of %d elements at %v Hz", bands, lo, hi, length, rate)
	}
	ear := func(hertz float64) float64 { return float64(2595 * math.Log10(1+hertz/700)) }
	step := (ear(hi) - ear(lo)) / float64(bands+2)
	bins := make([]int, bands+2)
	for i := range bins {
		hertz := 700 * (math.Pow(10, (float64(float64(i)*step)+ear(lo))/2595) - 1)
		bins[i] = int(math.Floor(float64(length+1) * hertz / rate))
	}
	if most := length / 2; bins[bands+1] > most {
		fail("%v Hz are element %d of a spectrum, which has %d", hi, bins[bands+1], most+1)
	}
	v := tensor.New(tensor.Of(tensor.F64, length/2+1, bands))
	for i := range bands {
		for k := bins[i]; k < bins[i+2]; k++ {
			up, down := bins[i+1]-bins[i], bins[i+2]-bins[i+1]
			if k < bins[i+1] {
				v.F64()[k*bands+i] = float64(k-bins[i]) / float64(up)
			} else {
				v.F64()[k*bands+i] = float64(bins[i+2]-k) / float64(down)
			}
		}
		v.F64()[bins[i+1]*bands+i] = 1
	}
	n.giveKnown(v.To(to))
}

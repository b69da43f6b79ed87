package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// lengths covers every tail of every loop, and whole blocks beyond.
func lengths() []int {
	ns := []int{1000, 2048, 4099}
	for n := range 140 {
		ns = append(ns, n)
	}
	return ns
}

// special are the values around which implementations differ first.
func special() []float32 {
	inf := float32(math.Inf(1))
	xs := []float32{
		0, inf, float32(math.NaN()), 1, 2, 0.5, math.MaxFloat32, 0x1p-126, 0x1p-149,
		0x1.fffffcp-127,
		88.72283, 88.72284, 89, 103.97208, 103.97209, 105, 87.33655, 9.010913, 3.919206, 15, 14.2,
		0.3466,
		0.70710677, 0.7071068, 1.4142135, 65504, 65519.996, 65520, 6.1035156e-05, 5.9604645e-08,
		2.9802322e-08,
	}
	for _, x := range xs {
		xs = append(xs, -x)
	}
	return xs
}

// inputs returns n numbers of many magnitudes, among them special ones if wild.
func inputs(r *rand.Rand, n int, wild bool) []float32 {
	xs, odd := make([]float32, n), special()
	for i := range xs {
		xs[i] = float32(r.NormFloat64() * math.Exp(3*r.NormFloat64()))
		if wild && r.IntN(4) == 0 {
			xs[i] = odd[r.IntN(len(odd))]
		}
	}
	return xs
}

// same reports whether two numbers have the same bits or both are NaN.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// differ describes the first difference of two slices, or is empty.
func differ(got, want []float32) string {
	for i := range want {
		if !same(got[i], want[i]) {
			return fmt.Sprintf("element %d of %d: %g (%#08x), want %g (%#08x)",
				i, len(want), got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
	return ""
}

// call runs one kernel: it reads and writes the given slices, and returns every
// slice and scalar that results.
type call struct {
	name string
	run  func(k kernels, s [4][]float32) []float32
}

func unary(name string, f func(k kernels) func(dst, x []float32)) call {
	return call{name, func(k kernels, s [4][]float32) []float32 {
		f(k)(s[0], s[1])
		return s[0]
	}}
}

func binary(name string, f func(k kernels) func(dst, a, b []float32)) call {
	return call{name, func(k kernels, s [4][]float32) []float32 {
		f(k)(s[0], s[1], s[2])
		return s[0]
	}}
}

func reduced(name string, f func(k kernels) func(x []float32) float32) call {
	return call{name, func(k kernels, s [4][]float32) []float32 { return []float32{f(k)(s[1])} }}
}

func withNumber(name string, f func(k kernels) func(dst, a []float32, s float32)) call {
	return call{name, func(k kernels, s [4][]float32) []float32 {
		f(k)(s[0], s[1], 0.3)
		return s[0]
	}}
}

func maps() []call {
	return []call{
		binary("add", func(k kernels) func(dst, a, b []float32) { return k.add }),
		binary("sub", func(k kernels) func(dst, a, b []float32) { return k.sub }),
		binary("mul", func(k kernels) func(dst, a, b []float32) { return k.mul }),
		binary("div", func(k kernels) func(dst, a, b []float32) { return k.div }),
		binary("max", func(k kernels) func(dst, a, b []float32) { return k.max }),
		binary("min", func(k kernels) func(dst, a, b []float32) { return k.min }),
		binary("reluGrad", func(k kernels) func(dst, a, b []float32) { return k.reluGrad }),
		binary("tanhGrad", func(k kernels) func(dst, a, b []float32) { return k.tanhGrad }),
		binary("sigmoidGrad", func(k kernels) func(dst, a, b []float32) { return k.sigmoidGrad }),
		binary("geluGrad", func(k kernels) func(dst, a, b []float32) { return k.geluGrad }),
		unary("relu", func(k kernels) func(dst, x []float32) { return k.relu }),
		unary("sqrt", func(k kernels) func(dst, x []float32) { return k.sqrt }),
		unary("rsqrt", func(k kernels) func(dst, x []float32) { return k.rsqrt }),
		unary("square", func(k kernels) func(dst, x []float32) { return k.square }),
		unary("neg", func(k kernels) func(dst, x []float32) { return k.neg }),
		unary("abs", func(k kernels) func(dst, x []float32) { return k.abs }),
		unary("exp", func(k kernels) func(dst, x []float32) { return k.exp }),
		unary("log", func(k kernels) func(dst, x []float32) { return k.log }),
		unary("tanh", func(k kernels) func(dst, x []float32) { return k.tanh }),
		unary("sigmoid", func(k kernels) func(dst, x []float32) { return k.sigmoid }),
		unary("erf", func(k kernels) func(dst, x []float32) { return k.erf }),
		unary("gelu", func(k kernels) func(dst, x []float32) { return k.gelu }),
		withNumber("addScalar", func(k kernels) func(dst, a []float32, s float32) {
			return k.addScalar
		}),
		withNumber("mulScalar", func(k kernels) func(dst, a []float32, s float32) {
			return k.mulScalar
		}),
		binary("atLeast", func(k kernels) func(dst, a, b []float32) { return k.atLeast }),
		withNumber("divScalar", func(k kernels) func(dst, a []float32, s float32) {
			return k.divScalar
		}),
		withNumber("scalarDiv", func(k kernels) func(dst, a []float32, s float32) {
			return k.scalarDiv
		}),
		withNumber("maxScalar", func(k kernels) func(dst, a []float32, s float32) {
			return k.maxScalar
		}),
		withNumber("minScalar", func(k kernels) func(dst, a []float32, s float32) {
			return k.minScalar
		}),
		withNumber("atLeastScalar", func(k kernels) func(dst, a []float32, s float32) {
			return k.atLeastScalar
		}),
		withNumber("scalarAtLeast", func(k kernels) func(dst, a []float32, s float32) {
			return k.scalarAtLeast
		}),
		{"affine", func(k kernels, s [4][]float32) []float32 {
			k.affine(s[0], s[1], 0.1, 1.7,
				-3)
			return s[0]
		}},
		{"expAffine", func(k kernels, s [4][]float32) []float32 {
			k.expAffine(s[0], s[1], 0.1, 1.7,
				-3)
			return s[0]
		}},
		{"mulScaled", func(k kernels, s [4][]float32) []float32 {
			k.mulScaled(s[0], s[1], s[2],
				1.7)
			return s[0]
		}},
		{"mulShifted", func(k kernels, s [4][]float32) []float32 {
			k.mulShifted(s[0], s[1], s[2],
				1.7)
			return s[0]
		}},
		{"normalize", func(k kernels, s [4][]float32) []float32 {
			k.normalize(s[0], s[1], s[2], s[3], 0.1, 1.7)
			return s[0]
		}},
		{"normGrad", func(k kernels, s [4][]float32) []float32 {
			k.normGrad(s[0], s[1], s[2], s[3], 0.1, -0.2, 1.7, 0.3)
			return s[0]
		}},
		{"axpy", func(k kernels, s [4][]float32) []float32 {
			k.axpy(s[0], s[1],
				0.3)
			return s[0]
		}},
		{"fma", func(k kernels, s [4][]float32) []float32 {
			k.fma(s[0], s[1], s[2],
				s[3])
			return s[0]
		}},
		{"momentum", func(k kernels, s [4][]float32) []float32 {
			k.momentum(s[0], s[1], s[2], -0.01, 0.9)
			return append(s[0], s[1]...)
		}},
		{"adam", func(k kernels, s [4][]float32) []float32 {
			k.abs(s[2], s[2])
			k.adam(s[0], s[1], s[2], s[3], -0.001, 0.9, 0.1, 0.999, 0.001, 1.2, 1e-8)
			return append(append(s[0], s[1]...), s[2]...)
		}},
		{"dropout", func(k kernels, s [4][]float32) []float32 {
			k.dropout(s[0], s[1], 1.25, 1<<32*8/10, 0x123456789abcdef0, 1<<34-64)
			return s[0]
		}},
	}
}

func two(a, b float32) []float32 { return []float32{a, b} }

func folds() []call {
	return []call{
		reduced("sum", func(k kernels) func(x []float32) float32 { return k.sum }),
		reduced("sumSquares", func(k kernels) func(x []float32) float32 { return k.sumSquares }),
		reduced("maxOf", func(k kernels) func(x []float32) float32 { return k.maxOf }),
		{"dot", func(k kernels, s [4][]float32) []float32 { return []float32{k.dot(s[1], s[2])} }},
		{"sumSquaresFrom", func(k kernels, s [4][]float32) []float32 {
			return []float32{k.sumSquaresFrom(s[1], 1.5)}
		}},
		{"dotFrom", func(k kernels, s [4][]float32) []float32 {
			return []float32{k.dotFrom(s[1],
				s[2], s[3], 1.5)}
		}},
		{"sumAndDot", func(k kernels, s [4][]float32) []float32 {
			return two(k.sumAndDot(s[1], s[2],
				s[3]))
		}},
		{"squaresAndDot", func(k kernels, s [4][]float32) []float32 {
			return two(k.squaresAndDot(s[1], s[2], s[3], 1.5))
		}},
		{"sumExp", func(k kernels, s [4][]float32) []float32 {
			return []float32{k.sumExp(s[1],
				1.5)}
		}},
		{"expSum", func(k kernels, s [4][]float32) []float32 {
			return append(s[0],
				k.expSum(s[0], s[1], 1.5))
		}},
	}
}

// arguments returns four slices of length n that start off elements into their arrays.
func arguments(seed uint64, n, off int, wild bool) (s [4][]float32) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := range s {
		s[i] = append(make([]float32, off, off+n), inputs(r, n, wild)...)[off:]
	}
	return s
}

// eachKernel runs f for every implementation and each of the calls.
func eachKernel(t *testing.T, calls []call, f func(t *testing.T, k kernels, c call)) {
	for _, k := range available() {
		for _, c := range calls {
			t.Run(k.name+"/"+c.name, func(t *testing.T) { f(t, k, c) })
		}
	}
}

// TestImplementationsGiveTheSameBits compares each with the portable one.
func TestImplementationsGiveTheSameBits(t *testing.T) {
	eachKernel(t, append(maps(), folds()...), func(t *testing.T, k kernels, c call) {
		for i, n := range lengths() {
			for _, wild := range []bool{false, true} {
				got := c.run(k, arguments(1, n, i%17, wild))
				want := c.run(portable(), arguments(1, n, 0, wild))
				if d := differ(got, want); d != "" {
					t.Fatalf("wild %v: %s", wild, d)
				}
			}
		}
	})
}

// TestAnElementDoesNotDependOnItsPlace computes every element alone and within
// slices that start at every offset modulo a vector.
func TestAnElementDoesNotDependOnItsPlace(t *testing.T) {
	longtest.Skip(t)
	const n = 150
	var calls []call
	for _, c := range maps() {
		if c.name != "dropout" { // depends on the place by design
			calls = append(calls, c)
		}
	}
	eachKernel(t, calls, func(t *testing.T, k kernels, c call) {
		alone := make([]float32, n)
		for i := range alone {
			alone[i] = c.run(k, part(arguments(3, n, 0, true), i, i+1))[0]
		}
		for off := range 16 {
			got := c.run(k, part(arguments(3, n, off, true), off, n))
			if d := differ(got[:n-off], alone[off:]); d != "" {
				t.Fatalf("from %d: %s", off, d)
			}
		}
	})
}

// part cuts all arguments to [lo, hi).
func part(s [4][]float32, lo, hi int) [4][]float32 {
	for i := range s {
		s[i] = s[i][lo:hi:hi]
	}
	return s
}

// TestReductionsDependOnTheLengthOnly moves the operands in memory.
func TestReductionsDependOnTheLengthOnly(t *testing.T) {
	eachKernel(t, folds(), func(t *testing.T, k kernels, c call) {
		for _, n := range []int{1, 7, 63, 64, 65, 200, 1027} {
			want := c.run(k, arguments(4, n, 0, false))
			for off := 1; off < 16; off++ {
				if d := differ(c.run(k, arguments(4, n, off, false)), want); d != "" {
					t.Fatalf("length %d, offset %d: %s", n, off, d)
				}
			}
		}
	})
}

// TestKernelsWriteTheirDestinationOnly surrounds the operands with guards.
func TestKernelsWriteTheirDestinationOnly(t *testing.T) {
	const guard, margin = 12345.5, 70
	eachKernel(t, append(maps(), folds()...), func(t *testing.T, k kernels, c call) {
		for n := range 140 {
			var whole, inner [4][]float32
			for i, x := range arguments(5, n, 0, false) {
				whole[i] = make([]float32, n+2*margin)
				for j := range whole[i] {
					whole[i][j] = guard
				}
				inner[i] = whole[i][margin : margin+n : margin+n]
				copy(inner[i], x)
			}
			c.run(k, inner)
			for i, w := range whole {
				for j, x := range w {
					if (j < margin || j >= margin+n) && x != guard {
						t.Fatalf("length %d: slice %d written at %d", n, i, j-margin)
					}
				}
			}
		}
	})
}

// TestDestinationMayBeASource gives the destination as each source in turn.
func TestDestinationMayBeASource(t *testing.T) {
	eachKernel(t, maps(), func(t *testing.T, k kernels, c call) {
		if c.name == "momentum" || c.name == "adam" {
			t.Skip("all operands are written")
		}
		for i := 1; i < 4; i++ {
			s, apart := arguments(6, 100, 0, true), arguments(6, 100, 0, true)
			s[0] = s[i]
			copy(apart[0], apart[i])
			if d := differ(c.run(k, s), c.run(k, apart)); d != "" {
				t.Fatalf("source %d: %s", i, d)
			}
		}
	})
}

package vec

import (
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// atLine returns four slices of n elements that begin at cache lines and are
// surrounded by guards, of which check tells whether they were written.
func atLine(seed uint64, n int, wild bool) (s [4][]float32, check func() bool) {
	const guard, margin = 12345.5, 80
	var all [][]float32
	for i, x := range arguments(seed, n, 0, wild) {
		whole := make([]float32, n+2*margin)
		for j := range whole {
			whole[j] = guard
		}
		lo := 64 + toLine(whole)
		s[i] = whole[lo : lo+n : lo+n]
		copy(s[i], x)
		all = append(all, whole[:lo], whole[lo+n:])
	}
	return s, func() bool {
		for _, x := range all {
			for _, v := range x {
				if v != guard {
					return false
				}
			}
		}
		return true
	}
}

// TestFarKernelsGiveTheSameBits runs every kernel that has a far version.
func TestFarKernelsGiveTheSameBits(t *testing.T) {
	eachKernel(t, maps(), func(t *testing.T, k kernels, c call) {
		if k.far == nil {
			t.Skip("has no far kernels")
		}
		far := k
		far.elementwise = *k.far
		for _, n := range []int{0, 128, 256, 1024} {
			for _, wild := range []bool{false, true} {
				s, intact := atLine(1, n, wild)
				want := c.run(k, arguments(1, n, 0, wild))
				if d := differ(c.run(far, s), want); d != "" {
					t.Fatalf("wild %v: %s", wild, d)
				}
				storeFence()
				if !intact() {
					t.Fatalf("%d elements: a guard was written", n)
				}
			}
		}
	})
}

// farCall is a function and its far version.
type farCall struct {
	name      string
	near, far func(s [4][]float32)
}

func farCalls() []farCall {
	f := Far()
	return []farCall{
		{"Add", func(s [4][]float32) { Add(s[0], s[1], s[2]) }, func(s [4][]float32) {
			f.Add(s[0],
				s[1], s[2])
		}},
		{"ReluGrad", func(s [4][]float32) {
			ReluGrad(s[0], s[1],
				s[2])
		}, func(s [4][]float32) { f.ReluGrad(s[0], s[1], s[2]) }},
		{"Exp", func(s [4][]float32) { Exp(s[0], s[1]) }, func(s [4][]float32) {
			f.Exp(s[0],
				s[1])
		}},
		{"MulScalar", func(s [4][]float32) {
			MulScalar(s[0], s[1],
				0.3)
		}, func(s [4][]float32) { f.MulScalar(s[0], s[1], 0.3) }},
		{"Dropout", func(s [4][]float32) {
			Dropout(s[0], s[1], 0.3, 7,
				64)
		}, func(s [4][]float32) { DropoutFar(s[0], s[1], 0.3, 7, 64) }},
		{"Dropout from 3", func(s [4][]float32) {
			Dropout(s[0], s[1], 0.3, 7,
				3)
		}, func(s [4][]float32) { DropoutFar(s[0], s[1], 0.3, 7, 3) }},
		{"Dropout of all", func(s [4][]float32) {
			Dropout(s[0], s[1], 0, 7,
				3)
		}, func(s [4][]float32) { DropoutFar(s[0], s[1], 0, 7, 3) }},
	}
}

// TestFarFunctionsGiveTheSameBits for destinations that begin anywhere, of any
// length, also over a source.
func TestFarFunctionsGiveTheSameBits(t *testing.T) {
	longtest.Skip(t)
	for _, c := range farCalls() {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 500, 1027, span + 200} {
				for _, off := range []int{0, 1, 8, 15} {
					want, got := arguments(2, n, 0, false), arguments(2, n, off, false)
					c.near(want)
					c.far(got)
					if d := differ(got[0], want[0]); d != "" {
						t.Fatalf("%d elements, offset %d: %s", n, off, d)
					}
					got = arguments(2, n, off, false)
					got[0] = got[1]
					c.far(got)
					if d := differ(got[0], want[0]); d != "" {
						t.Fatalf("%d elements in place: %s", n, d)
					}
				}
			}
		})
	}
}

// TestFarFunctionsAreComplete: none is nil, with and without far kernels.
func TestFarFunctionsAreComplete(t *testing.T) {
	f := Far()
	s := arguments(3, 200, 0, false)
	for _, g := range []func(dst, a, b []float32){
		f.Add, f.Sub, f.Mul, f.Div, f.Max, f.AtLeast, f.ReluGrad, f.TanhGrad, f.SigmoidGrad,
		f.GeluGrad,
	} {
		g(s[0], s[1], s[2])
	}
	for _, g := range []func(dst, x []float32){
		f.Relu, f.Sqrt, f.Rsqrt, f.Square, f.Neg, f.Exp, f.Log, f.Tanh, f.Sigmoid, f.Gelu,
	} {
		g(s[0], s[1])
	}
	f.AddScalar(s[0], s[1], 2)
	f.MulScalar(s[0], s[1], 2)
}

package vec

import (
	"flag"
	"math"
	"testing"
)

var everyFloat = flag.Bool("every-float", false,
	"measure accuracy over all 2³² inputs (minutes a function)")

// functions lists the transcendental functions, the float64 reference of each,
// and the bound in units in the last place that its documentation states.
var functions = []struct {
	name  string
	f     func(dst, x []float32)
	exact func(float64) float64
	ulp   float64
}{
	{"Exp", Exp, math.Exp, 0.91},
	{"Log", Log, math.Log, 0.84},
	{"Tanh", Tanh, math.Tanh, 2.50},
	{"Sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2.41},
	{"Erf", Erf, math.Erf, 1.36},
	{"Gelu", Gelu, func(x float64) float64 { return max(x, -100) * normalBelow(x) }, 6.9},
}

// normalBelow is Φ(x).
func normalBelow(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// TestErrorIsWithinTheDocumentedBound samples all exponents and signs, and
// densely the interval in which the functions are neither zero nor saturated.
func TestErrorIsWithinTheDocumentedBound(t *testing.T) {
	for _, fn := range functions {
		t.Run(fn.name, func(t *testing.T) {
			t.Parallel()
			worst, at := 0.0, float32(0)
			x, y := make([]float32, 4096), make([]float32, 4096)
			for next := samples(); next(x); {
				fn.f(y, x)
				for i := range x {
					if e := ulps(y[i], fn.exact(float64(x[i]))); !(e <= worst) {
						worst, at = e, x[i]
					}
				}
			}
			t.Logf("largest error %.3f ulp at %g (%#08x)", worst, at, math.Float32bits(at))
			if !(worst <= fn.ulp) {
				t.Errorf("largest error %g ulp at %g, documented %g", worst, at, fn.ulp)
			}
		})
	}
}

// TestGeluGradIsTheSlope bounds the error absolutely, as the slope crosses zero.
func TestGeluGradIsTheSlope(t *testing.T) {
	const bound = 1.2e-7
	for x := float32(-20); x < 20; x += 1.0 / 4096 {
		z := float64(x)
		exact := normalBelow(z) + z*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
		if got := geluSlope32(x); !(math.Abs(float64(got)-exact) <= bound) {
			t.Fatalf("slope at %g: %g, want %g", x, got, exact)
		}
	}
}

// samples returns a function that fills a slice with further inputs until there are no more.
func samples() func(x []float32) bool {
	const bitStride, fine = 8111, 1.0 / 4096
	stride := uint64(bitStride)
	if *everyFloat {
		stride = 1
	}
	bits, dense := uint64(0), -110.0
	return func(x []float32) bool {
		for i := range x {
			if bits < 1<<32 {
				x[i] = math.Float32frombits(uint32(bits))
				bits += stride
			} else {
				x[i] = float32(dense)
				dense += fine
			}
		}
		return dense < 110
	}
}

// ulps is the distance of got from the exact value in units in the last place
// of float32 there. Infinities, NaN and overflow must be met exactly.
func ulps(got float32, exact float64) float64 {
	if rounded := float32(exact); rounded-rounded != 0 {
		if got == rounded || got != got && rounded != rounded {
			return 0
		}
		return math.Inf(1)
	}
	return math.Abs(float64(got)-exact) / unit(exact)
}

// unit is the spacing of float32 at x.
func unit(x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, max(e-24, -149))
}

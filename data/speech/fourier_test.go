package speech

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	gonum "gonum.org/v1/gonum/dsp/fourier"
)

// TestFourierIsGonums compares with an independent transform.
func TestFourierIsGonums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f, other := newFourier(), gonum.NewFFT(window)
	for range 100 {
		var x [window]float64
		norm := 0.0
		for i := range x {
			x[i] = rng.NormFloat64()
			norm += x[i] * x[i]
		}
		var got [bins]complex128
		f.transform(&got, &x)
		for k, want := range other.Coefficients(nil, x[:]) {
			if cmplx.Abs(got[k]-want) > 1e-14*math.Sqrt(norm) {
				t.Fatalf("bin %d is %v, want %v", k, got[k], want)
			}
		}
	}
}

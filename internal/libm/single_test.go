package libm_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/internal/longtest"
)

// apart32 is the distance of a float32 from the truth in units in the last place.
func apart32(got float32, want float64) float64 {
	near := float32(want)
	if got == near || got != got && want != want {
		return 0
	}
	unit := float64(math.Nextafter32(float32(math.Abs(float64(near))), math.MaxFloat32)) -
		math.Abs(float64(near))
	return math.Abs(float64(got)-want) / unit
}

// single is a function of float32 and its truth.
type single struct {
	name  string
	got   func(float32) float32
	truth func(float64) float64
}

var singles = []single{
	{"sin", libm.Sin32, math.Sin}, {"cos", libm.Cos32, math.Cos},
	{"log1p", libm.Log1p32, math.Log1p}, {"expm1", libm.Expm1of32, math.Expm1},
	{"softplus", libm.Softplus32, func(x float64) float64 {
		return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	}},
}

// TestSinglesAgreeWithMath: over all floats, each result is the nearest, or the next
// where the truth is close to the middle.
func TestSinglesAgreeWithMath(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range longtest.Count(300_000, 100_000_000) {
		x := math.Float32frombits(rng.Uint32())
		if rng.IntN(2) == 0 {
			x = float32(rng.NormFloat64() * 10)
		}
		for _, f := range singles {
			if want := f.truth(float64(x)); apart32(f.got(x), want) > 0.501 {
				t.Fatalf("%s(%g) is %g, want %g", f.name, x, f.got(x), want)
			}
		}
		y := float32(rng.NormFloat64() * 4)
		if rng.IntN(2) == 0 {
			y = float32(rng.IntN(41) - 20)
		}
		if want := math.Pow(float64(x), float64(y)); apart32(libm.Pow32(x, y), want) > 0.501 {
			t.Fatalf("pow(%g, %g) is %g, want %g", x, y, libm.Pow32(x, y), want)
		}
	}
}

// TestSinglesAtTheirBorders: zeros keep their sign, and what has no value is NaN.
func TestSinglesAtTheirBorders(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	zero := float32(math.Copysign(0, -1))
	points := []float32{zero, 0, -1, 1, -2, 2, 0.5, -0.5, inf, -inf, nan, math.MaxFloat32, -1e38,
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 1 << 20, 1<<20 - 0.0625,
		-1 << 20, 3, -3, 1<<24 + 2, 1<<24 - 1, 1e-5, -1e-5, 20, 89, -110, 1e-30, 3.1415927,
		11, 22, 355}
	same := func(what string, x, got float32, want float64) {
		near := float32(want)
		if apart32(got, want) > 0.501 || got == 0 && want == 0 &&
			math.Signbit(float64(got)) != math.Signbit(float64(near)) {
			t.Errorf("%s(%g) is %g, want %g", what, x, got, near)
		}
	}
	for _, x := range points {
		for _, f := range singles {
			same(f.name, x, f.got(x), f.truth(float64(x)))
		}
		for _, y := range points {
			same("pow", x, libm.Pow32(x, y), math.Pow(float64(x), float64(y)))
		}
	}
}

// TestBitsOfTwoOverPi: the reduction of huge angles is right for the floats that are
// closest to a multiple of a quarter turn and for the largest ones.
func TestBitsOfTwoOverPi(t *testing.T) {
	pi, _, err := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494"+
		"4592307816406286208998628034825342117067982148086513282306647093844609550582231725359408",
		10, 600, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	half := new(big.Float).Quo(pi, big.NewFloat(2))
	for _, x := range []float32{16367173 * 0x1p+72, math.MaxFloat32, 1 << 20, 0x1.6ac5b2p+27,
		0x1.921fb6p+100, 0x1.fffffep+127, 0x1.2d97c8p+106} {
		quotient := new(big.Float).SetPrec(600).Quo(big.NewFloat(float64(x)), half)
		whole, _ := quotient.Int(nil)
		rest := new(big.Float).SetPrec(600).Sub(quotient, new(big.Float).SetInt(whole))
		r, _ := rest.Mul(rest, half).Float64()
		sin, cos := math.Sincos(r)
		switch new(big.Int).And(whole, big.NewInt(3)).Int64() {
		case 1:
			sin, cos = cos, -sin
		case 2:
			sin, cos = -sin, -cos
		case 3:
			sin, cos = -cos, sin
		}
		if apart32(libm.Sin32(x), sin) > 0.501 || apart32(libm.Cos32(x), cos) > 0.501 {
			t.Errorf("at %g: %g and %g, want %g and %g", x, libm.Sin32(x), libm.Cos32(x), sin, cos)
		}
	}
}

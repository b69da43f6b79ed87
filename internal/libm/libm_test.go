package libm_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/internal/longtest"
)

// apart is the distance of two numbers in units in the last place of want.
func apart(got, want float64) float64 {
	if got == want || got != got && want != want {
		return 0
	}
	return math.Abs(got-want) / (math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want))
}

// TestFunctionsAgreeWithMath compares with package math, whose errors are below a
// unit.
func TestFunctionsAgreeWithMath(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	for range longtest.Count(200_000, 20_000_000) {
		x := between(-750, 720)
		near(t, "exp", x, libm.Exp(x), math.Exp(x), 2)
		near(t, "exp", x/720, libm.Exp(x/720), math.Exp(x/720), 2)
		x = math.Ldexp(between(0.5, 1), rng.IntN(2045)-1020)
		near(t, "log", x, libm.Log(x), math.Log(x), 2)
		x = between(0.5, 2)
		near(t, "log", x, libm.Log(x), math.Log(x), 2)
		x = math.Ldexp(between(0.5, 1), rng.IntN(80)-70)
		near(t, "log1p", x, libm.Log1p(x), math.Log1p(x), 4)
		x = between(0, math.Ldexp(1, rng.IntN(20)))
		y := between(-8, 8)
		near(t, "pow", x, libm.Pow(x, y), math.Pow(x, y), 16)
		x = between(-1, 1) * math.Ldexp(1, rng.IntN(20))
		sin, cos := libm.Sincos(x)
		if math.Abs(sin-math.Sin(x)) > 0x1p-52 || math.Abs(cos-math.Cos(x)) > 0x1p-52 {
			t.Fatalf("sincos %g is %g and %g, want %g and %g", x, sin, cos, math.Sin(x),
				math.Cos(x))
		}
	}
}

func near(t *testing.T, what string, x, got, want, most float64) {
	t.Helper()
	if apart(got, want) > most {
		t.Fatalf("%s %g is %g, want %g: %g units apart", what, x, got, want, apart(got, want))
	}
}

// TestSpecialValues: zeros, infinities and NaN.
func TestSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"exp 0", libm.Exp(0), 1}, {"exp −Inf", libm.Exp(-inf), 0},
		{"exp +Inf", libm.Exp(inf), inf}, {"exp NaN", libm.Exp(nan), nan},
		{"exp 1e300", libm.Exp(1e300), inf}, {"exp −1e300", libm.Exp(-1e300), 0},
		{"log 0", libm.Log(0), -inf}, {"log 1", libm.Log(1), 0}, {"log −1", libm.Log(-1), nan},
		{"log 2⁻¹⁰⁷⁴", libm.Log(0x1p-1074), -1074 * math.Ln2},
		{"log +Inf", libm.Log(inf), inf}, {"log NaN", libm.Log(nan), nan},
		{"log1p 0", libm.Log1p(0), 0}, {"log1p 1e-300", libm.Log1p(1e-300), 1e-300},
		{"pow 0 3", libm.Pow(0, 3), 0}, {"pow 3 0", libm.Pow(3, 0), 1},
		{"pow 2 −2", libm.Pow(2, -2), 0.25}, {"pow 0.9 1e9", libm.Pow(0.9, 1e9), 0},
		{"pow 0.9 +Inf", libm.Pow(0.9, inf), 0}, {"pow +Inf −0.8", libm.Pow(inf, -0.8), 0},
		{"sin 0", libm.Sin(0), 0}, {"cos 0", libm.Cos(0), 1},
		{"sin +Inf", libm.Sin(inf), nan}, {"cos 1e300", libm.Cos(1e300), nan},
	} {
		if apart(c.got, c.want) != 0 {
			t.Errorf("%s is %g, want %g", c.what, c.got, c.want)
		}
	}
}

// TestNormalIsTheStandardLibrarys: models start from the same weights as ever.
func TestNormalIsTheStandardLibrarys(t *testing.T) {
	a, b := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(3, 4))
	for i := range longtest.Count(2_000_000, 100_000_000) {
		got, want := libm.Normal(a), b.NormFloat64()
		if float32(got) != float32(want) {
			t.Fatalf("draw %d is %g, want %g", i, got, want)
		}
	}
}

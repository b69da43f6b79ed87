package vec

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestFma32IsCorrectlyRounded compares with exact arithmetic, on numbers whose
// sum is near a tie of the rounding to float32 or in the subnormal range.
func TestFma32IsCorrectlyRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() float32 {
		return math.Float32frombits(r.Uint32()&0x807f8fff | uint32(64+r.IntN(128))<<23)
	}
	for range 200_000 {
		a, b := number(), number()
		// An addend of up to half a unit of the product, plus or minus a little.
		c := float32(math.Ldexp(float64(a)*float64(b), 24-r.IntN(60)))
		if r.IntN(2) == 0 {
			c = math.Float32frombits(math.Float32bits(c) & 0xffff0000)
		}
		if r.IntN(4) == 0 {
			a, b = a*0x1p-60, b*0x1p-60
			c *= 0x1p-120
		}
		checkFma(t, a, b, c)
	}
}

func checkFma(t *testing.T, a, b, c float32) {
	t.Helper()
	if math.IsInf(float64(c), 0) {
		return
	}
	exact := new(big.Float).SetPrec(600).SetFloat64(float64(a))
	exact.Mul(exact, new(big.Float).SetFloat64(float64(b)))
	exact.Add(exact, new(big.Float).SetFloat64(float64(c)))
	if want, _ := exact.Float32(); fma32(a, b, c) != want {
		t.Fatalf("fma(%x, %x, %x) = %x, want %x", a, b, c, fma32(a, b, c), want)
	}
}

// TestFma32OfSpecialValues compares with the library's, which needs no second rounding here.
func TestFma32OfSpecialValues(t *testing.T) {
	for _, a := range special() {
		for _, b := range special() {
			for _, c := range []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)),
				float32(math.NaN())} {
				want := float32(math.FMA(float64(a), float64(b), float64(c)))
				if got := fma32(a, b, c); !same(got, want) {
					t.Errorf("fma(%g, %g, %g) = %g, want %g", a, b, c, got, want)
				}
			}
		}
	}
}

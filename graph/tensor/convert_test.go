package tensor

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// numbers are bits of f64 among which those are frequent at which conversions change.
func numbers() *rapid.Generator[float64] {
	edges := []float64{0, math.Copysign(0, -1), 0.5, 0.99, 1, 1.5, 255, 255.5, 256, 65504, 65520,
		0x1p24 + 1, 0x1.fffffep127, 0x1.ffffffp127, 0x1p128, 0x1p-149, 0x1p-150, 0x1p31 - 1,
		0x1p31, 0x1p53 + 2, 0x1p63, 0x1.fffffffffffffp62, 1e300, math.Inf(1), math.NaN()}
	return rapid.Custom(func(t *rapid.T) float64 {
		x := rapid.SampledFrom(edges).Draw(t, "edge")
		if rapid.Bool().Draw(t, "any") {
			x = rapid.Float64().Draw(t, "x")
		}
		if rapid.Bool().Draw(t, "negative") {
			x = -x
		}
		return x
	})
}

// read is element i of a view as a number, and whether it is one.
func read(v View, i int) (*big.Float, float64) {
	exact := func(x float64) (*big.Float, float64) {
		if x-x != 0 {
			return nil, x
		}
		return new(big.Float).SetFloat64(x), x
	}
	switch v.Type.DType {
	case F32:
		return exact(float64(v.F32()[i]))
	case F64:
		return exact(v.F64()[i])
	case BF16:
		return exact(float64(FromBF16(v.U16()[i])))
	case F16:
		return exact(float64(FromF16(v.U16()[i])))
	case I32:
		return exact(float64(v.I32()[i]))
	case I64:
		return new(big.Float).SetInt64(v.I64()[i]), float64(v.I64()[i])
	}
	if v.Type.DType == U64 {
		return new(big.Float).SetUint64(v.U64()[i]), float64(v.U64()[i])
	}
	if v.Type.DType.Integer() {
		return exact(float64(v.integer(i)))
	}
	return exact(float64(v.U8()[i]))
}

// converted is what a number becomes by the definition: of f32 and f64 by rounding it
// once, of 16-bit floats by rounding it to f32 first.
func converted(exact *big.Float, x float64, d DType) float64 {
	limits := map[DType][2]float64{I32: {math.MinInt32, math.MaxInt32}, U8: {0, 255},
		I64: {math.MinInt64, math.MaxInt64}, I8: {-128, 127}, I16: {-32768, 32767},
		U16: {0, 65535}, U32: {0, math.MaxUint32}, U64: {0, math.MaxUint64}}
	switch {
	case d == Bool && x != 0:
		return 1
	case d == Bool:
		return 0
	case !d.Floating() && x != x:
		return 0
	case !d.Floating():
		least, most := limits[d][0], limits[d][1]
		return min(max(math.Trunc(x), least), most)
	case exact == nil:
		return x
	case d == F64:
		y, _ := exact.Float64()
		return y
	}
	y, _ := exact.Float32()
	switch d {
	case BF16:
		return rounded(float64(y), 8, -133, 0x1p128)
	case F16:
		return rounded(float64(y), 11, -24, 0x1p16)
	}
	return float64(y)
}

// rounded is x with so many digits, to nearest even, the last of which is 2^least or
// more; an infinity from limit on.
func rounded(x float64, digits, least int, limit float64) float64 {
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-digits, least))
	if y := math.RoundToEven(x/unit) * unit; math.Abs(y) < limit {
		return y
	}
	return math.Copysign(math.Inf(1), x)
}

// TestConvert: every element type converts to every other as the definition says, where
// it is asked to and nowhere else.
func TestConvert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := New(Of(rapid.SampledFrom(DTypes()).Draw(t, "from"), 5))
		for i := range 5 {
			fill := FromF32([]float32{0}).To(F64)
			fill.F64()[0] = numbers().Draw(t, "x")
			size := int(src.Type.DType.Size())
			Convert(View{Type: Of(src.Type.DType, 1), Data: src.Data[i*size:]}, fill, 0, 1)
		}
		if src.Type.DType == I64 && rapid.Bool().Draw(t, "wide") {
			src.I64()[1] = rapid.Int64().Draw(t, "i")
		}
		d := rapid.SampledFrom(DTypes()).Draw(t, "to")
		dst := New(Of(d, 5))
		Convert(dst, src, 1, 4)
		for i := range 5 {
			exact, x := read(src, i)
			want := converted(exact, x, d)
			if i == 0 || i == 4 {
				want = 0
			}
			_, got := read(dst, i)
			same := got == want && (math.Signbit(got) == math.Signbit(want) || !d.Floating())
			if !same && !(got != got && want != want && math.Signbit(got) == math.Signbit(x)) {
				t.Fatalf("element %d: %g of %s is %g as %s, want %g", i, x, src.Type, got, d, want)
			}
		}
		if d == src.Type.DType && string(src.To(d).Data) != string(src.Data) {
			t.Fatalf("%v is not %v", src.To(d), src)
		}
	})
}

package ops_test

import (
	"math"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// cast is x repeated, converted: so often that whole vectors of it are, too.
func cast(t *testing.T, x float32, to graph.DType) tensor.View {
	t.Helper()
	many := make([]float32, 67)
	for i := range many {
		many[i] = x
	}
	return compute(t, func(in []graph.Value) graph.Value { return ops.Cast(in[0], to) },
		tensor.FromF32(many, len(many)))
}

// TestCastToIntegers: towards zero, and what does not fit is the nearest that does.
func TestCastToIntegers(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		x    float32
		want int32
	}{
		{0, 0}, {float32(math.Copysign(0, -1)), 0}, {0.99, 0}, {-0.99, 0}, {1.5, 1}, {-1.5, -1},
		{1 << 24, 1 << 24}, {-(1 << 30), -(1 << 30)}, {0x1.fffffep-127, 0}, {0x1p-149, 0},
		{0x1.fffffep30, 0x7fffff80}, {0x1p31, math.MaxInt32}, {0x1.000002p31, math.MaxInt32},
		{-0x1p31, math.MinInt32}, {-0x1.000002p31, math.MinInt32}, {1e30, math.MaxInt32},
		{-1e30, math.MinInt32}, {0x1p63, math.MaxInt32}, {0x1p32, math.MaxInt32},
		{inf, math.MaxInt32}, {-inf, math.MinInt32}, {float32(math.NaN()), 0},
		{math.Float32frombits(0xffc00001), 0}, {math.Float32frombits(0x7f800001), 0},
	} {
		for i, got := range cast(t, c.x, graph.I32).I32() {
			if got != c.want {
				t.Fatalf("%g is %d at %d, want %d", c.x, got, i, c.want)
			}
		}
	}
}

// TestCastToSmallFloats: to nearest even, to infinity beyond the largest, and NaN
// stays NaN, quiet, with its sign.
func TestCastToSmallFloats(t *testing.T) {
	for _, c := range []struct {
		x         uint32
		bf16, f16 uint16
	}{
		{0x00000000, 0x0000, 0x0000}, {0x80000000, 0x8000, 0x8000}, // zeros
		{0x3f800000, 0x3f80, 0x3c00}, {0xbf800000, 0xbf80, 0xbc00}, // ones
		{0x3f808000, 0x3f80, 0x3c04}, {0x3f818000, 0x3f82, 0x3c0c}, // ties of bf16
		{0x3f801000, 0x3f80, 0x3c00}, {0x3f803000, 0x3f80, 0x3c02}, // ties of f16
		{0x477fefff, 0x4780, 0x7bff}, {0x477ff000, 0x4780, 0x7c00}, // about 65520
		{0x7f7f7fff, 0x7f7f, 0x7c00}, {0x7f7f8000, 0x7f80, 0x7c00}, // about the largest bf16
		{0x7f7fffff, 0x7f80, 0x7c00}, {0xff7fffff, 0xff80, 0xfc00}, // the largest f32
		{0x7f800000, 0x7f80, 0x7c00}, {0xff800000, 0xff80, 0xfc00}, // infinities
		{0x00000001, 0x0000, 0x0000}, {0x80000001, 0x8000, 0x8000}, // the smallest
		{0x33800000, 0x3380, 0x0001}, {0x33000000, 0x3300, 0x0000}, // 2⁻²⁴ and 2⁻²⁵
	} {
		x := math.Float32frombits(c.x)
		for i, got := range cast(t, x, graph.BF16).U16() {
			if got != c.bf16 {
				t.Fatalf("%g is %#04x in bf16 at %d, want %#04x", x, got, i, c.bf16)
			}
		}
		for i, got := range cast(t, x, graph.F16).U16() {
			if got != c.f16 {
				t.Fatalf("%g is %#04x in f16 at %d, want %#04x", x, got, i, c.f16)
			}
		}
	}
	for _, bits := range []uint32{0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff} {
		sign, x := uint16(bits>>16)&0x8000, math.Float32frombits(bits)
		for i := range 67 {
			if got := cast(t, x, graph.BF16).U16()[i]; got&0xffc0 != sign|0x7fc0 {
				t.Fatalf("NaN %#08x is %#04x in bf16", bits, got)
			}
			if got := cast(t, x, graph.F16).U16()[i]; got&0xfe00 != sign|0x7e00 {
				t.Fatalf("NaN %#08x is %#04x in f16", bits, got)
			}
		}
	}
}

package vec

import (
	"math"
	"testing"
)

// TestHalfPrecisionRoundTrip converts every 16-bit pattern up and down again in
// every implementation: exact, but that signalling NaN become quiet.
func TestHalfPrecisionRoundTrip(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	wide, back := make([]float32, len(all)), make([]uint16, len(all))
	for _, k := range available() {
		k.f32FromF16(wide, all)
		k.f16FromF32(back, wide)
		for i, h := range all {
			if h&0x7fff > 0x7c00 {
				h |= 0x200
			}
			if back[i] != h {
				t.Fatalf("%s: f16 %#04x came back as %#04x", k.name, all[i], back[i])
			}
		}
		k.f32FromBF16(wide, all)
		k.bf16FromF32(back, wide)
		for i, h := range all {
			if h&0x7fff > 0x7f80 {
				h |= 0x40
			}
			if back[i] != h {
				t.Fatalf("%s: bf16 %#04x came back as %#04x", k.name, all[i], back[i])
			}
		}
	}
}

// half returns the value of a binary16 pattern by its definition.
func half(h uint16) float64 {
	e, m := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(1024+m, e-25)
	switch {
	case e == 31 && m != 0:
		x = math.NaN()
	case e == 31:
		x = math.Inf(1)
	case e == 0:
		x = math.Ldexp(m, -24)
	}
	return math.Copysign(x, 1-2*float64(h>>15))
}

func TestF32FromF16FollowsTheDefinition(t *testing.T) {
	for h := range 1 << 16 {
		if got, want := f32FromF16(uint16(h)), float32(half(uint16(h))); !same(got, want) {
			t.Fatalf("%#04x: %g, want %g", h, got, want)
		}
	}
}

// TestConversionsRoundToNearestEven checks the midpoints between all
// neighbours, and the numbers just beside them, in every implementation.
func TestConversionsRoundToNearestEven(t *testing.T) {
	var x []float32
	var f16 []uint16
	for h := uint16(0); h < 0x7bff; h++ {
		middle := float32((half(h) + half(h+1)) / 2)
		x = append(x, math.Nextafter32(middle, 0), middle,
			math.Nextafter32(middle, math.MaxFloat32))
		f16 = append(f16, h, h+h&1, h+1)
	}
	checkRounding(t, "f16", x, f16,
		func(k kernels) func([]uint16, []float32) { return k.f16FromF32 })
	x = nil
	var bf16 []uint16
	for h := uint16(0); h < 0x7f80; h++ {
		middle := uint32(h)<<16 | 0x8000
		for _, bits := range []uint32{middle - 1, middle, middle + 1} {
			x = append(x, math.Float32frombits(bits))
		}
		bf16 = append(bf16, h, h+h&1, h+1)
	}
	checkRounding(t, "bf16", x, bf16,
		func(k kernels) func([]uint16, []float32) { return k.bf16FromF32 })
}

func checkRounding(t *testing.T, name string, x []float32, want []uint16,
	f func(k kernels) func([]uint16, []float32)) {
	t.Helper()
	got := make([]uint16, len(x))
	for _, sign := range []uint16{0, 0x8000} {
		for _, k := range available() {
			f(k)(got, x)
			for i := range got {
				if got[i] != want[i]|sign {
					t.Fatalf("%s %s %g: %#04x, want %#04x", k.name, name, x[i], got[i],
						want[i]|sign)
				}
			}
		}
		Neg(x, x)
	}
}

// TestConversionsOfEveryLength compares the implementations around their tails.
func TestConversionsOfEveryLength(t *testing.T) {
	for _, n := range lengths() {
		x := arguments(11, n, 0, true)[0]
		want16, wantBF := make([]uint16, n), make([]uint16, n)
		portable().f16FromF32(want16, x)
		portable().bf16FromF32(wantBF, x)
		for _, k := range available() {
			got := make([]uint16, n+1)
			for name, c := range map[string]struct {
				down func([]uint16, []float32)
				up   func([]float32, []uint16)
				want []uint16
			}{"f16": {k.f16FromF32, k.f32FromF16, want16},
				"bf16": {k.bf16FromF32, k.f32FromBF16, wantBF}} {
				c.down(got[:n], x)
				up := make([]float32, n)
				c.up(up, got[:n])
				for i := range c.want {
					if got[i] != c.want[i] {
						t.Fatalf("%s %s %g: %#04x, want %#04x", k.name, name, x[i], got[i],
							c.want[i])
					}
				}
				if got[n] != 0 {
					t.Fatalf("%s %s of %d wrote beyond", k.name, name, n)
				}
			}
		}
	}
}

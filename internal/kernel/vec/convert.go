package vec

import "github.com/gomem/gomem/graph/tensor"

// BF16FromF32 sets dst[i] to x[i] in bfloat16, rounded to nearest even.
func BF16FromF32(dst []uint16, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.bf16FromF32(dst[lo:hi], x[lo:hi])
	}
}

// F32FromBF16 sets dst[i] to the bfloat16 x[i], exactly.
func F32FromBF16(dst []float32, x []uint16) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.f32FromBF16(dst[lo:hi], x[lo:hi])
	}
}

// F16FromF32 sets dst[i] to x[i] in IEEE 754 binary16, rounded to nearest even:
// magnitudes from 65520 become infinities, NaN keeps the top of its payload.
func F16FromF32(dst []uint16, x []float32) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.f16FromF32(dst[lo:hi], x[lo:hi])
	}
}

// F32FromF16 sets dst[i] to the binary16 x[i], exactly.
func F32FromF16(dst []float32, x []uint16) {
	cover(dst, x)
	for lo, hi := range spans(len(dst)) {
		active.f32FromF16(dst[lo:hi], x[lo:hi])
	}
}

func bf16FromF32(x float32) uint16 { return tensor.ToBF16(x) }
func f32FromBF16(h uint16) float32 { return tensor.FromBF16(h) }
func f16FromF32(x float32) uint16  { return tensor.ToF16(x) }
func f32FromF16(h uint16) float32  { return tensor.FromF16(h) }

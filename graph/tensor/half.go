package tensor

import "math"

// ToBF16 is x in bfloat16, rounded to nearest even. NaN stays NaN, quiet, with its sign.
func ToBF16(x float32) uint16 {
	u := math.Float32bits(x)
	if x != x {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// FromBF16 is the bfloat16 h, exactly.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToF16 is x in IEEE 754 binary16, rounded to nearest even: magnitudes from 65520 become
// infinities, NaN keeps its sign and the top of its payload, quiet.
//
// It rounds by adding: for a subnormal result a power of two whose unit in the last
// place is binary16's smallest number, else half a unit, less one where the last kept
// bit is even.
func ToF16(x float32) uint16 {
	u := math.Float32bits(x)
	sign, u := uint16(u>>16)&0x8000, u&^(1<<31)
	switch {
	case u > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(u>>13)&0x3ff
	case u >= 0x477ff000: // 65520 and more
		return sign | 0x7c00
	case u < 0x38800000: // 2⁻¹⁴, the smallest normal
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-math.Float32bits(0.5))
	}
	const rebias = (127 - 15) << 23
	return sign | uint16((u-rebias+0xfff+u>>13&1)>>13)
}

// FromF16 is the binary16 h, exactly; NaN is made quiet.
//
// It shifts the number's fields into place and multiplies by 2¹¹² to correct the
// exponent's bias, which also makes subnormals normal.
func FromF16(h uint16) float32 {
	sign, u := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if u >= 0x7c00<<13 { // infinity and NaN
		u |= 0xff << 23
		if u > 0x7f800000 {
			u |= 1 << 22
		}
		return math.Float32frombits(sign | u)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(u)*0x1p112))
}

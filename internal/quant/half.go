package quant

import (
	"encoding/binary"
	"math"
)

// Elements of two bytes. Package graph/tensor has the same roundings, which tests hold these to;
// this package is below it.

func packBF16(dst []byte, src []float32) {
	for i, x := range src {
		u := math.Float32bits(x)
		if x != x {
			u |= 1 << 22
		} else {
			u += 0x7fff + u>>16&1
		}
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(u>>16))
	}
}

func unpackBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}

func packF16(dst []byte, src []float32) {
	for i, x := range src {
		putHalf(dst[2*i:], x)
	}
}

func unpackF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

// putHalf writes x as a binary16, rounded to nearest even.
func putHalf(dst []byte, x float32) { binary.LittleEndian.PutUint16(dst, toHalf(x)) }

// toHalf is x as a binary16. A subnormal result is rounded by the addition of a power of two of
// whose last place it is a multiple, any other by the addition of half of its last place.
func toHalf(x float32) uint16 {
	u := math.Float32bits(x)
	sign, u := uint16(u>>16)&0x8000, u&^(1<<31)
	switch {
	case u > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(u>>13)&0x3ff
	case u >= 0x477ff000: // 65520 and more
		return sign | 0x7c00
	case u < 0x38800000: // 2⁻¹⁴, the smallest that is normal
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-math.Float32bits(0.5))
	}
	const rebias = (127 - 15) << 23
	return sign | uint16((u-rebias+0xfff+u>>13&1)>>13)
}

// half reads a binary16. Its fields are shifted into place and multiplied by 2¹¹², which corrects
// the bias of the exponent and makes subnormals normal.
func half(src []byte) float32 {
	h := binary.LittleEndian.Uint16(src)
	sign, u := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if u >= 0x7c00<<13 { // infinite or NaN, which becomes quiet
		u |= 0xff << 23
		if u > 0x7f800000 {
			u |= 1 << 22
		}
		return math.Float32frombits(sign | u)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(u)*0x1p112))
}

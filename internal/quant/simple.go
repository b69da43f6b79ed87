package quant

import "math"

// Bytes of a block of 32 elements: a binary16 d and the codes.
const (
	q8Bytes = 2 + 32
	q4Bytes = 2 + 16
)

// packQ8 has the largest magnitude of a block as ±127.
func packQ8(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[q8Bytes:], src[32:] {
		x := (*[32]float32)(src)
		d := abs(largest(x[:])) / 127
		putHalf(dst, d)
		inverse := invert(d)
		for i := range x {
			dst[2+i] = byte(int8(roundAway(float32(x[i] * inverse))))
		}
	}
}

func unpackQ8(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[q8Bytes:] {
		x, in := (*[32]float32)(dst), (*[q8Bytes]byte)(src)
		d := half(in[:])
		for i := range x {
			x[i] = float32(int8(in[2+i])) * d
		}
	}
}

// packQ4 has the largest magnitude of a block as -8, whatever its sign.
func packQ4(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[q4Bytes:], src[32:] {
		x := (*[32]float32)(src)
		d := largest(x[:]) / -8
		putHalf(dst, d)
		inverse := invert(d)
		code := func(x float32) byte {
			return byte(min(int32(float32(x*inverse)+8.5), 15))
		}
		for i := range 16 {
			dst[2+i] = code(x[i]) | code(x[16+i])<<4
		}
	}
}

func unpackQ4(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[q4Bytes:] {
		x, in := (*[32]float32)(dst), (*[q4Bytes]byte)(src)
		d := half(in[:])
		for i, q := range in[2:] {
			x[i] = d * float32(int(q&15)-8)
			x[16+i] = d * float32(int(q>>4)-8)
		}
	}
}

// largest is the first element of the largest magnitude.
func largest(x []float32) float32 {
	var most float32
	for _, v := range x {
		if abs(v) > abs(most) {
			most = v
		}
	}
	return most
}

// abs is the magnitude of x.
func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// invert is 1/x, and 0 where that is infinite or could be.
func invert(x float32) float32 {
	if abs(x) < 0x1p-127 {
		return 0
	}
	return 1 / x
}

// nearest is the integer nearest to x, of two the even one; |x| is below 2²². What is added has
// ones as its last place.
func nearest(x float32) int32 {
	const ones = 0x1.8p23
	return int32(math.Float32bits(x+ones)) - int32(math.Float32bits(ones))
}

// roundAway is the integer nearest to x, of two the one further from zero.
func roundAway(x float32) int32 {
	whole := int32(x)
	whole += int32(2 * (x - float32(whole)))
	return whole
}

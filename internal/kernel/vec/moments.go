package vec

import "math"

// Moments of an optimizer in few bits. All of them are rounded by random words: up with the
// probability that makes the number that is kept, on average, the one that was to be kept. A
// moving average that moves by less than half a step of its format would else never move.

// MomentBlock is how many moments of 8 bits have a scale in common.
const MomentBlock = 256

// BF16Low sets dst[i] to x[i] in bfloat16, rounded by the low half of a word: up if that is less
// than the part that is cut off. NaN stays NaN.
func BF16Low(dst []uint16, x []float32, words []uint32) {
	cover(dst, x)
	cover(dst, words)
	for lo, hi := range spans(len(dst)) {
		active.bf16Low(dst[lo:hi], x[lo:hi], words[lo:hi])
	}
}

// BF16High is BF16Low by the high half of a word.
func BF16High(dst []uint16, x []float32, words []uint32) {
	cover(dst, x)
	cover(dst, words)
	for lo, hi := range spans(len(dst)) {
		active.bf16High(dst[lo:hi], x[lo:hi], words[lo:hi])
	}
}

// Signed8 packs a block, at most MomentBlock numbers, into bytes of a sign and a magnitude, by the
// low halves of words, and returns the scale, a power of two. A magnitude c stands for
// scale·(1.b₃·2^e − 1), whose exponent e and 3 bits b are the bits of c: within 1/16 of numbers
// down to 2⁻¹⁵ of the block's largest, and by equal steps below. The scale of a block of which
// one is not finite is NaN, so that none is when it is unpacked. x is overwritten.
func Signed8(dst []uint8, x []float32, words []uint32) (scale float32) {
	return pack8(active.signed8, dst, x, words, 15)
}

// Unsigned8 is Signed8 of numbers that are not negative, by the high halves of words: there are
// 2¹⁶ times as small ones, and none is 0, since one divides by them.
func Unsigned8(dst []uint8, x []float32, words []uint32) (scale float32) {
	return pack8(active.unsigned8, dst, x, words, 31)
}

func pack8(to func(dst []uint8, x []float32, words []uint32), dst []uint8, x []float32,
	words []uint32, octaves uint32) (scale float32) {
	x, words = x[:len(dst)], words[:len(dst)]
	scale, inverse := momentScale(active.maxAbsOf(x), octaves)
	if scale != scale {
		clear(dst)
		return scale
	}
	active.mulScalar(x, x, inverse)
	to(dst, x, words)
	return scale
}

// leastMoment is the exponent of the largest number of a block from which on scales are no
// smaller, so that neither they nor what they are multiplied by leaves the normal numbers.
const leastMoment = 40

// momentScale is the power of two with which the largest number of a block is rounded to the
// largest of so many octaves, and its inverse; NaN if it is not finite.
func momentScale(largest float32, octaves uint32) (scale, inverse float32) {
	bits := math.Float32bits(largest)
	if bits >= 0x7f800000 {
		return float32(math.NaN()), 0
	}
	// What would round to the next octave's first number has that octave.
	e := max((bits+1<<20)>>23, leastMoment) - octaves
	return math.Float32frombits(e << 23), math.Float32frombits((254 - e) << 23)
}

// FromSigned8 unpacks a block of Signed8.
func FromSigned8(dst []float32, x []uint8, scale float32) {
	cover(dst, x)
	active.fromSigned8(dst, x[:len(dst)])
	active.mulScalar(dst, dst, scale)
}

// FromUnsigned8 unpacks a block of Unsigned8.
func FromUnsigned8(dst []float32, x []uint8, scale float32) {
	cover(dst, x)
	active.fromUnsigned8(dst, x[:len(dst)])
	active.mulScalar(dst, dst, scale)
}

// drawn makes a kernel of a function of a number and a word.
func drawn[D any](f func(x float32, word uint32) D) func(dst []D, x []float32, words []uint32) {
	return func(dst []D, x []float32, words []uint32) {
		for i, v := range x {
			dst[i] = f(v, words[i])
		}
	}
}

func bf16Low(x float32, word uint32) uint16  { return drawn16(x, word&0xffff) }
func bf16High(x float32, word uint32) uint16 { return drawn16(x, word>>16) }

func drawn16(x float32, random uint32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16(bits>>16 | 0x40)
	}
	return uint16((bits + random) >> 16)
}

func signed8(x float32, word uint32) uint8 {
	sign := math.Float32bits(x) >> 31 << 7
	return uint8(min(drawn8(abs32(x), word<<16>>12), 127) | sign)
}

func unsigned8(x float32, word uint32) uint8 {
	return uint8(max(min(drawn8(x, word>>16<<4), 255), 1))
}

const one32 = 0x3f800000 // the bits of 1

func drawn8(x float32, random uint32) uint32 {
	return (math.Float32bits(x+1) + random - one32) >> 20
}

func eighth(code uint32) float32 { return math.Float32frombits(code<<20+one32) - 1 }

func fromUnsigned8(code uint8) float32 { return eighth(uint32(code)) }

func fromSigned8(code uint8) float32 {
	sign := uint32(code) >> 7 << 31
	return math.Float32frombits(math.Float32bits(eighth(uint32(code)&127)) | sign)
}

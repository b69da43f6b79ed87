package quant

// Super-blocks of 256 elements, whose parts have scales of few bits themselves.
const (
	super    = 256
	q4kBytes = 2 + 2 + 12 + super/2       // d, the unit of minima, both of 8 parts, codes
	q6kBytes = super/2 + super/4 + 16 + 2 // low bits, high bits, the scales of 16 parts, d
)

// packQ4K fits a step and a minimum to each part of 32, rounds both to 6 bits, and packs elements
// by what will be read.
func packQ4K(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[q4kBytes:], src[super:] {
		x, out := (*[super]float32)(src), (*[q4kBytes]byte)(dst)
		var steps, floors [8]float32
		for p := range 8 {
			steps[p], floors[p] = fitAffine((*[32]float32)(x[32*p:]))
		}
		stepCodes, d := sixBits(&steps)
		floorCodes, m := sixBits(&floors)
		putHalf(out[0:], d)
		putHalf(out[2:], m)
		putSixBits((*[12]byte)(out[4:]), &stepCodes, &floorCodes)
		clear(out[16:])
		for p := range 8 {
			inverse := invert(d * float32(stepCodes[p]))
			floor := float32(m * float32(floorCodes[p]))
			codes, shift := out[16+p/2*32:], 4*(p&1)
			for i, v := range x[32*p : 32*p+32] {
				code := nearest(float32((v + floor) * inverse))
				codes[i] |= byte(min(max(code, 0), 15)) << shift
			}
		}
	}
}

// sixBits are numbers, none negative, as multiples up to 63 of a unit that is a binary16.
func sixBits(x *[8]float32) (codes [8]byte, unit float32) {
	var most float32
	for _, v := range x {
		most = max(most, v)
	}
	unit = throughHalf(most / 63)
	inverse := invert(unit)
	for i, v := range x {
		codes[i] = byte(min(nearest(float32(v*inverse)), 63))
	}
	return codes, unit
}

// putSixBits packs the steps and minima of 8 parts: of the first four as they are, of the others in
// 4 bits of their own and the upper 2 of those.
func putSixBits(out *[12]byte, steps, floors *[8]byte) {
	for i := range 4 {
		out[i] = steps[i] | steps[4+i]>>4<<6
		out[4+i] = floors[i] | floors[4+i]>>4<<6
		out[8+i] = steps[4+i]&15 | floors[4+i]<<4
	}
}

// sixBitsOf is the step and the minimum of a part.
func sixBitsOf(in *[12]byte, part int) (step, floor byte) {
	if part < 4 {
		return in[part] & 63, in[4+part] & 63
	}
	i := part - 4
	return in[8+i]&15 | in[i]>>6<<4, in[8+i]>>4 | in[4+i]>>6<<4
}

func unpackQ4K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[super:], src[q4kBytes:] {
		x, in := (*[super]float32)(dst), (*[q4kBytes]byte)(src)
		d, m := half(in[0:]), half(in[2:])
		for p := range 8 {
			stepCode, floorCode := sixBitsOf((*[12]byte)(in[4:]), p)
			step, floor := d*float32(stepCode), float32(m*float32(floorCode))
			part, codes := x[32*p:32*p+32], in[16+p/2*32:]
			for i := range part {
				part[i] = float32(step*float32(codes[i]>>(4*(p&1))&15)) - floor
			}
		}
	}
}

// packQ6K fits a scale to each part of 16, rounds the scales to 8 bits, and packs elements by what
// will be read.
func packQ6K(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[q6kBytes:], src[super:] {
		x, out := (*[super]float32)(src), (*[q6kBytes]byte)(dst)
		var steps [16]float32
		for p := range steps {
			steps[p] = fitLinear((*[16]float32)(x[16*p:]))
		}
		d := throughHalf(largest(steps[:]) / -128)
		putHalf(out[208:], d)
		clear(out[:192])
		for p, step := range steps {
			code := min(max(nearest(float32(step*invert(d))), -128), 127)
			out[192+p] = byte(code)
			inverse := invert(d * float32(code))
			for i := 16 * p; i < 16*p+16; i++ {
				code := nearest(float32(x[i] * inverse))
				putSix(out, i, byte(min(max(code, -32), 31)+32))
			}
		}
	}
}

// sixAt is where the code of an element is: the byte and the shift of its low 4 bits, and those of
// its high 2.
func sixAt(i int) (low, lowShift, high, highShift int) {
	half, quarter, i := i/128, i/32%4, i%32
	return 64*half + quarter%2*32 + i, quarter / 2 * 4, 128 + 32*half + i, 2 * quarter
}

// putSix writes the code of an element into bits that are 0.
func putSix(out *[q6kBytes]byte, i int, code byte) {
	low, lowShift, high, highShift := sixAt(i)
	out[low] |= code & 15 << lowShift
	out[high] |= code >> 4 << highShift
}

func unpackQ6K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[super:], src[q6kBytes:] {
		x, in := (*[super]float32)(dst), (*[q6kBytes]byte)(src)
		d := half(in[208:])
		for i := range x {
			low, lowShift, high, highShift := sixAt(i)
			code := in[low]>>lowShift&15 | in[high]>>highShift&3<<4
			x[i] = float32(d*float32(int8(in[192+i/16]))) * float32(int(code)-32)
		}
	}
}

// throughHalf is x rounded to a binary16.
func throughHalf(x float32) float32 {
	var b [2]byte
	putHalf(b[:], x)
	return half(b[:])
}

package quant

import (
	"encoding/binary"
	"math"
)

// The layout of NF4: see the package's documentation.
const (
	nf4Block  = 64
	nf4Bytes  = 1 + nf4Block/2
	nf4Header = 8 // at a row's begin: the offset and the step of scales
)

// nf4 are the values of the codes of NF4, those of bitsandbytes and of QLoRA's appendix E.
var nf4 = [16]float32{
	-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
	-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
	0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
	0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
}

// packNF4 packs elements by the scale that will be read, not by the exact one.
func packNF4(dst []byte, src []float32) {
	offset, step := scales(src)
	binary.LittleEndian.PutUint32(dst, math.Float32bits(offset))
	binary.LittleEndian.PutUint32(dst[4:], math.Float32bits(step))
	for dst = dst[nf4Header:]; len(src) > 0; dst, src = dst[nf4Bytes:], src[nf4Block:] {
		x := src[:nf4Block]
		code := nearest(float32((abs(largest(x)) - offset) * invert(step)))
		code = min(max(code, 0), 255)
		dst[0] = byte(code)
		packQuantiles(dst[1:nf4Bytes], x, scale(offset, step, byte(code)))
	}
}

// scales are the offset and the step of the scales of a row's blocks: the smallest is code 0, the
// largest 255.
func scales(row []float32) (offset, step float32) {
	offset = abs(largest(row[:min(len(row), nf4Block)]))
	most := offset
	for ; len(row) > 0; row = row[nf4Block:] {
		s := abs(largest(row[:nf4Block]))
		offset, most = min(offset, s), max(most, s)
	}
	return offset, (most - offset) / 255
}

// scale is what a block's code of 8 bits means.
func scale(offset, step float32, code byte) float32 { return offset + float32(step*float32(code)) }

// packQuantiles packs a block's elements as the nearest values of the table times the scale.
func packQuantiles(dst []byte, x []float32, scale float32) {
	inverse := invert(scale)
	for i := range dst {
		dst[i] = quantile(x[i]*inverse) | quantile(x[nf4Block/2+i]*inverse)<<4
	}
}

// quantile is the code of the nearest of NF4's values, of two the lower.
func quantile(x float32) byte {
	code := 0
	for code < 15 && x > (nf4[code]+nf4[code+1])/2 {
		code++
	}
	return byte(code)
}

// unpackNF4 unpacks blocks of a row that begins with header.
func unpackNF4(dst []float32, header, src []byte) {
	offset := math.Float32frombits(binary.LittleEndian.Uint32(header))
	step := math.Float32frombits(binary.LittleEndian.Uint32(header[4:]))
	for ; len(dst) > 0; dst, src = dst[nf4Block:], src[nf4Bytes:] {
		x, in := (*[nf4Block]float32)(dst), (*[nf4Bytes]byte)(src)
		s := scale(offset, step, in[0])
		for i, q := range in[1:] {
			x[i] = nf4[q&15] * s
			x[nf4Block/2+i] = nf4[q>>4] * s
		}
	}
}

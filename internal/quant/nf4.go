package quant

import (
	"encoding/binary"
	"math"
)

// The layout of NF4: see the package's documentation.
const (
	nf4Block  = 64
	nf4Bytes  = 1 + nf4Block/2
	nf4Group  = 256 * nf4Block // elements whose scales have one offset and step
	nf4Header = 8
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
	for len(src) > 0 {
		group := src[:min(len(src), nf4Group)]
		offset, step := scales(group)
		binary.LittleEndian.PutUint32(dst, math.Float32bits(offset))
		binary.LittleEndian.PutUint32(dst[4:], math.Float32bits(step))
		dst = dst[nf4Header:]
		for i := 0; i < len(group); i, dst = i+nf4Block, dst[nf4Bytes:] {
			x := group[i : i+nf4Block]
			code := nearest(float32((abs(largest(x)) - offset) * invert(step)))
			code = min(max(code, 0), 255)
			dst[0] = byte(code)
			packQuantiles(dst[1:nf4Bytes], x, scale(offset, step, byte(code)))
		}
		src = src[len(group):]
	}
}

// scales are the offset and the step of the scales of a group's blocks: the smallest is code 0, the
// largest 255.
func scales(group []float32) (offset, step float32) {
	offset = float32(math.Inf(1))
	var most float32
	for i := 0; i < len(group); i += nf4Block {
		s := abs(largest(group[i : i+nf4Block]))
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

func unpackNF4(dst []float32, src []byte) {
	for len(dst) > 0 {
		group := dst[:min(len(dst), nf4Group)]
		offset := math.Float32frombits(binary.LittleEndian.Uint32(src))
		step := math.Float32frombits(binary.LittleEndian.Uint32(src[4:]))
		src = src[nf4Header:]
		for i := 0; i < len(group); i, src = i+nf4Block, src[nf4Bytes:] {
			x, in := (*[nf4Block]float32)(group[i:]), (*[nf4Bytes]byte)(src)
			s := scale(offset, step, in[0])
			for i, q := range in[1:] {
				x[i] = nf4[q&15] * s
				x[nf4Block/2+i] = nf4[q>>4] * s
			}
		}
		dst = dst[len(group):]
	}
}

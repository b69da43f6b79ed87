package main

import (
	"fmt"
	"math"
)

// form is a format: its blocks, and how one is unpacked, to which the writer's base points.
// Elements are handed on in their order. They are computed as package quant computes them, each
// operation rounded, so nothing is fused here.
type form struct {
	name            string
	elements, bytes int
	header          bool // rows begin with an offset and a step, of scales
	words           bool // of 16 bits an element, for which package vec has what unpacks them
	block           func(w *writer)
}

var formats = []form{
	{"Q8_0", 32, 34, false, false, (*writer).q8},
	{"Q4_0", 32, 18, false, false, (*writer).q4},
	{"Q4_K", 256, 144, false, false, (*writer).q4k},
	{"Q6_K", 256, 210, false, false, (*writer).q6k},
	{"NF4", 64, 33, true, false, (*writer).nf4},
	{"BF16", 32, 64, false, true, (*writer).bf16},
	{"F16", 32, 64, false, true, (*writer).f16},
}

// quantiles are the values of NF4's codes.
var quantiles = [16]float32{
	-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
	-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
	0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
	0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
}

// constants writes what instructions read from memory.
func (w *writer) constants() {
	w.datum("quantiles", func(i int) uint32 { return math.Float32bits(quantiles[i]) })
	if w.wide {
		w.datum("codes", func(i int) uint32 { return math.Float32bits(float32(i)) })
		w.datum("signed", func(i int) uint32 { return math.Float32bits(float32(i - 8)) })
	} else {
		w.datum("fifteen", func(int) uint32 { return 15 })
		w.datum("eight", func(int) uint32 { return 8 })
	}
	w.datum("low4", func(int) uint32 { return 0x0f0f0f0f })
	w.datum("high2", func(int) uint32 { return 0x30303030 })
	w.datum("bias", func(int) uint32 { return 0x20202020 })
	w.datum("lowWords", func(int) uint32 { return 0x000f000f })
	w.datum("high4", func(int) uint32 { return 0xf0f0f0f0 })
	w.datum("lowered", func(i int) uint32 { return math.Float32bits([]float32{1, 1. / 16}[i%2]) })
	w.datum("sevenBits", func(int) uint32 { return 0x007f007f })
	w.datum("ones", func(int) uint32 { return 0x00010001 })
	w.datum("eightWords", func(int) uint32 { return 0x00080008 })
	w.datum("magnitude", func(int) uint32 { return math.MaxInt32 })
	w.datum("limit", func(int) uint32 { return math.Float32bits(16383) })
}

// datum writes a table of 16 words.
func (w *writer) datum(name string, word func(i int) uint32) {
	w.text.WriteString("\n")
	for i := range 16 {
		fmt.Fprintf(&w.text, "DATA %s<>+%d(SB)/4, $%#08x\n", name, 4*i, word(i))
	}
	fmt.Fprintf(&w.text, "GLOBL %s<>(SB), RODATA|NOPTR, $64\n", name)
}

// half has a binary16 of a block in all lanes of register 0.
func (w *writer) half(at int) {
	words := "X0"
	if w.wide {
		words = "Y0"
	}
	w.op("VPBROADCASTW %d(%s), %s", at, w.base, words)
	w.op("VCVTPH2PS %s, %s", words, w.reg(0))
}

// q8 is x = q·d.
func (w *writer) q8() {
	w.half(0)
	for v := range 32 / w.lanes {
		w.op("VPMOVSXBD %d(%s), %s", 2+v*w.lanes, w.base, w.reg(1+v))
		w.op("VCVTDQ2PS %s, %s", w.reg(1+v), w.reg(1+v))
		w.op("VMULPS %s, %s, %s", w.reg(0), w.reg(1+v), w.reg(1+v))
		w.emit(v, 1+v)
	}
}

// nibbles unpacks bytes, whose low halves are elements before those of their high halves. With
// vectors of 16 lanes a code is looked up in a table, a register for low halves and one for high
// ones; else value turns codes in register 1 into elements in register 2. Of a code only the
// lowest 4 bits count.
func (w *writer) nibbles(at, bytes, first int, tables [2]int, value func(part int)) {
	for n := range 2 * bytes / w.lanes {
		part, v := n*w.lanes/bytes, n%(bytes/w.lanes)
		codes := 1
		if w.wide {
			codes += 2 * v // the bytes stay there for their high halves
		}
		if part == 0 || !w.wide {
			w.op("VPMOVZXBD %d(%s), %s", at+v*w.lanes, w.base, w.reg(codes))
		}
		if part == 1 {
			w.op("VPSRLD $4, %s, %s", w.reg(codes), w.reg(codes))
		}
		if w.wide {
			w.op("VPERMPS %s, %s, %s", w.reg(tables[part]), w.reg(codes), w.reg(2))
		} else {
			value(part)
		}
		w.emit(first+n, 2)
	}
}

// q4 is x = d·(q-8).
func (w *writer) q4() {
	w.half(0)
	if w.wide {
		w.op("VMULPS signed<>(SB), Z0, Z4")
	}
	w.nibbles(2, 16, 0, [2]int{4, 4}, func(int) {
		w.op("VPAND fifteen<>(SB), Y1, Y2")
		w.op("VPSUBD eight<>(SB), Y2, Y2")
		w.op("VCVTDQ2PS Y2, Y2")
		w.op("VMULPS Y0, Y2, Y2")
	})
}

// q4k is x = (d·s)·q - m·f.
func (w *writer) q4k() {
	w.sixBits()
	for chunk := range 4 {
		for part := range 2 {
			at := 4 * (2*chunk + part)
			w.op("VBROADCASTSS blockArgs_steps+%d(DI), %s", at, w.reg(4+part))
			if w.wide {
				w.op("VMULPS codes<>(SB), Z%d, Z%d", 4+part, 4+part)
				w.op("VSUBPS.BCST blockArgs_floors+%d(DI), Z%d, Z%d", at, 4+part, 4+part)
			} else {
				w.op("VBROADCASTSS blockArgs_floors+%d(DI), Y%d", at, 6+part)
			}
		}
		w.nibbles(16+32*chunk, 32, 64/w.lanes*chunk, [2]int{4, 5}, func(part int) {
			w.op("VPAND fifteen<>(SB), Y1, Y2")
			w.op("VCVTDQ2PS Y2, Y2")
			w.op("VMULPS Y%d, Y2, Y2", 4+part)
			w.op("VSUBPS Y%d, Y2, Y2", 6+part)
		})
	}
}

// sixBits has the steps and floors of a block of Q4_K in the arguments' arrays of these names.
func (w *writer) sixBits() {
	w.sixBitCodes(func(i int) { w.unit(2*i, []string{"steps", "floors"}[i]) })
}

// sixBitCodes hands on the codes of a block of Q4_K, in register 1: of its steps, then of its
// floors.
func (w *writer) sixBitCodes(use func(i int)) {
	w.op("MOVL 4(%s), AX", w.base)
	w.op("MOVL 8(%s), DX", w.base)
	w.op("MOVL 12(%s), R11", w.base)
	for i, from := range []string{"AX", "DX"} {
		w.op("MOVL %s, R12", from)
		w.op("ANDL $0x3f3f3f3f, R12")
		w.op("SHRL $2, %s", from)
		w.op("ANDL $0x30303030, %s", from)
		w.op("MOVL R11, R13")
		w.op("ANDL $0x0f0f0f0f, R13")
		w.op("ORL %s, R13", from)
		w.op("SHLQ $32, R13")
		w.op("ORQ R13, R12")
		w.op("SHRL $4, R11")
		w.op("VMOVQ R12, X1")
		w.op("VPMOVZXBD X1, Y1")
		use(i)
	}
}

// unit stores 8 integers of register 1 times the binary16 of a block in the arguments.
func (w *writer) unit(at int, to string) {
	w.op("VPBROADCASTW %d(%s), X0", at, w.base)
	w.op("VCVTPH2PS X0, Y0")
	w.op("VCVTDQ2PS Y1, Y1")
	w.op("VMULPS Y0, Y1, Y1")
	w.op("VMOVUPS Y1, blockArgs_%s(DI)", to)
}

// q6k is x = (d·s)·(q-32).
func (w *writer) q6k() {
	for part := range 2 {
		w.op("VPMOVSXBD %d(%s), Y1", 192+8*part, w.base)
		w.unit(208, fmt.Sprintf("steps+%d", 32*part))
	}
	w.sixBitBytes(func(block int) { w.sixteens(2 * block) })
}

// sixBitBytes hands on the codes of each 32 elements of a block of Q6_K, as bytes of register 1.
func (w *writer) sixBitBytes(use func(block int)) {
	shifts := []string{"VPSLLW $4, Y10, Y2", "VPSLLW $2, Y10, Y2", "VMOVDQU Y10, Y2",
		"VPSRLW $2, Y10, Y2"}
	for half := range 2 {
		w.op("VMOVDQU %d(%s), Y10", 128+32*half, w.base)
		for quarter, shift := range shifts {
			w.op("VMOVDQU %d(%s), Y1", 64*half+32*(quarter%2), w.base)
			if quarter >= 2 {
				w.op("VPSRLW $4, Y1, Y1")
			}
			w.op("VPAND low4<>(SB), Y1, Y1")
			w.op("%s", shift)
			w.op("VPAND high2<>(SB), Y2, Y2")
			w.op("VPOR Y2, Y1, Y1")
			w.op("VPSUBB bias<>(SB), Y1, Y1")
			use(4*half + quarter)
		}
	}
}

// sixteens unpacks the 32 codes in register 1, of two parts.
func (w *writer) sixteens(part int) {
	w.op("VEXTRACTI128 $1, Y1, X5")
	for i, codes := range []string{"X1", "X5"} {
		w.op("VBROADCASTSS blockArgs_steps+%d(DI), %s", 4*(part+i), w.reg(4))
		for v := range 16 / w.lanes {
			if v == 1 {
				w.op("VPSRLDQ $8, %s, %s", codes, codes)
			}
			w.op("VPMOVSXBD %s, %s", codes, w.reg(3))
			w.op("VCVTDQ2PS %s, %s", w.reg(3), w.reg(3))
			w.op("VMULPS %s, %s, %s", w.reg(4), w.reg(3), w.reg(3))
			w.emit((part+i)*16/w.lanes+v, 3)
		}
	}
}

// nf4 is x = table[q]·(offset + step·c).
func (w *writer) nf4() {
	w.op("MOVBLZX (%s), AX", w.base)
	w.op("VMOVD AX, X0")
	w.op("VCVTDQ2PS X0, X0")
	w.op("VBROADCASTSS X0, %s", w.reg(0))
	w.op("VMULPS %s, %s, %s", w.reg(0), w.reg(w.scales+1), w.reg(0))
	w.op("VADDPS %s, %s, %s", w.reg(0), w.reg(w.scales), w.reg(0))
	w.op("VMULPS quantiles<>(SB), %s, %s", w.reg(0), w.reg(4))
	if !w.wide {
		w.op("VMULPS quantiles<>+32(SB), Y0, Y5")
	}
	w.nibbles(1, 32, 0, [2]int{4, 4}, func(int) {
		w.op("VPERMPS Y4, Y1, Y2")
		w.op("VPERMPS Y5, Y1, Y3")
		w.op("VPSLLD $28, Y1, Y8")
		w.op("VBLENDVPS Y8, Y3, Y2, Y2")
	})
}

// bf16 is the upper half of x.
func (w *writer) bf16() {
	for v := range 32 / w.lanes {
		w.op("VPMOVZXWD %d(%s), %s", 2*w.lanes*v, w.base, w.reg(1))
		w.op("VPSLLD $16, %s, %s", w.reg(1), w.reg(1))
		w.emit(v, 1)
	}
}

// f16 is a conversion by the processor.
func (w *writer) f16() {
	for v := range 32 / w.lanes {
		w.op("VCVTPH2PS %d(%s), %s", 2*w.lanes*v, w.base, w.reg(1))
		w.emit(v, 1)
	}
}

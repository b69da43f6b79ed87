package main

import (
	"fmt"
	"slices"
)

// Kernels of integers: rows of few bits by rows that were rounded to integers. Both are groups of
// 256 elements: 16 bits of each element, then 8 scales and 8 floats more, of blocks of 32.
const (
	groupBytes = 576
	scalesAt   = 512
	othersAt   = 544
)

// whole is a format whose elements are integers with scales, of blocks of 32: how its codes are
// handed on, 16 at a time in the register of the call, and its scales and floors, in registers 10
// and 11, of the group at the base.
type whole struct {
	form
	floors   bool
	bytewise bool // few rounded rows are multiplied in bytes
	shared   bool // codes are unpacked once for four of them: that takes long
	codes    func(w multiplier, emit func(block, half, reg int))
	scales   func(w multiplier)
}

var integers = []whole{
	{form: formats[0], codes: multiplier.q8Codes, scales: multiplier.q8Scales},
	{form: formats[1], codes: multiplier.q4Codes, scales: multiplier.q4Scales},
	{form: formats[2], floors: true, bytewise: true, shared: true, codes: multiplier.q4kCodes,
		scales: multiplier.q4kScales},
	{form: formats[3], shared: true, codes: multiplier.q6kCodes, scales: multiplier.q6kScales},
}

// sharing says whether a format has its codes unpacked once for several rows.
func (f form) sharing() bool {
	return slices.ContainsFunc(integers, func(w whole) bool { return w.name == f.name && w.shared })
}

// integral says whether a format is among those.
func (f form) integral() bool {
	return slices.ContainsFunc(integers, func(w whole) bool { return w.name == f.name })
}

// multiplier writes kernels of integers.
type multiplier struct{ *writer }

// all writes them.
func (w multiplier) all() {
	for _, f := range integers {
		switch {
		case f.bytewise:
			w.byBytes(w.productsName(f.form), f, 1)
			w.byBytes(w.foursName(f.form), f, len(xs))
		case f.shared:
			w.fours(f)
			fallthrough
		default:
			w.products(f)
		}
		w.groups(f)
	}
	w.round()
	w.inBytes()
	w.transpose()
	w.tile()
	w.add()
}

// bytesOf is the bytes of 256 elements.
func (f whole) bytesOf() int { return 256 / f.elements * f.bytes }

func (w multiplier) q8Codes(emit func(block, half, reg int)) {
	for b := range 8 {
		for h := range 2 {
			w.op("VPMOVSXBW %d(SI), Y%d", 34*b+2+16*h, 1+h)
			emit(b, h, 1+h)
		}
	}
}

func (w multiplier) q8Scales() { w.halves(34) }

// halves has a binary16 of each of 8 blocks in register 10.
func (w multiplier) halves(bytes int) {
	w.op("VPXOR X10, X10, X10")
	for b := range 8 {
		w.op("VPINSRW $%d, %d(SI), X10, X10", b, bytes*b)
	}
	w.op("VCVTPH2PS X10, Y10")
}

func (w multiplier) q4Codes(emit func(block, half, reg int)) {
	for b := range 8 {
		w.op("VPMOVZXBW %d(SI), Y1", 18*b+2)
		w.op("VPAND lowWords<>(SB), Y1, Y2")
		w.op("VPSUBW eightWords<>(SB), Y2, Y2")
		emit(b, 0, 2)
		w.op("VPSRLW $4, Y1, Y1")
		w.op("VPSUBW eightWords<>(SB), Y1, Y1")
		emit(b, 1, 1)
	}
}

func (w multiplier) q4Scales() { w.halves(18) }

func (w multiplier) q4kCodes(emit func(block, half, reg int)) {
	for chunk := range 4 {
		for h := range 2 {
			w.op("VPMOVZXBW %d(SI), Y1", 16+32*chunk+16*h)
			w.op("VPAND lowWords<>(SB), Y1, Y2")
			emit(2*chunk, h, 2)
			w.op("VPSRLW $4, Y1, Y1")
			emit(2*chunk+1, h, 1)
		}
	}
}

func (w multiplier) q4kScales() {
	w.sixBitCodes(func(i int) {
		w.op("VPBROADCASTW %d(SI), X0", 2*i)
		w.op("VCVTPH2PS X0, Y0")
		w.op("VCVTDQ2PS Y1, Y1")
		w.op("VMULPS Y0, Y1, Y%d", 10+i)
	})
}

// q6kCodes has steps, of 16 elements each, in the codes: those of a block in 32 bits twice.
func (w multiplier) q6kCodes(emit func(block, half, reg int)) {
	w.op("VPMOVSXBW 192(SI), Y1")
	w.op("VPUNPCKLWD Y1, Y1, Y2")
	w.op("VPUNPCKHWD Y1, Y1, Y3")
	w.op("VMOVDQU Y2, groupArgs_words(DI)")
	w.op("VMOVDQU Y3, groupArgs_words+32(DI)")
	w.sixBitBytes(func(block int) {
		for h := range 2 {
			part := 2*block + h
			if h == 1 {
				w.op("VEXTRACTI128 $1, Y1, X1")
			}
			w.op("VPMOVSXBW X1, Y2")
			w.op("VPBROADCASTD groupArgs_words+%d(DI), Y3", part/8*16+part/4%2*32+part%4*4)
			w.op("VPMULLW Y3, Y2, Y2")
			emit(block, h, 2)
		}
	})
}

func (w multiplier) q6kScales() {
	w.op("VPBROADCASTW 208(SI), X10")
	w.op("VCVTPH2PS X10, Y10")
}

// products writes the function that multiplies a rounded row by rows: 8 sums of each, of every
// eighth block, are added to.
func (w multiplier) products(f whole) {
	w.begin(w.productsName(f.form), "groupArgs")
	w.op("MOVQ groupArgs_rows(DI), R9")
	w.op("MOVQ groupArgs_dst(DI), R10")
	w.op("MOVQ groupArgs_src(DI), BX")
	w.label("row")
	w.op("MOVQ BX, SI")
	w.op("MOVQ groupArgs_xs(DI), R8")
	w.op("MOVQ groupArgs_groups(DI), CX")
	w.op("VMOVUPS (R10), Y15")
	w.label("group")
	w.base = "SI"
	w.near(f)
	f.codes(w, w.multiplied)
	f.scales(w)
	w.scaled(f, fmt.Sprintf("%d(R8)", scalesAt), fmt.Sprintf("%d(R8)", othersAt))
	w.op("VADDPS Y14, Y15, Y15")
	w.op("ADDQ $%d, R8", groupBytes)
	w.op("ADDQ $%d, SI", f.bytesOf())
	w.op("DECQ CX")
	w.op("JNZ group")
	w.op("VMOVUPS Y15, (R10)")
	w.op("ADDQ $32, R10")
	w.op("ADDQ groupArgs_stride(DI), BX")
	w.op("DECQ R9")
	w.op("JNZ row")
	w.end()
}

// multiplied adds the products of 16 codes to those of their block, in register 4 or 5, and what is
// complete to each other: two blocks, then four, of which there are twice, in registers 8 and 9.
func (w multiplier) multiplied(block, half, reg int) {
	to := 4 + block%2
	w.dot(words, fmt.Sprintf("%d(R8)", 32*(2*block+half)), reg, to, half == 0)
	if half == 0 || block%2 == 0 {
		return
	}
	two := 6 + block/2%2
	w.op("VPUNPCKLDQ Y5, Y4, Y12")
	w.op("VPUNPCKHDQ Y5, Y4, Y4")
	w.op("VPADDD Y12, Y4, Y%d", two)
	if two == 7 {
		w.fourBlocks(8 + block/4)
	}
}

// fourBlocks has products of four blocks, twice, of those of each two in registers 6 and 7.
func (w multiplier) fourBlocks(to int) {
	w.op("VPUNPCKLQDQ Y7, Y6, Y12")
	w.op("VPUNPCKHQDQ Y7, Y6, Y6")
	w.op("VPADDD Y12, Y6, Y%d", to)
}

// scaled has what is added to sums, in register 14, of a group's products in registers 8 and 9, and
// of scales and sums of a rounded row.
func (w multiplier) scaled(f whole, scales, sums string) {
	w.op("VPERM2I128 $0x20, Y9, Y8, Y0")
	w.op("VPERM2I128 $0x31, Y9, Y8, Y1")
	w.op("VPADDD Y0, Y1, Y0")
	w.op("VCVTDQ2PS Y0, Y14")
	if f.bytewise && w.wide {
		w.op("VMULPS lowered<>(SB), Y14, Y14")
	}
	w.op("VMULPS Y10, Y14, Y14")
	if f.floors {
		w.op("VMULPS %s, Y11, Y12", sums)
		w.op("VSUBPS Y12, Y14, Y14")
	}
	w.op("VMULPS %s, Y14, Y14", scales)
}

// near has a group fetched that is read later, to the L1 cache.
func (w multiplier) near(f whole) {
	for at := 0; at < f.bytesOf(); at += 64 {
		w.op("PREFETCHT0 %d(%s)", ahead+at, w.base)
	}
}

// dotting is how products are added up: with AVX-512 by one instruction; else by one that makes
// them and one that adds, with a register between.
type dotting struct {
	wide, make, add string
	between         int
}

// words are products of pairs, of 32 bits.
var words = dotting{"VPDPWSSD", "VPMADDWD", "VPADDD", 13}

// dot adds products of codes in a register, and of those of x, to 8 sums.
func (w multiplier) dot(d dotting, x string, reg, to int, first bool) {
	switch {
	case w.wide:
		if first {
			w.op("VPXOR X%d, X%[1]d, X%[1]d", to)
		}
		w.op("%s %s, Y%d, Y%d", d.wide, x, reg, to)
	case first:
		w.op("%s %s, Y%d, Y%d", d.make, x, reg, to)
	default:
		w.op("%s %s, Y%d, Y%d", d.make, x, reg, d.between)
		w.op("%s Y%d, Y%d, Y%[3]d", d.add, d.between, to)
	}
}

// groups writes the function that unpacks a group of a row.
func (w multiplier) groups(f whole) {
	w.begin(w.groupsName(f.form), "groupArgs")
	w.op("MOVQ groupArgs_src(DI), SI")
	w.op("MOVQ groupArgs_dst(DI), R8")
	w.base = "SI"
	f.codes(w, func(block, half, reg int) {
		w.op("VMOVDQU Y%d, %d(R8)", reg, 32*(2*block+half))
	})
	f.scales(w)
	w.op("VMOVUPS Y10, %d(R8)", scalesAt)
	if !f.floors {
		w.op("VXORPS Y11, Y11, Y11")
	}
	w.op("VMOVUPS Y11, %d(R8)", othersAt)
	w.end()
}

// round writes the function that rounds blocks of a group, until one of them is small or is not
// finite; how many are left stays in the arguments.
func (w multiplier) round() {
	w.begin(w.name+"Round", "groupArgs")
	w.op("MOVQ groupArgs_src(DI), SI")
	w.op("MOVQ groupArgs_dst(DI), R8")
	w.op("MOVQ groupArgs_scales(DI), R9")
	w.op("MOVQ groupArgs_rows(DI), CX")
	w.op("VMOVDQU magnitude<>(SB), Y8")
	w.op("VMOVSS limit<>(SB), X9")
	w.label("block")
	for v := range 4 {
		w.op("VMOVUPS %d(SI), Y%d", 32*v, v)
		w.op("VPAND Y%d, Y8, Y%d", v, 4+v)
	}
	w.op("VPMAXSD Y4, Y5, Y4")
	w.op("VPMAXSD Y6, Y7, Y6")
	w.op("VPMAXSD Y4, Y6, Y4")
	w.across("VPMAXSD")
	w.op("VMOVD X4, AX")
	w.op("LEAL -%d(AX), DX", least)
	w.op("CMPL DX, $%d", infinite-least)
	w.op("JCC done")
	w.op("VDIVSS X4, X9, X5")
	w.op("VDIVSS X9, X4, X4")
	w.op("VMOVSS X4, (R9)")
	w.op("VBROADCASTSS X5, Y5")
	for v := range 4 {
		w.op("VMULPS Y%d, Y5, Y%[1]d", v)
		w.op("VCVTPS2DQ Y%d, Y%[1]d", v)
	}
	w.op("VPADDD Y0, Y1, Y4")
	w.op("VPADDD Y2, Y3, Y5")
	w.op("VPADDD Y4, Y5, Y4")
	w.across("VPADDD")
	w.op("VCVTDQ2PS X4, X4")
	w.op("VMOVSS X4, %d(R9)", othersAt-scalesAt)
	for v := 0; v < 4; v += 2 {
		w.op("VPACKSSDW Y%d, Y%d, Y%[2]d", v+1, v)
		w.op("VPERMQ $0xd8, Y%d, Y%[1]d", v)
		w.op("VMOVDQU Y%d, %d(R8)", v, 16*v)
	}
	w.op("ADDQ $128, SI")
	w.op("ADDQ $64, R8")
	w.op("ADDQ $4, R9")
	w.op("DECQ CX")
	w.op("JNZ block")
	w.label("done")
	w.op("MOVQ CX, groupArgs_rows(DI)")
	w.end()
}

// The bits of the least magnitude that is rounded, 2⁻¹¹², and of the one of no finite number.
const (
	least    = (127 - 112) << 23
	infinite = 255 << 23
)

// across has an operation of all lanes of register 4 in its first, with register 5 lost.
func (w multiplier) across(op string) {
	w.op("VEXTRACTI128 $1, Y4, X5")
	w.op("%s X5, X4, X4", op)
	w.op("VPSHUFD $0x4e, X4, X5")
	w.op("%s X5, X4, X4", op)
	w.op("VPSHUFD $0xb1, X4, X5")
	w.op("%s X5, X4, X4", op)
}

// indexed is an operand so many times a register from another one, and bytes more.
func indexed(base string, at int, index string, times int) string {
	if times == 0 {
		return fmt.Sprintf("%d(%s)", at, base)
	}
	return fmt.Sprintf("%d(%s)(%s*%d)", at, base, index, times)
}

func (s isa) productsName(f form) string { return s.unpackName(f) + "Products" }
func (s isa) groupsName(f form) string   { return s.unpackName(f) + "Group" }

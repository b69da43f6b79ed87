package main

// Kernels of tiles: rounded rows by as many rows of few bits as a vector has lanes. The latter are
// a panel: each 32 bits of a group's bytes of all rows, then the next.

// tileRows are the rounded rows of a tile.
const tileRows = 8

// transpose writes the function that makes a panel of groups of 8 rows, one after the other.
func (w multiplier) transpose() {
	w.begin(w.name+"Transpose", "groupArgs")
	w.op("MOVQ groupArgs_src(DI), SI")
	w.op("MOVQ groupArgs_dst(DI), R8")
	w.op("MOVQ $%d, CX", groupBytes/32)
	w.label("block")
	for v := range 4 { // halves of rows v and 4+v, first halves before second ones
		for h := range 2 {
			w.op("VMOVUPS %d(SI), X%d", v*groupBytes+16*h, 4*h+v)
			w.op("VINSERTF128 $1, %d(SI), Y%d, Y%[2]d", (4+v)*groupBytes+16*h, 4*h+v)
		}
	}
	for h := 0; h < 8; h += 4 {
		w.op("VUNPCKLPS Y%d, Y%d, Y8", h+1, h)
		w.op("VUNPCKHPS Y%d, Y%d, Y9", h+1, h)
		w.op("VUNPCKLPS Y%d, Y%d, Y10", h+3, h+2)
		w.op("VUNPCKHPS Y%d, Y%d, Y11", h+3, h+2)
		for i, from := range [][2]int{{8, 10}, {9, 11}} {
			for j, op := range []string{"VUNPCKLPD", "VUNPCKHPD"} {
				w.op("%s Y%d, Y%d, Y12", op, from[1], from[0])
				w.op("VMOVUPS Y12, %d(R8)", w.bytes()*(h+2*i+j))
			}
		}
	}
	w.op("ADDQ $32, SI")
	w.op("ADDQ $%d, R8", 8*w.bytes())
	w.op("DECQ CX")
	w.op("JNZ block")
	w.end()
}

// tile writes the function that adds products of groups of 8 rounded rows and of a panel to sums,
// which are vectors of the panel's rows: 8 for each rounded row, of every eighth block; those of
// block after block.
func (w multiplier) tile() {
	w.begin(w.name+"Tile", "groupArgs")
	w.op("MOVQ groupArgs_stride(DI), AX")
	w.op("MOVQ groupArgs_x(DI), SI")
	w.op("LEAQ (AX)(AX*2), DX")
	w.op("LEAQ (SI)(DX*1), BX")
	w.op("LEAQ (SI)(DX*2), DX")
	for i, from := range []string{"SI", "BX", "DX"} {
		w.op("LEAQ %d(%s), %s", scalesAt, from, scalesOf[i])
	}
	w.op("MOVQ groupArgs_src(DI), R11")
	w.op("LEAQ %d(R11), R12", scalesAt/4*w.bytes())
	w.op("MOVQ groupArgs_groups(DI), CX")
	w.label("group")
	w.op("MOVQ groupArgs_dst(DI), R13")
	w.op("MOVQ $8, DI")
	w.label("block")
	for r := range tileRows {
		w.op("VPXOR X%d, X%[1]d, X%[1]d", r)
	}
	for pair := range 16 {
		w.op("VMOVDQU%s %d(R11), %s", w.words(), pair*w.bytes(), w.reg(8))
		for r := range tileRows {
			w.pairs(rowAt(codesOf, r, 4*pair), r)
		}
	}
	for r := range tileRows {
		w.op("VCVTDQ2PS %s, %s", w.reg(r), w.reg(r))
		w.op("VMULPS (R12), %s, %s", w.reg(r), w.reg(r))
		w.op("VBROADCASTSS %s, %s", rowAt(scalesOf, r, 32), w.reg(8))
		w.op("VMULPS %d(R12), %s, %s", 8*w.bytes(), w.reg(8), w.reg(8))
		w.op("VSUBPS %s, %s, %s", w.reg(8), w.reg(r), w.reg(r))
		w.op("VBROADCASTSS %s, %s", rowAt(scalesOf, r, 0), w.reg(8))
		w.op("VMULPS %s, %s, %s", w.reg(8), w.reg(r), w.reg(r))
		w.op("VADDPS %d(R13), %s, %s", r*w.bytes(), w.reg(r), w.reg(r))
		w.op("VMOVUPS %s, %d(R13)", w.reg(r), r*w.bytes())
	}
	for i := range codesOf {
		w.op("ADDQ $64, %s", codesOf[i])
		w.op("ADDQ $4, %s", scalesOf[i])
	}
	w.op("ADDQ $%d, R11", 16*w.bytes())
	w.op("ADDQ $%d, R12", w.bytes())
	w.op("ADDQ $%d, R13", tileRows*w.bytes())
	w.op("DECQ DI")
	w.op("JNZ block")
	w.op("MOVQ args+0(FP), DI")
	for i := range codesOf {
		w.op("ADDQ $%d, %s", groupBytes-scalesAt, codesOf[i])
		w.op("ADDQ $%d, %s", groupBytes-32, scalesOf[i])
	}
	w.op("ADDQ $%d, R11", (groupBytes-scalesAt)/4*w.bytes())
	w.op("ADDQ $%d, R12", (groupBytes-32)/4*w.bytes())
	w.op("DECQ CX")
	w.op("JNZ group")
	w.end()
}

// Registers of the rounded rows 0, 3 and 6, of their codes and of their scales; the others are
// AX, the bytes of a row, once, twice or four times from one of these.
var (
	codesOf  = []string{"SI", "BX", "DX"}
	scalesOf = []string{"R8", "R9", "R10"}
)

// rowAt is an operand of a rounded row.
func rowAt(of []string, row, at int) string {
	base, times := []int{0, 0, 0, 1, 0, 1, 2, 1}[row], []int{0, 1, 2, 0, 4, 2, 0, 4}[row]
	return indexed(of[base], at, "AX", times)
}

// words is the end of an instruction's name that moves integers.
func (w multiplier) words() string {
	if w.wide {
		return "32"
	}
	return ""
}

// pairs adds products of pairs in register 8 and of one pair in memory to a register.
func (w multiplier) pairs(x string, to int) {
	if w.wide {
		w.op("VPDPWSSD.BCST %s, Z8, Z%d", x, to)
		return
	}
	w.op("VPBROADCASTD %s, Y9", x)
	w.op("VPMADDWD Y9, Y8, Y9")
	w.op("VPADDD Y9, Y%d, Y%[1]d", to)
}

// add writes the function that adds up the sums of tiles: of 8 of every rounded row and row of a
// panel each two, then those.
func (w multiplier) add() {
	w.begin(w.name+"Add", "groupArgs")
	w.op("MOVQ groupArgs_src(DI), SI")
	w.op("MOVQ groupArgs_dst(DI), R8")
	w.op("MOVQ $%d, CX", tileRows)
	w.label("row")
	at := func(block int) int { return block * tileRows * w.bytes() }
	for v := range 4 {
		w.op("VMOVUPS %d(SI), %s", at(2*v), w.reg(v))
		w.op("VADDPS %d(SI), %s, %s", at(2*v+1), w.reg(v), w.reg(v))
	}
	w.op("VADDPS %s, %s, %s", w.reg(1), w.reg(0), w.reg(0))
	w.op("VADDPS %s, %s, %s", w.reg(3), w.reg(2), w.reg(2))
	w.op("VADDPS %s, %s, %s", w.reg(2), w.reg(0), w.reg(0))
	w.op("VMOVUPS %s, (R8)", w.reg(0))
	w.op("ADDQ $%d, SI", w.bytes())
	w.op("ADDQ $%d, R8", w.bytes())
	w.op("DECQ CX")
	w.op("JNZ row")
	w.end()
}

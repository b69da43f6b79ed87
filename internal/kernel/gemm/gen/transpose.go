package main

// loadPackArgs loads what both transpositions use.
func (w *writer) loadPackArgs() {
	w.op("MOVQ packArgs_dst(DI), DX")
	w.op("MOVQ packArgs_src(DI), SI")
	w.op("MOVQ packArgs_dstStride(DI), R12")
	w.op("MOVQ packArgs_srcStride(DI), %s", regStride)
	w.op("MOVQ packArgs_rows(DI), CX")
}

// loadRows loads args.rows (at least one) rows of a block into the first
// registers, and leaves the others as they are.
func (w *writer) loadRows(load func(row int)) {
	for row := range w.lanes {
		if row > 0 {
			w.op("CMPQ CX, $%d", row)
			w.op("JLE loaded")
		}
		load(row)
	}
	w.label("loaded")
}

// storeColumns stores as many of the given registers as columns are left in BX,
// one a destination row.
func (w *writer) storeColumns(regs []int, store func(reg string)) {
	for col, reg := range regs {
		if col > 0 {
			w.op("CMPQ BX, $%d", col)
			w.op("JLE done")
		}
		store(w.reg(reg))
		w.op("ADDQ R12, DX")
	}
}

// nextBlock closes the loop over blocks of columns.
func (w *writer) nextBlock(rowBases []string) {
	for _, base := range rowBases {
		w.op("ADDQ $%d, %s", w.bytes(), base)
	}
	w.op("SUBQ $%d, BX", w.lanes)
	w.op("JG block")
	w.label("done")
	w.end()
}

// transpose16 writes the AVX-512 function that transposes args.rows ≤ 16 rows of
// args.cols columns.
func (w *writer) transpose16() {
	w.begin(w.name+"Transpose", "packArgs")
	w.loadPackArgs()
	w.op("LEAQ (R10)(R10*2), R11")
	w.op("MOVQ packArgs_cols(DI), BX")
	w.setBases(16)
	w.op("MOVL $1, AX")
	w.op("SHLL CX, AX")
	w.op("DECL AX")
	w.op("KMOVW AX, K2")
	w.op("MOVL $0xffff, AX")
	w.op("KMOVW AX, K1")
	w.label("block")
	w.op("CMPQ BX, $16")
	w.op("JGE whole")
	w.setMask("packArgs")
	w.label("whole")
	w.loadRows(func(row int) {
		w.load(rowAddr(row), w.reg(row), true)
		w.op("PREFETCHT0 512%s", rowAddr(row))
	})
	w.shuffle16()
	regs := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	w.storeColumns(regs, func(reg string) { w.op("VMOVUPS %s, K2, (DX)", reg) })
	w.nextBlock(bases(16))
}

// shuffle16 transposes the 16×16 block in Z0 … Z15.
func (w *writer) shuffle16() {
	w.comment("Pairs of rows, then groups of four, interleaved in each 128-bit lane.")
	for i := 0; i < 16; i += 2 {
		w.op("VUNPCKLPS Z%d, Z%d, Z%d", i+1, i, 16+i)
		w.op("VUNPCKHPS Z%d, Z%d, Z%d", i+1, i, 17+i)
	}
	for i := 0; i < 16; i += 4 {
		w.op("VUNPCKLPD Z%d, Z%d, Z%d", 18+i, 16+i, i)
		w.op("VUNPCKHPD Z%d, Z%d, Z%d", 18+i, 16+i, i+1)
		w.op("VUNPCKLPD Z%d, Z%d, Z%d", 19+i, 17+i, i+2)
		w.op("VUNPCKHPD Z%d, Z%d, Z%d", 19+i, 17+i, i+3)
	}
	w.comment("Lanes: register i holds columns i, i+4, i+8 and i+12 of four rows.")
	for i := range 4 {
		for half := 0; half < 16; half += 8 {
			w.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", half+i+4, half+i, 16+half+i)
			w.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", half+i+4, half+i, 20+half+i)
		}
	}
	for i := range 8 {
		w.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", 24+i, 16+i, i)
		w.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", 24+i, 16+i, i+8)
	}
}

// transpose8 writes the AVX2 function that transposes args.rows ≤ 8 rows of
// args.cols columns. It stores whole vectors, in ascending order: what it writes
// past a destination row, the next row overwrites.
func (w *writer) transpose8() {
	w.begin(w.name+"Transpose", "packArgs")
	w.loadPackArgs()
	w.op("LEAQ (R10)(R10*2), R11")
	w.op("MOVQ packArgs_cols(DI), BX")
	w.setBases(8)
	w.op("VPCMPEQD Y15, Y15, Y15")
	w.label("block")
	w.op("CMPQ BX, $8")
	w.op("JGE whole")
	w.setMask("packArgs")
	w.label("whole")
	w.loadRows(func(row int) { w.load(rowAddr(row), w.reg(row), true) })
	w.shuffle8()
	regs := []int{8, 9, 10, 11, 12, 13, 14, 15}
	w.storeColumns(regs, func(reg string) { w.op("VMOVUPS %s, (DX)", reg) })
	w.op("VPCMPEQD Y15, Y15, Y15")
	w.nextBlock(bases(8))
}

// shuffle8 transposes the 8×8 block in Y0 … Y7 to Y8 … Y15.
func (w *writer) shuffle8() {
	w.comment("Pairs of rows, then groups of four, interleaved in each 128-bit lane.")
	for i := 0; i < 8; i += 2 {
		w.op("VUNPCKLPS Y%d, Y%d, Y%d", i+1, i, 8+i)
		w.op("VUNPCKHPS Y%d, Y%d, Y%d", i+1, i, 9+i)
	}
	for i := 0; i < 8; i += 4 {
		w.op("VUNPCKLPD Y%d, Y%d, Y%d", 10+i, 8+i, i)
		w.op("VUNPCKHPD Y%d, Y%d, Y%d", 10+i, 8+i, i+1)
		w.op("VUNPCKLPD Y%d, Y%d, Y%d", 11+i, 9+i, i+2)
		w.op("VUNPCKHPD Y%d, Y%d, Y%d", 11+i, 9+i, i+3)
	}
	w.comment("Lanes: register i holds columns i and i+4 of four rows.")
	for i := range 4 {
		w.op("VPERM2F128 $0x20, Y%d, Y%d, Y%d", i+4, i, 8+i)
		w.op("VPERM2F128 $0x31, Y%d, Y%d, Y%d", i+4, i, 12+i)
	}
}

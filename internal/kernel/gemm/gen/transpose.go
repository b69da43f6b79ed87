package main

// loadPackArgs loads what both transpositions use.
func (p packer) loadPackArgs() {
	p.op("MOVQ packArgs_dst(DI), DX")
	p.op("MOVQ packArgs_src(DI), SI")
	p.op("MOVQ packArgs_dstStride(DI), R12")
	p.op("MOVQ packArgs_srcStride(DI), %s", regStride)
	p.op("MOVQ packArgs_rows(DI), CX")
}

// loadRows loads args.rows (at least one) rows of a block into the first
// registers, and leaves the others as they are.
func (p packer) loadRows(load func(row int)) {
	for row := range p.lanes {
		if row > 0 {
			p.op("CMPQ CX, $%d", row)
			p.op("JLE loaded")
		}
		load(row)
	}
	p.label("loaded")
}

// storeColumns stores as many of the given registers as columns are left in BX,
// one a destination row.
func (p packer) storeColumns(regs []int, store func(reg string)) {
	for col, reg := range regs {
		if col > 0 {
			p.op("CMPQ BX, $%d", col)
			p.op("JLE done")
		}
		store(p.reg(reg))
		p.op("ADDQ R12, DX")
	}
}

// nextBlock closes the loop over blocks of columns.
func (p packer) nextBlock(rowBases []string) {
	for _, base := range rowBases {
		p.op("ADDQ $%d, %s", p.bytes(), base)
	}
	p.op("SUBQ $%d, BX", p.lanes)
	p.op("JG block")
	p.label("done")
	p.end()
}

// transpose16 writes the AVX-512 function that transposes args.rows ≤ 16 rows of
// args.cols columns.
func (p packer) transpose16() {
	p.begin(p.name+"Transpose", "packArgs")
	p.loadPackArgs()
	p.op("LEAQ (R10)(R10*2), R11")
	p.op("MOVQ packArgs_cols(DI), BX")
	p.setBases(16)
	p.op("MOVL $1, AX")
	p.op("SHLL CX, AX")
	p.op("DECL AX")
	p.op("KMOVW AX, K2")
	p.op("MOVL $0xffff, AX")
	p.op("KMOVW AX, K1")
	p.label("block")
	p.op("CMPQ BX, $16")
	p.op("JGE whole")
	p.setMask("packArgs")
	p.label("whole")
	p.loadRows(func(row int) {
		p.load(rowAddr(row), p.reg(row), true)
		p.op("PREFETCHT0 512%s", rowAddr(row))
	})
	p.shuffle16()
	regs := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	p.storeColumns(regs, func(reg string) { p.op("VMOVUPS %s, K2, (DX)", reg) })
	p.nextBlock(bases(16))
}

// shuffle16 transposes the 16×16 block in Z0 … Z15.
func (p packer) shuffle16() {
	p.comment("Pairs of rows, then groups of four, interleaved in each 128-bit lane.")
	for i := 0; i < 16; i += 2 {
		p.op("VUNPCKLPS Z%d, Z%d, Z%d", i+1, i, 16+i)
		p.op("VUNPCKHPS Z%d, Z%d, Z%d", i+1, i, 17+i)
	}
	for i := 0; i < 16; i += 4 {
		p.op("VUNPCKLPD Z%d, Z%d, Z%d", 18+i, 16+i, i)
		p.op("VUNPCKHPD Z%d, Z%d, Z%d", 18+i, 16+i, i+1)
		p.op("VUNPCKLPD Z%d, Z%d, Z%d", 19+i, 17+i, i+2)
		p.op("VUNPCKHPD Z%d, Z%d, Z%d", 19+i, 17+i, i+3)
	}
	p.comment("Lanes: register i holds columns i, i+4, i+8 and i+12 of four rows.")
	for i := range 4 {
		for half := 0; half < 16; half += 8 {
			p.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", half+i+4, half+i, 16+half+i)
			p.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", half+i+4, half+i, 20+half+i)
		}
	}
	for i := range 8 {
		p.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", 24+i, 16+i, i)
		p.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", 24+i, 16+i, i+8)
	}
}

// transpose8 writes the AVX2 function that transposes args.rows ≤ 8 rows of
// args.cols columns. It stores whole vectors, in ascending order: what it writes
// past a destination row, the next row overwrites.
func (p packer) transpose8() {
	p.begin(p.name+"Transpose", "packArgs")
	p.loadPackArgs()
	p.op("LEAQ (R10)(R10*2), R11")
	p.op("MOVQ packArgs_cols(DI), BX")
	p.setBases(8)
	p.op("VPCMPEQD Y15, Y15, Y15")
	p.label("block")
	p.op("CMPQ BX, $8")
	p.op("JGE whole")
	p.setMask("packArgs")
	p.label("whole")
	p.loadRows(func(row int) { p.load(rowAddr(row), p.reg(row), true) })
	p.shuffle8()
	regs := []int{8, 9, 10, 11, 12, 13, 14, 15}
	p.storeColumns(regs, func(reg string) { p.op("VMOVUPS %s, (DX)", reg) })
	p.op("VPCMPEQD Y15, Y15, Y15")
	p.nextBlock(bases(8))
}

// shuffle8 transposes the 8×8 block in Y0 … Y7 to Y8 … Y15.
func (p packer) shuffle8() {
	p.comment("Pairs of rows, then groups of four, interleaved in each 128-bit lane.")
	for i := 0; i < 8; i += 2 {
		p.op("VUNPCKLPS Y%d, Y%d, Y%d", i+1, i, 8+i)
		p.op("VUNPCKHPS Y%d, Y%d, Y%d", i+1, i, 9+i)
	}
	for i := 0; i < 8; i += 4 {
		p.op("VUNPCKLPD Y%d, Y%d, Y%d", 10+i, 8+i, i)
		p.op("VUNPCKHPD Y%d, Y%d, Y%d", 10+i, 8+i, i+1)
		p.op("VUNPCKLPD Y%d, Y%d, Y%d", 11+i, 9+i, i+2)
		p.op("VUNPCKHPD Y%d, Y%d, Y%d", 11+i, 9+i, i+3)
	}
	p.comment("Lanes: register i holds columns i and i+4 of four rows.")
	for i := range 4 {
		p.op("VPERM2F128 $0x20, Y%d, Y%d, Y%d", i+4, i, 8+i)
		p.op("VPERM2F128 $0x31, Y%d, Y%d, Y%d", i+4, i, 12+i)
	}
}

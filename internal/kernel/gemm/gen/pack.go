package main

// packer writes what copies operands: transpositions, and the copies to panels here.
type packer struct{ *writer }

// Copies of operands into panels read a row of the source at a time, in the order of
// memory: rows are often pages apart, which keeps the processor from prefetching by
// itself, and a panel's part of a row is less than two lines.

// Rows that copies prefetch ahead, and bytes of the panels of B that they write.
const (
	copyAheadA = 4
	copyAheadB = 8
	writeAhead = 512
)

// copyA writes a function that copies args.rows panels of an A with contiguous columns,
// each of args.step bytes of a column, args.cols columns after each other. It stores whole
// vectors, in ascending order: what it writes past a column, the next column overwrites.
// Four panels at a time, only the last of which may be short of rows, have one masked load.
func (p packer) copyA() {
	p.begin(p.name+"CopyA", "packArgs")
	p.loadPackArgs()
	p.op("MOVQ packArgs_cols(DI), BX")
	p.op("MOVQ packArgs_step(DI), R13")
	p.setMask("packArgs")
	p.label("column")
	p.op("MOVQ packArgs_rows(DI), CX")
	p.op("MOVQ SI, R8")
	p.op("MOVQ DX, R9")
	p.op("LEAQ (SI)(%s*%d), R11", regStride, copyAheadA)
	p.op("CMPQ CX, $4")
	p.op("JLT one")
	p.label("four")
	p.op("LEAQ (R8)(R13*2), AX")
	p.op("LEAQ (R9)(R12*2), R14")
	from := []string{"(R8)", "(R8)(R13*1)", "(AX)", "(AX)(R13*1)"}
	for i, to := range []string{"(R9)", "(R9)(R12*1)", "(R14)", "(R14)(R12*1)"} {
		p.load(from[i], p.reg(i), i == len(from)-1)
		p.op("VMOVUPS %s, %s", p.reg(i), to)
	}
	for at := 0; at < len(from)*4*p.rows; at += 64 {
		p.op("PREFETCHT0 %d(R11)", at)
	}
	p.op("LEAQ (R8)(R13*4), R8")
	p.op("LEAQ (R11)(R13*4), R11")
	p.op("LEAQ (R9)(R12*4), R9")
	p.op("SUBQ $4, CX")
	p.op("CMPQ CX, $4")
	p.op("JGE four")
	p.label("one")
	p.op("TESTQ CX, CX")
	p.op("JZ next")
	p.load("(R8)", p.reg(0), true)
	p.op("VMOVUPS %s, (R9)", p.reg(0))
	p.op("ADDQ R13, R8")
	p.op("ADDQ R12, R9")
	p.op("DECQ CX")
	p.op("JMP one")
	p.label("next")
	p.op("ADDQ %s, SI", regStride)
	p.op("ADDQ R13, DX")
	p.op("DECQ BX")
	p.op("JNZ column")
	p.end()
}

// copyB writes a function that copies args.cols rows of B to args.rows panels of the
// widest tile's columns.
func (p packer) copyB() {
	p.begin(p.name+"CopyB", "packArgs")
	p.loadPackArgs()
	p.op("MOVQ packArgs_cols(DI), BX")
	p.label("row")
	p.op("MOVQ packArgs_rows(DI), CX")
	p.op("MOVQ SI, R8")
	p.op("MOVQ DX, R9")
	p.label("panel")
	size := p.wide * p.bytes()
	for v := range p.wide {
		p.op("VMOVUPS %s, %s", p.addr(v, "R8"), p.reg(v))
	}
	for at := 0; at < size; at += 64 {
		p.op("PREFETCHT0 %d(R8)(%s*%d)", at, regStride, copyAheadB)
		p.op("PREFETCHT0 %d(R9)", writeAhead+at)
	}
	for v := range p.wide {
		p.op("VMOVUPS %s, %s", p.reg(v), p.addr(v, "R9"))
	}
	p.op("ADDQ $%d, R8", size)
	p.op("ADDQ R12, R9")
	p.op("DECQ CX")
	p.op("JNZ panel")
	p.op("ADDQ %s, SI", regStride)
	p.op("ADDQ $%d, DX", size)
	p.op("DECQ BX")
	p.op("JNZ row")
	p.end()
}

package main

import "fmt"

// stepRows is how many rows of B a rank kernel takes at a time: as many streams
// as the processor prefetches well.
const stepRows = 8

// dotCols is how many columns of op(B), each contiguous, a dot kernel takes at a
// time.
const dotCols = 4

// aheadBases are the registers from which a rank kernel reaches the rows of B that it
// prefetches.
var aheadBases = []string{"AX", "R14"}

// rankName returns the name of the rank kernel's function.
func (s isa) rankName(rows int) string { return fmt.Sprintf("%sRank%d", s.name, rows) }

// dotName returns the name of a dot kernel's function.
func (s isa) dotName(rows, cols int) string { return fmt.Sprintf("%sDot%dx%d", s.name, rows, cols) }

// rank writes a function that adds to args.m rows of C the product of args.m
// rows of coefficients, stepRows apart, and so many rows of B.
func (w *writer) rank(rows int) {
	w.begin(w.rankName(rows), "rankArgs")
	w.op("MOVQ rankArgs_b(DI), SI")
	w.op("MOVQ rankArgs_bs(DI), %s", regStride)
	w.op("LEAQ (%s)(%s*2), %s", regStride, regStride, regStride3)
	w.setBases(rows)
	if rows == stepRows {
		w.op("LEAQ (SI)(%s*%d), %s", regStride, stepRows, aheadBases[0])
		w.op("LEAQ (%s)(%s*4), %s", aheadBases[0], regStride, aheadBases[1])
		w.op("ADDQ %s, %s", regStride, aheadBases[1])
	}
	w.op("MOVQ rankArgs_c(DI), R9")
	w.op("MOVQ rankArgs_ldc(DI), R12")
	w.op("MOVQ rankArgs_vectors(DI), CX")
	if w.masks {
		w.label("pair")
		w.op("CMPQ CX, $2")
		w.op("JLE vector")
		w.rankStep(rows, 2, "pairRow", false)
		w.op("SUBQ $2, CX")
		w.op("JMP pair")
	}
	w.label("vector")
	w.op("CMPQ CX, $1")
	w.op("JLE last")
	w.rankStep(rows, 1, "row", false)
	w.op("DECQ CX")
	w.op("JMP vector")
	w.label("last")
	w.setMask("rankArgs")
	w.rankStep(rows, 1, "lastRow", true)
	w.end()
}

// rankStep writes the update of so many vectors of every row of C, the last of
// them masked or not.
func (w *writer) rankStep(rows, vectors int, label string, masked bool) {
	b := func(row, v int) string { return w.reg(row*vectors + v) }
	acc := func(v int) string { return w.reg(rows*vectors + v) }
	for row := range rows {
		for v := range vectors {
			w.load(fmt.Sprintf("%d%s", v*w.bytes(), rowAddr(row)), b(row, v), masked)
		}
	}
	if rows == stepRows {
		w.prefetchRows(vectors)
	}
	broadcast := w.operand(1)
	w.op("MOVQ rankArgs_a(DI), BX")
	w.op("MOVQ rankArgs_m(DI), R13")
	w.op("MOVQ R9, DX")
	w.label(label)
	for v := range vectors {
		w.load(w.addr(v, "DX"), acc(v), masked)
	}
	for row := range rows {
		w.op("VBROADCASTSS %d(BX), %s", 4*row, broadcast)
		for v := range vectors {
			w.op("VFMADD231PS %s, %s, %s", broadcast, b(row, v), acc(v))
		}
	}
	for v := range vectors {
		w.store(acc(v), w.addr(v, "DX"), masked)
	}
	w.op("ADDQ $%d, BX", 4*stepRows)
	w.op("ADDQ R12, DX")
	w.op("DECQ R13")
	w.op("JNZ %s", label)
	w.op("ADDQ $%d, R9", vectors*w.bytes())
	for _, base := range bases(rows) {
		w.op("ADDQ $%d, %s", vectors*w.bytes(), base)
	}
}

// rowVectors is how many vectors of C the kernel of a single row holds.
const rowVectors = 4

// rowName returns the name of the function of a single row.
func (s isa) rowName() string { return s.name + "Row" }

// row writes the rank function of a single row of C. The coefficients stay in registers,
// and B is read from memory by the multiplications: the rank kernel, which broadcasts the
// coefficients again for every few columns, has twice the instructions. Rows are whole, so
// that the processor prefetches by itself.
func (w *writer) row() {
	w.begin(w.rowName(), "rankArgs")
	w.op("MOVQ rankArgs_b(DI), SI")
	w.op("MOVQ rankArgs_bs(DI), %s", regStride)
	w.op("LEAQ (%s)(%s*2), %s", regStride, regStride, regStride3)
	w.setBases(stepRows)
	w.op("MOVQ rankArgs_c(DI), R9")
	w.op("MOVQ rankArgs_vectors(DI), CX")
	w.op("MOVQ rankArgs_a(DI), BX")
	for i := range stepRows {
		w.op("VBROADCASTSS %d(BX), %s", 4*i, w.reg(i))
	}
	for _, vectors := range []int{rowVectors, 1} {
		loop, end := fmt.Sprint("by", vectors), fmt.Sprint("end", vectors)
		w.label(loop)
		w.op("CMPQ CX, $%d", vectors)
		w.op("JLE %s", end)
		w.rowStep(vectors)
		w.op("SUBQ $%d, CX", vectors)
		w.op("JMP %s", loop)
		w.label(end)
	}
	w.setMask("rankArgs")
	acc, b := w.reg(stepRows), w.reg(stepRows+1)
	w.load("(R9)", acc, true)
	for i := range stepRows {
		w.load(rowAddr(i), b, true)
		w.op("VFMADD231PS %s, %s, %s", b, w.reg(i), acc)
	}
	w.store(acc, "(R9)", true)
	w.end()
}

// rowStep writes the update of so many whole vectors.
func (w *writer) rowStep(vectors int) {
	acc := func(v int) string { return w.reg(stepRows + v) }
	for v := range vectors {
		w.op("VMOVUPS %s, %s", w.addr(v, "R9"), acc(v))
	}
	for i := range stepRows {
		for v := range vectors {
			w.op("VFMADD231PS %d%s, %s, %s", v*w.bytes(), rowAddr(i), w.reg(i), acc(v))
		}
	}
	for v := range vectors {
		w.op("VMOVUPS %s, %s", acc(v), w.addr(v, "R9"))
	}
	for _, base := range append([]string{"R9"}, bases(stepRows)...) {
		w.op("ADDQ $%d, %s", vectors*w.bytes(), base)
	}
}

// prefetchRows prefetches as many vectors of the rows of B that the next call will
// want. The processor prefetches by itself within pages only, and each of these rows
// lies in another.
func (w *writer) prefetchRows(vectors int) {
	for row := range stepRows {
		for v := 0; v < vectors; v += max(1, 64/w.bytes()) {
			w.op("PREFETCHT0 %d%s", v*w.bytes(), addrFrom(aheadBases, row))
		}
	}
	for _, base := range aheadBases {
		w.op("ADDQ $%d, %s", vectors*w.bytes(), base)
	}
}

// dot writes a function that computes the products of so many rows of A and
// columns of op(B), all contiguous, in lanes first and then across them.
func (w *writer) dot(rows, cols int) {
	w.begin(w.dotName(rows, cols), "dotArgs")
	w.op("MOVQ dotArgs_a(DI), SI")
	w.op("MOVQ dotArgs_as(DI), %s", regStride)
	w.op("LEAQ (%s)(%s*2), %s", regStride, regStride, regStride3)
	w.op("MOVQ dotArgs_b(DI), BX")
	w.op("MOVQ dotArgs_bs(DI), R12")
	w.op("LEAQ (R12)(R12*2), R13")
	w.op("MOVQ dotArgs_vectors(DI), CX")
	for i := range rows * cols {
		w.zero(w.reg(i))
	}
	w.op("DECQ CX")
	w.op("JZ last")
	w.label("vector")
	w.dotStep(rows, cols, false)
	w.op("ADDQ $%d, SI", w.bytes())
	w.op("ADDQ $%d, BX", w.bytes())
	w.op("DECQ CX")
	w.op("JNZ vector")
	w.label("last")
	w.setMask("dotArgs")
	w.dotStep(rows, cols, true)
	w.op("MOVQ dotArgs_sums(DI), DX")
	for row := range rows {
		w.sumLanes(row, cols)
	}
	w.end()
}

// dotStep adds the products of one vector of every row and column.
func (w *writer) dotStep(rows, cols int, masked bool) {
	addrs := []string{"(BX)", "(BX)(R12*1)", "(BX)(R12*2)", "(BX)(R13*1)"}
	b := func(col int) string { return w.operand(1 + col) }
	for col := range cols {
		w.load(addrs[col], b(col), masked)
	}
	a := w.operand(1 + cols)
	for row := range rows {
		w.load(rowAddr(row), a, masked)
		for col := range cols {
			w.op("VFMADD231PS %s, %s, %s", a, b(col), w.reg(row*cols+col))
		}
	}
}

// sumLanes adds up the lanes of a row's accumulators and stores the sums.
func (w *writer) sumLanes(row, cols int) {
	first := row * cols
	spare := 15
	if w.masks {
		spare = 31
		for i := first; i < first+cols; i++ {
			w.op("VEXTRACTF64X4 $1, Z%d, Y31", i)
			w.op("VADDPS Y31, Y%d, Y%d", i, i)
		}
	}
	w.comment("Four lanes of every accumulator, then the other four.")
	second := first + cols - 1
	w.op("VHADDPS Y%d, Y%d, Y%d", first+min(1, second-first), first, first)
	if cols > 2 {
		w.op("VHADDPS Y%d, Y%d, Y%d", first+3, first+2, first+2)
		second = first + 2
	}
	w.op("VHADDPS Y%d, Y%d, Y%d", second, first, first)
	extract := map[bool]string{false: "VEXTRACTF128", true: "VEXTRACTF32X4"}[w.masks]
	w.op("%s $1, Y%d, X%d", extract, first, spare)
	w.op("VADDPS X%d, X%d, X%d", spare, first, first)
	w.op("VMOVUPS X%d, %d(DX)", first, row*4*dotCols)
}

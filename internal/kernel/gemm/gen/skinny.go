package main

import "fmt"

// stepRows is how many rows of B the kernel of a single row takes at a time: as many
// streams as the processor prefetches well.
const stepRows = 8

// dotCols is how many columns of op(B), each contiguous, a dot kernel takes at a
// time.
const dotCols = 4

// dotName returns the name of a dot kernel's function.
func (s isa) dotName(rows, cols int) string { return fmt.Sprintf("%sDot%dx%d", s.name, rows, cols) }

// rowVectors is how many vectors of C the kernel of a single row holds.
const rowVectors = 4

// rowName returns the name of the function of a single row.
func (s isa) rowName() string { return s.name + "Row" }

// row writes the function of a single row of C. The coefficients stay in registers, and B
// is read from memory by the multiplications: a tile, which is narrow, reads it in runs that
// are too short for the processor to prefetch them by itself.
func (w *writer) row() {
	w.begin(w.rowName(), "rowArgs")
	w.op("MOVQ rowArgs_b(DI), SI")
	w.op("MOVQ rowArgs_bs(DI), %s", regStride)
	w.op("LEAQ (%s)(%s*2), %s", regStride, regStride, regStride3)
	w.setBases(stepRows)
	w.op("MOVQ rowArgs_c(DI), R9")
	w.op("MOVQ rowArgs_vectors(DI), CX")
	w.op("MOVQ rowArgs_a(DI), BX")
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
	w.setMask("rowArgs")
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

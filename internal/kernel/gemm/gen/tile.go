package main

import "fmt"

// tile is the shape of a micro-kernel. A masked one loads and stores only some
// lanes of its last vector. Sets with mask registers have masked ones only: the
// mask costs nothing there.
type tile struct {
	rows, vectors int
	masked        bool
}

// name returns the name of the tile's function.
func (t tile) name(s isa) string {
	name := fmt.Sprintf("%sTile%dx%d", s.name, t.rows, t.vectors)
	if t.masked && !s.masks {
		name += "Edge"
	}
	return name
}

// forms lists the forms of a micro-kernel that the set has, each with the field
// of package gemm's isa that holds the table of such kernels.
func (s isa) forms() []form {
	return []form{{"tiles", s.masks}, {"edges", true}}
}

type form struct {
	field  string
	masked bool
}

// tiles lists the micro-kernels of the set.
func (s isa) tiles() []tile {
	var all []tile
	seen := map[tile]bool{}
	for _, f := range s.forms() {
		for rows := 1; rows <= s.rows; rows++ {
			for vectors := 1; vectors <= s.wide; vectors++ {
				t := tile{rows, vectors, f.masked}
				if !seen[t] {
					seen[t] = true
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// Registers of a micro-kernel. Rows are reached five at a time from three bases:
// row*stride for row 0 … 4 is an address of one instruction.
const (
	regArgs    = "DI"
	regStride  = "R10" // bytes from a row of A to the next
	regStride3 = "R11"
	regStepA   = "R12" // bytes from one k to the next
	regStepB   = "R13"
	regB       = "BX"
	regK       = "CX"
	regC       = "DX"
	regLDC     = "AX"  // before and after the loop over k
	regTerms   = "AX"  // in the loop: the step to the next term
	regNext    = "R14" // what a kernel prefetches of the next panel of A
)

var rowBases = []string{"SI", "R8", "R9", "R14"}

// bases returns the base registers that rows rows need.
func bases(rows int) []string { return rowBases[:(rows+4)/5] }

// rowAddr returns the address of a row of A at the current k.
func rowAddr(row int) string { return addrFrom(rowBases, row) }

// addrFrom returns the address of a row from the base of its five.
func addrFrom(bases []string, row int) string {
	base := "(" + bases[row/5] + ")"
	switch row % 5 {
	case 0:
		return base
	case 3:
		return base + "(" + regStride3 + "*1)"
	default:
		return fmt.Sprintf("%s(%s*%d)", base, regStride, row%5)
	}
}

// setBases points the bases at rows 0, 5, 10 …; the first is set already.
func (w *writer) setBases(rows int) {
	all := bases(rows)
	for i := 1; i < len(all); i++ {
		w.op("LEAQ (%s)(%s*4), %s", all[i-1], regStride, all[i])
		w.op("ADDQ %s, %s", regStride, all[i])
	}
}

// tile writes a micro-kernel: for each of args.panels panels,
// C = alpha*A*B + beta*C with C's tile in registers.
func (w *writer) tile(t tile) {
	w.begin(t.name(w.isa), "tileArgs")
	w.op("MOVQ tileArgs_ars(DI), %s", regStride)
	w.op("LEAQ (%s)(%s*2), %s", regStride, regStride, regStride3)
	w.op("MOVQ tileArgs_acs(DI), %s", regStepA)
	w.op("MOVQ tileArgs_bs(DI), %s", regStepB)
	w.op("MOVQ tileArgs_b(DI), %s", regB)
	w.op("MOVQ tileArgs_c(DI), %s", regC)
	if t.masked {
		w.setMask("tileArgs")
	}
	w.op("MOVQ tileArgs_a(DI), SI")
	w.label("panel")
	w.op("MOVQ %s, tileArgs_panelB(DI)", regB)
	w.op("MOVQ SI, tileArgs_panelA(DI)")
	w.op("MOVQ tileArgs_k(DI), %s", regK)
	w.setBases(t.rows)
	w.op("MOVQ tileArgs_ldc(DI), %s", regLDC)
	w.clear(t)
	if w.prefetches(t) {
		w.op("MOVQ tileArgs_next(DI), %s", regNext)
	}
	w.op("MOVQ tileArgs_terms(DI), %s", regTerms)
	w.multiply(t)
	if w.prefetches(t) {
		w.op("LEAQ (%s*%d), %s", regStride, w.next, regNext)
		w.op("ADDQ %s, tileArgs_next(DI)", regNext)
	}
	w.op("MOVQ tileArgs_ldc(DI), %s", regLDC)
	w.update(t)
	w.op("MOVQ tileArgs_panelA(DI), SI")
	w.op("ADDQ tileArgs_apanel(DI), SI")
	w.op("MOVQ tileArgs_panelB(DI), %s", regB)
	w.op("ADDQ tileArgs_bpanel(DI), %s", regB)
	w.op("ADDQ tileArgs_cpanel(DI), %s", regC)
	w.op("DECQ tileArgs_panels(DI)")
	w.op("JNZ panel")
	w.end()
}

// acc returns the accumulator of a row and a vector.
func (w *writer) acc(t tile, row, v int) string { return w.reg(row*t.vectors + v) }

// operand returns one of the registers that are not accumulators, from the top.
func (w *writer) operand(n int) string {
	if w.masks {
		return w.reg(31 - n)
	}
	return w.reg(15 - n)
}

// regMask is the AVX2 edge's mask of lanes.
const regMask = "Y15"

// clear zeroes the accumulators and has C's tile fetched, which the product that
// follows hides.
func (w *writer) clear(t tile) {
	w.op("MOVQ %s, R14", regC)
	for row := range t.rows {
		w.op("PREFETCHT0 (R14)")
		if t.vectors > 1 {
			w.op("PREFETCHT0 %d(R14)", (t.vectors*w.lanes-1)*4)
		}
		if row < t.rows-1 {
			w.op("ADDQ %s, R14", regLDC)
		}
		for v := range t.vectors {
			w.zero(w.acc(t, row, v))
		}
	}
	w.resume(t)
}

// resume has the accumulators go on from C's tile, if the sums there are not ended.
func (w *writer) resume(t tile) {
	w.op("CMPL tileArgs_resume(DI), $0")
	w.op("JEQ begin")
	w.op("MOVQ %s, R14", regC)
	for row := range t.rows {
		if row > 0 {
			w.op("ADDQ %s, R14", regLDC)
		}
		for v := range t.vectors {
			w.load(w.addr(v, "R14"), w.acc(t, row, v), t.masksAt(v))
		}
	}
	w.label("begin")
}

// zero clears a register.
func (w *writer) zero(reg string) {
	if w.masks {
		w.op("VPXORD %s, %s, %s", reg, reg, reg)
		return
	}
	w.op("VXORPS %s, %s, %s", reg, reg, reg)
}

// multiply adds the products of all k to the accumulators.
func (w *writer) multiply(t tile) {
	first := 1 // operand 0 is the mask of AVX2's edges
	if w.masks {
		first = 0
	}
	w.label("loop")
	for v := range t.vectors {
		w.load(w.addr(v, regB), w.operand(first+v), t.masksAt(v))
	}
	if w.prefetches(t) {
		w.prefetchA()
	}
	broadcast := w.operand(first + t.vectors)
	for row := range t.rows {
		if w.masks && t.vectors == 1 {
			w.op("VFMADD231PS.BCST %s, %s, %s", rowAddr(row), w.operand(first), w.acc(t, row, 0))
			continue
		}
		w.op("VBROADCASTSS %s, %s", rowAddr(row), broadcast)
		for v := range t.vectors {
			w.op("VFMADD231PS %s, %s, %s", broadcast, w.operand(first+v), w.acc(t, row, v))
		}
	}
	for _, base := range bases(t.rows) {
		w.op("ADDQ %s, %s", regStepA, base)
	}
	w.op("ADDQ %s, %s", regStepB, regB)
	w.op("DECQ %s", regK)
	w.op("JNZ loop")
	w.nextTerm(t)
}

// nextTerm goes on with the next term of a sum of products, if there is one.
func (w *writer) nextTerm(t tile) {
	w.op("CMPQ %s, tileArgs_termsEnd(DI)", regTerms)
	w.op("JEQ sum")
	for _, base := range bases(t.rows) {
		w.op("ADDQ termStep_a(%s), %s", regTerms, base)
	}
	w.op("ADDQ termStep_b(%s), %s", regTerms, regB)
	w.op("ADDQ $termStep__size, %s", regTerms)
	w.op("MOVQ tileArgs_k(DI), %s", regK)
	w.op("JMP loop")
	w.label("sum")
}

// prefetches says whether a tile prefetches the next panel of A: a large one has
// the time.
func (w *writer) prefetches(t tile) bool {
	return t.vectors == w.wide && t.rows > w.rows/2
}

// prefetchA prefetches the next panel of A, a k of a few rows at a time.
func (w *writer) prefetchA() {
	for row := range w.next {
		w.op("PREFETCHT1 (%s)%s", regNext, []string{"", "(R10*1)", "(R10*2)", "(R11*1)"}[row])
	}
	w.op("ADDQ %s, %s", regStepA, regNext)
}

// load loads a vector, or some of its lanes.
func (w *writer) load(addr, to string, masked bool) {
	switch {
	case masked && w.masks:
		w.op("VMOVUPS.Z %s, K1, %s", addr, to)
	case masked:
		w.op("VMASKMOVPS %s, %s, %s", addr, regMask, to)
	default:
		w.op("VMOVUPS %s, %s", addr, to)
	}
}

// store is the opposite of load.
func (w *writer) store(from, addr string, masked bool) {
	switch {
	case masked && w.masks:
		w.op("VMOVUPS %s, K1, %s", from, addr)
	case masked:
		w.op("VMASKMOVPS %s, %s, %s", from, regMask, addr)
	default:
		w.op("VMOVUPS %s, %s", from, addr)
	}
}

// setMask loads the mask at a field that embeds lanes.
func (w *writer) setMask(args string) {
	if w.masks {
		w.op("KMOVW %s_lanes+lanes_kmask(DI), K1", args)
		return
	}
	w.op("VMOVUPS %s_lanes+lanes_mask(DI), %s", args, regMask)
}

// addr returns the address of vector v at a base.
func (w *writer) addr(v int, base string) string {
	return fmt.Sprintf("%d(%s)", v*w.bytes(), base)
}

// masksAt says whether vector v of a tile's row is masked.
func (t tile) masksAt(v int) bool { return t.masked && v == t.vectors-1 }

// update writes the tile to C, which it reads only if beta is not zero.
func (w *writer) update(t tile) {
	alpha, beta, old := w.operand(1), w.operand(2), w.operand(3)
	w.op("VBROADCASTSS tileArgs_alpha(DI), %s", alpha)
	w.everyAcc(t, func(row, v int) {
		w.op("VMULPS %s, %s, %s", alpha, w.acc(t, row, v), w.acc(t, row, v))
	})
	w.op("CMPL tileArgs_beta(DI), $0")
	w.op("JEQ write")
	w.op("VBROADCASTSS tileArgs_beta(DI), %s", beta)
	w.everyRow(t, func(row, v int) {
		w.load(w.addr(v, "R8"), old, t.masksAt(v))
		w.op("VFMADD231PS %s, %s, %s", beta, old, w.acc(t, row, v))
	})
	w.label("write")
	w.everyRow(t, func(row, v int) { w.store(w.acc(t, row, v), w.addr(v, "R8"), t.masksAt(v)) })
}

// everyRow calls fn for every accumulator with R8 at its row of C.
func (w *writer) everyRow(t tile, fn func(row, v int)) {
	w.op("MOVQ %s, R8", regC)
	w.everyAcc(t, func(row, v int) {
		if row > 0 && v == 0 {
			w.op("ADDQ %s, R8", regLDC)
		}
		fn(row, v)
	})
}

// everyAcc calls fn for every accumulator, row by row.
func (w *writer) everyAcc(t tile, fn func(row, v int)) {
	for row := range t.rows {
		for v := range t.vectors {
			fn(row, v)
		}
	}
}

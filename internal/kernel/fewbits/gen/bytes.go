package main

// Products of Q4_K with one or a few rounded rows, by bytes: its codes are those of packed bytes as
// they are, but for a mask, and an integer c of x is 128·h + l, h from -128 to 127 and l from 0 to
// 127. Of both, and of codes, what is multiplied at once are 4 elements of each of 4 blocks, and
// again of the second halves of these: a sum is then of one block, and only two are left to add.

// quads sets four registers to what they hold together: elements 4k to 4k+3 of each of four rows
// of 16 bytes, in their order, in the k-th. Rows are halves of registers, or of memory.
func (w multiplier) quads(even [2]int, odd [2]string, to [4]int) {
	for i := range 2 {
		w.op("VPUNPCKLDQ %s, Y%d, Y%d", odd[i], even[i], 8+2*i)
		w.op("VPUNPCKHDQ %s, Y%d, Y%d", odd[i], even[i], 9+2*i)
	}
	for i := range 2 {
		w.op("VPUNPCKLQDQ Y%d, Y%d, Y%d", 10+i, 8+i, to[2*i])
		w.op("VPUNPCKHQDQ Y%d, Y%d, Y%d", 10+i, 8+i, to[2*i+1])
	}
}

// planeAt is where a rounded group in bytes has quads of blocks of even numbers (part 0) or of odd
// ones: their h (plane 0) or their l.
func planeAt(quad, part, plane int) int { return 32 * (4*quad + 2*part + plane) }

// inBytes writes the function that makes such groups of rounded ones.
func (w multiplier) inBytes() {
	w.begin(w.name+"Bytes", "groupArgs")
	w.op("MOVQ groupArgs_src(DI), SI")
	w.op("MOVQ groupArgs_dst(DI), R8")
	w.op("MOVQ groupArgs_groups(DI), CX")
	w.label("group")
	for part := range 2 {
		for plane := range 2 {
			for row := range 4 {
				w.plane(64*(2*row+part), plane, row)
			}
			to := [4]int{0, 1, 2, 3}
			w.quads([2]int{0, 2}, [2]string{"Y1", "Y3"}, to)
			for quad, reg := range to {
				w.op("VMOVDQU Y%d, %d(R8)", reg, planeAt(quad, part, plane))
			}
		}
	}
	for at := scalesAt; at < groupBytes; at += 32 {
		w.op("VMOVDQU %d(SI), Y0", at)
		w.op("VMOVDQU Y0, %d(R8)", at)
	}
	w.op("ADDQ $%d, SI", groupBytes)
	w.op("ADDQ $%d, R8", groupBytes)
	w.op("DECQ CX")
	w.op("JNZ group")
	w.end()
}

// plane has h or l of the 32 integers of a block in a register.
func (w multiplier) plane(at, plane, to int) {
	for i := range 2 {
		w.op("VMOVDQU %d(SI), Y%d", at+32*i, 4+i)
		if plane == 0 {
			w.op("VPSRAW $7, Y%d, Y%[1]d", 4+i)
		} else {
			w.op("VPAND sevenBits<>(SB), Y%d, Y%[1]d", 4+i)
		}
	}
	w.op("VPACKSSWB Y5, Y4, Y4")
	w.op("VPERMQ $0xd8, Y4, Y%d", to)
}

// Registers of rounded rows' addresses, less that of the group in R8.
var xs = []string{"AX", "DX", "R11", "R12"}

// addresses has them, and in R13 where what is kept meanwhile is.
func (w multiplier) addresses(rows int) {
	for r, reg := range xs[:rows] {
		w.op("MOVQ groupArgs_xs+%d(DI), %s", 8*r, reg)
	}
	w.op("MOVQ groupArgs_space(DI), R13")
}

// byBytes writes the function that multiplies so many rounded rows, in bytes, by rows of Q4_K: 8
// sums of each pair, of every eighth block, are added to.
func (w multiplier) byBytes(name string, f whole, rows int) {
	w.rows(name, f, rows, func() {
		w.op("VMOVDQU 16(SI), Y0")
		w.op("VMOVDQU 80(SI), Y1")
		w.quads([2]int{0, 1}, [2]string{"48(SI)", "112(SI)"}, packed)
		f.scales(w)
		w.addresses(rows)
		if rows > 1 || w.wide {
			for i := range 8 {
				w.keep(i)
			}
		}
		for r := range rows {
			w.dotBytes(rows, xs[r])
			w.add1(f, r)
		}
	})
}

// rows writes a function over groups of rows, each of which is what step writes.
func (w multiplier) rows(name string, f whole, rows int, step func()) {
	w.begin(name, "groupArgs")
	w.op("MOVQ groupArgs_rows(DI), R9")
	w.op("MOVQ groupArgs_dst(DI), R10")
	w.op("MOVQ groupArgs_src(DI), BX")
	w.label("row")
	w.op("MOVQ BX, SI")
	w.op("XORQ R8, R8")
	w.op("MOVQ groupArgs_groups(DI), CX")
	w.label("group")
	w.base = "SI"
	w.near(f)
	step()
	w.op("ADDQ $%d, R8", groupBytes)
	w.op("ADDQ $%d, SI", f.bytesOf())
	w.op("DECQ CX")
	w.op("JNZ group")
	w.op("ADDQ $%d, R10", 32*rows)
	w.op("ADDQ groupArgs_stride(DI), BX")
	w.op("DECQ R9")
	w.op("JNZ row")
	w.end()
}

// add1 adds a group's products with a rounded row, in registers 8 and 9, to their sums.
func (w multiplier) add1(f whole, r int) {
	w.scaled(f, indexed("R8", scalesAt, xs[r], 1), indexed("R8", othersAt, xs[r], 1))
	w.op("VADDPS %d(R10), Y14, Y14", 32*r)
	w.op("VMOVUPS Y14, %d(R10)", 32*r)
}

// packed are the registers of quads of packed bytes.
var packed = [4]int{2, 3, 12, 15}

// lowOrHigh has codes of quads in register 13: i/2-th quads, of even blocks or of odd ones.
func (w multiplier) lowOrHigh(i int) {
	from := packed[i/2]
	if i%2 == 1 {
		w.op("VPSRLW $4, Y%d, Y13", from)
		from = 13
	}
	w.op("VPAND low4<>(SB), Y%d, Y13", from)
}

// keep has codes where kept finds them: with AVX-512 in a register, those of odd blocks 16 times,
// which takes no shift.
func (w multiplier) keep(i int) {
	if w.wide {
		mask := []string{"low4", "high4"}[i%2]
		w.op("VPANDD %s<>(SB), Y%d, Y%d", mask, packed[i/2], 16+i)
		return
	}
	w.lowOrHigh(i)
	w.op("VMOVDQU Y13, %d(R13)", 32*i)
}

// kept is the register of codes.
func (w multiplier) kept(rows, i int) int {
	switch {
	case w.wide:
		return 16 + i
	case rows == 1:
		w.lowOrHigh(i)
	default:
		w.op("VMOVDQU %d(R13), Y13", 32*i)
	}
	return 13
}

// dotBytes has products of codes and a rounded row in registers 8 and 9: those of four blocks each,
// twice, the halves of which are to be added.
func (w multiplier) dotBytes(rows int, x string) {
	for i := range 8 {
		quad, part := i/2, i%2
		codes := w.kept(rows, i)
		for plane := range 2 {
			w.dot(bytewise, indexed("R8", planeAt(quad, part, plane), x, 1), codes,
				4+2*part+plane, quad == 0)
		}
	}
	if !w.wide {
		for reg := 4; reg < 8; reg++ {
			w.op("VPMADDWD ones<>(SB), Y%d, Y%[1]d", reg)
		}
	}
	for reg := 4; reg < 8; reg += 2 {
		w.op("VPSLLD $7, Y%d, Y%[1]d", reg)
		w.op("VPADDD Y%d, Y%d, Y%[2]d", reg+1, reg)
	}
	w.op("VPUNPCKLDQ Y6, Y4, Y8")
	w.op("VPUNPCKHDQ Y6, Y4, Y9")
}

// bytewise are products of bytes: with AVX-512 four of them, of 32 bits; else two, of 16, for which
// a group's are small enough.
var bytewise = dotting{"VPDPBUSD", "VPMADDUBSW", "VPADDW", 14}

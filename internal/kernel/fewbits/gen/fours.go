package main

// foursSums are the registers of sums of blocks, of even numbers and of odd ones, with each of 4
// rounded rows.
var foursSums = [2][]int{{4, 5, 6, 7}, {8, 9, 11, 12}}

// fours writes the function that multiplies 4 rounded rows by rows, whose codes are unpacked once:
// 8 sums of each pair, of every eighth block, are added to. A block's products are kept in memory
// as 8 integers until those of the group are there.
func (w multiplier) fours(f whole) {
	w.rows(w.foursName(f.form), f, len(xs), func() {
		w.addresses(len(xs))
		f.codes(w, w.foursMultiplied)
		f.scales(w)
		w.addresses(len(xs))
		for r := range xs {
			w.foursCollected(r)
			w.add1(f, r)
		}
	})
}

// foursMultiplied adds the products of 16 codes to those of their block, of every rounded row.
func (w multiplier) foursMultiplied(block, half, reg int) {
	for r, to := range foursSums[block%2] {
		w.dot(words, indexed("R8", 32*(2*block+half), xs[r], 1), reg, to, half == 0)
	}
	if half == 0 {
		return
	}
	for r, from := range foursSums[block%2] {
		w.op("VMOVDQU Y%d, %d(R13)", from, 256*r+32*block)
	}
}

// foursCollected has a group's products with a rounded row in registers 8 and 9.
func (w multiplier) foursCollected(r int) {
	for two := range 4 { // blocks 2·two and the one behind it
		at := 256*r + 64*two
		w.op("VMOVDQU %d(R13), Y4", at)
		w.op("VPUNPCKLDQ %d(R13), Y4, Y5", at+32)
		w.op("VPUNPCKHDQ %d(R13), Y4, Y4", at+32)
		w.op("VPADDD Y4, Y5, Y%d", 6+two%2)
		if two%2 == 1 {
			w.fourBlocks(8 + two/2)
		}
	}
}

func (s isa) foursName(f form) string { return s.unpackName(f) + "Fours" }

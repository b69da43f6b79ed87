package fewbits

import (
	"unsafe"

	"github.com/gomem/gomem/internal/quant"
)

// unblocked is how many elements kernels take for a block of a format that has none.
const unblocked = 32

// together is how many elements kernels multiply at a time.
func together(f quant.Format) int { return max(unblocked, f.Block()) }

// leastAhead is how many bytes ahead of what is read of two rows memory is fetched, at the least:
// what is as far behind their begins is the begins of two others.
const leastAhead = 4096

// HasDots says whether there is a kernel for Dots of so many elements, and vectors of so many
// lanes.
func (r *Rows) HasDots(lanes, n int) bool {
	return !r.Format.Integral() && n%together(r.Format) == 0 && withLanes(lanes) != portable
}

// Dots sets sums to the products of x and as many elements, from one on, of rows from the first on,
// where there is a kernel for it. A product has as many sums as a vector of an instruction set has
// lanes, each of every so many elements, fused and in their order, which are added by halves at the
// end: the bits are those of what package gemm makes of the same numbers in float32.
func (r *Rows) Dots(lanes int, sums, x []float32, first, from int) {
	r.check(from, len(x))
	s, size, at := withLanes(lanes), r.size(), offset(r.Format, from)
	rows := r.Data[first*size:][:len(sums)*size]
	args := blockArgs{dst: unsafe.Pointer(&x[0]), blocks: len(x) / together(r.Format), stride: size,
		ahead: 2 * size * (1 + leastAhead/(2*size))}
	for len(sums) > 1 {
		args.pairs = min(len(sums)/2, max(1, span/2/len(x)))
		args.row, args.src = unsafe.Pointer(&rows[0]), unsafe.Pointer(&rows[at])
		args.sums = unsafe.Pointer(&sums[0])
		s.multiply(r.Format, &args)
		sums, rows = sums[2*args.pairs:], rows[2*args.pairs*size:]
	}
	if len(sums) > 0 { // a row without another is multiplied twice
		var twice [2]float32
		args.row, args.src = unsafe.Pointer(&rows[0]), unsafe.Pointer(&rows[at])
		args.pairs, args.stride, args.sums = 1, 0, unsafe.Pointer(&twice)
		s.multiply(r.Format, &args)
		sums[0] = twice[0]
	}
}

package gemm

import (
	"fmt"
	"unsafe"
)

// Sum is a sum of products of matrices that lie in common buffers,
//
//	C = A₀·B₀ + A₁·B₁ + …
//
// each A_t m×k, each B_t k×n: what a convolution is, with a term for every tap
// of its filter. It is computed on the caller's thread, so that the caller can cut
// its work up as its own operands want.
type Sum struct {
	M, N, K int
	Terms   []Term
	Add     bool // to what C holds, rather than overwrite it

	A          []float32
	RowA, ColA int // elements from a row of A_t to the next, from a column to the next
	B          []float32
	RowB       int // elements from a row of B_t to the next; columns are adjacent
	C          []float32
	RowC       int
}

// Term is where the operands of a product begin: elements of A and of B.
type Term struct{ A, B int }

// Compute computes the sum, the terms in their order and each in ascending k. It
// panics if an element of an operand is not in its slice. The result depends on the
// operands alone: a column computed with others has the bits that it has by itself.
// Nothing is computed if a dimension is zero, or there is no term.
func (s *Sum) Compute() { s.compute(best) }

func (s *Sum) compute(set *isa) {
	if s.M <= 0 || s.N <= 0 || s.K <= 0 || len(s.Terms) == 0 {
		return
	}
	s.check()
	w := workers.Get().(*worker)
	t := &w.tile
	t.alpha, t.ars, t.acs, t.bs, t.ldc = 1, 4*s.RowA, 4*s.ColA, 4*s.RowB, 4*s.RowC
	t.bpanel = 4 * set.cols()
	if set.sums {
		s.setSteps(w)
	}
	height, columns := split(s.M, set.rows), split(s.N, set.strip)
	if columns < s.N {
		columns = ceil(columns, set.cols()) * set.cols()
	}
	at := s.packA(set, w, height)
	for n := 0; n < s.N; n += columns {
		end := min(n+columns, s.N)
		at.b = s.packB(set, w, n, end)
		for m := 0; m < s.M; m += height {
			s.rows(set, w, at, m, min(m+height, s.M), n, end)
		}
	}
	w.forget()
	workers.Put(w)
}

// packed is where copies of a sum's operands are: nil if there are none.
type packed struct{ a, b unsafe.Pointer }

// packSumK is the least rows of B that pay for a copy, and packSumB the elements beyond
// which they do: fewer stay in the L2 cache as they are.
const (
	packSumK = 64
	packSumB = 1 << 16
)

// packA copies an A with contiguous columns to panels, for the reasons that products do.
func (s *Sum) packA(set *isa, w *worker, height int) packed {
	if w.stepA = 4 * height * s.RowA; !set.copyT || len(s.Terms) > 1 || s.RowA != 1 ||
		s.ColA == 1 || s.M > copyRows || s.K > kBlock || s.N <= set.cols() {
		return packed{}
	}
	w.blockA = lazily(w.blockA, blockSize)
	w.packA(set, w.blockA, unsafe.Pointer(&s.A[s.Terms[0].A]), 4*s.ColA, s.M, s.K, height)
	w.tile.ars, w.tile.acs, w.stepA = 4, 4*height, 4*(height*s.K+panelPad)
	return packed{a: unsafe.Pointer(&w.blockA[0])}
}

// packB copies columns n0 … n1 of B to panels, if there are rows enough to use them: B
// is often a panel of patches in the L3 cache, with rows pages apart.
func (s *Sum) packB(set *isa, w *worker, n0, n1 int) unsafe.Pointer {
	if len(s.Terms) > 1 || s.M <= readsB*set.rows || s.K < packSumK || s.K > kBlock ||
		s.K*s.RowB <= packSumB || s.N <= set.cols() {
		return nil
	}
	panel := set.cols()*s.K + panelPad
	w.packRows(set, panel, unsafe.Pointer(&s.B[s.Terms[0].B+n0]), 4*s.RowB, n1-n0, s.K)
	w.tile.bs, w.tile.bpanel = 4*set.cols(), 4*panel
	return unsafe.Pointer(&w.buffer[0])
}

// rows computes a row of tiles: rows m0 … m1 of columns n0 … n1.
func (s *Sum) rows(set *isa, w *worker, at packed, m0, m1, n0, n1 int) {
	t, atOnce := &w.tile, 1
	t.k, t.beta = s.K, 0
	if s.Add {
		t.beta = 1
	}
	if set.sums {
		atOnce = len(s.Terms)
	}
	for i := 0; i < len(s.Terms); i += atOnce {
		first := s.Terms[i]
		if t.a = unsafe.Pointer(&s.A[first.A+m0*s.RowA]); at.a != nil {
			t.a = unsafe.Add(at.a, m0/split(s.M, set.rows)*w.stepA)
		}
		if t.b = unsafe.Pointer(&s.B[first.B+n0]); at.b != nil {
			t.b = at.b
		}
		t.c = unsafe.Pointer(&s.C[m0*s.RowC+n0])
		t.next = uintptr(t.a) + uintptr(w.stepA)
		w.tiles(set, m1-m0, n1-n0)
		t.beta = 1
	}
}

// setSteps has the tiles go from term to term.
func (s *Sum) setSteps(w *worker) {
	w.steps = w.steps[:0]
	for i, t := range s.Terms[1:] {
		from := s.Terms[i]
		w.steps = append(w.steps, termStep{4 * (t.A - from.A - s.K*s.ColA),
			4 * (t.B - from.B - s.K*s.RowB)})
	}
	w.tile.terms = unsafe.Pointer(unsafe.SliceData(w.steps))
	w.tile.termsEnd = uintptr(w.tile.terms) + uintptr(len(w.steps))*unsafe.Sizeof(termStep{})
}

// check panics if an operand is too short.
func (s *Sum) check() {
	for _, t := range s.Terms {
		reach("a", s.A, t.A, s.M, s.RowA, s.K, s.ColA)
		reach("b", s.B, t.B, s.K, s.RowB, s.N, 1)
	}
	reach("c", s.C, 0, s.M, s.RowC, s.N, 1)
}

func reach(name string, s []float32, first, rows, row, cols, col int) {
	last := first + (rows-1)*row + (cols-1)*col
	if first < 0 || row < 0 || col < 0 || last >= len(s) {
		panic(fmt.Sprintf("gemm: %s has %d elements: too few for %d×%d from %d, strides %d and %d",
			name, len(s), rows, cols, first, row, col))
	}
}

// Transpose writes the transpose of the rows×cols matrix src, whose rows are
// rowSrc elements apart, to dst, whose rows are rowDst apart. It panics if an
// operand is too short.
func Transpose(dst []float32, rowDst int, src []float32, rowSrc, rows, cols int) {
	transpose(best, dst, rowDst, src, rowSrc, rows, cols)
}

func transpose(set *isa, dst []float32, rowDst int, src []float32, rowSrc, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	reach("src", src, 0, rows, rowSrc, cols, 1)
	reach("dst", dst, 0, cols, rowDst, rows, 1)
	w := workers.Get().(*worker)
	t := &w.pack
	t.dstStride, t.srcStride, t.rows, t.cols = 4*rowDst, 4*rowSrc, set.lanes, cols
	t.use((cols-1)%set.lanes + 1)
	i := 0
	for ; i+set.lanes <= rows; i += set.lanes { // fewer rows could be written past their end
		t.dst, t.src = unsafe.Pointer(&dst[i]), unsafe.Pointer(&src[i*rowSrc])
		set.transpose(t)
	}
	w.forget()
	workers.Put(w)
	for ; i < rows; i++ {
		for j, x := range src[i*rowSrc:][:cols] {
			dst[j*rowDst+i] = x
		}
	}
}

package gemm

import (
	"testing"

	"pgregory.net/rapid"
)

// TestOrder: products of one order give an element the same bits, whichever rows
// they are cut into.
func TestOrder(t *testing.T) {
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			x.batch = 1
			x.k = rapid.IntRange(1, 1300).Draw(t, "long k")
			x.pack()
			whole := x.result(s, nil)
			at := rapid.IntRange(1, max(1, x.m-1)).Draw(t, "first rows")
			for _, rows := range [][2]int{{0, at}, {at, x.m}} {
				if rows[0] == rows[1] {
					continue
				}
				part := x.rows(rows[0], rows[1])
				if part.product().Order() != x.product().Order() {
					continue
				}
				want := whole[rows[0]*x.n : rows[1]*x.n]
				if err := sameBits(part.result(s, nil), want); err != nil {
					t.Fatalf("%v: rows %v: %v", x, rows, err)
				}
			}
		})
	})
}

// rows is a packed problem of one product with some of its rows.
func (x *problem) rows(lo, hi int) *problem {
	y := *x
	y.m = hi - lo
	y.a = x.a[from(lo, x.lda, x.transA):]
	y.c = x.c[lo*x.ldc : hi*x.ldc]
	return &y
}

// TestContinuedSums: a product of the first runs of k, to which that of the others
// is added, has the bits of the whole.
func TestContinuedSums(t *testing.T) {
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			x.batch, x.alpha = 1, 1
			x.k = rapid.IntRange(1, 2100).Draw(t, "long k")
			x.pack()
			order := x.product().Order()
			if order.Block == 0 {
				return
			}
			if order.Block < x.k && order != x.inner(0, order.Block, order.Block).Order() {
				t.Fatalf("%v: a run of k has another order than all", x)
			}
			got := append([]float32(nil), x.c...)
			cut := order.Block * rapid.IntRange(1, ceil(x.k, order.Block)).Draw(t, "runs")
			for _, k := range [][2]int{{0, min(cut, x.k)}, {min(cut, x.k), x.k}} {
				if k[0] == k[1] {
					continue
				}
				part := x.inner(k[0], k[1], order.Block)
				if part.C = got; k[0] > 0 {
					part.Beta = 1
				}
				part.compute(s, nil)
			}
			if err := sameBits(got, x.result(s, nil)); err != nil {
				t.Fatalf("%v: cut after %d of k: %v", x, cut, err)
			}
		})
	})
}

// inner is a packed problem's product over some of k, in runs of a length.
func (x *problem) inner(lo, hi, block int) Product {
	y := x.product()
	y.K, y.Block = hi-lo, block
	y.A.F32 = x.a[from(lo, x.lda, !x.transA):]
	y.B.F32 = x.b[from(lo, x.ldb, x.transB):]
	return y
}

// from is where row lo begins, or column lo if columns are what is cut.
func from(lo, ld int, column bool) int {
	if column {
		return lo
	}
	return lo * ld
}

// TestOnce: a product that visits C once is added to it as by itself.
func TestOnce(t *testing.T) {
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			x.batch, x.alpha, x.beta = 1, 1, 0
			x.k = rapid.IntRange(1, 2100).Draw(t, "long k")
			x.pack()
			if !x.product().Once() {
				return
			}
			want := x.result(s, nil)
			for i, c := range x.c {
				want[i] += c
			}
			x.beta = 1
			if err := sameBits(x.result(s, nil), want); err != nil {
				t.Fatalf("%v: %v", x, err)
			}
		})
	})
}

// TestBadBlocks: runs that no buffer holds are refused.
func TestBadBlocks(t *testing.T) {
	for _, block := range []int{-1, kBlock + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("runs of %d are accepted", block)
				}
			}()
			Product{M: 1, N: 1, K: 1, Alpha: 1, Block: block, C: make([]float32, 1)}.Compute(nil)
		}()
	}
}

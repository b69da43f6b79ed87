package gemm

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/kernel/pool"
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

// TestPartsInTheOrderOfTheWhole: some rows and columns of a product have the bits of the
// whole if they are added up in its order, also where they are few and it is not.
func TestPartsInTheOrderOfTheWhole(t *testing.T) {
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			x.k = rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(400, 1300)).Draw(t, "long k")
			x.batch = rapid.IntRange(1, 3).Draw(t, "matrices")
			x.pack()
			whole := x.result(s, nil)
			m0 := rapid.IntRange(0, x.m-1).Draw(t, "first row")
			m1 := rapid.IntRange(m0+1, x.m).Draw(t, "row behind")
			n0 := rapid.IntRange(0, x.n-1).Draw(t, "first column")
			n1 := rapid.IntRange(n0+1, x.n).Draw(t, "column behind")
			part := x.product()
			part.As, part.M, part.N = part.Order(), m1-m0, n1-n0
			if part.Order() != part.As {
				t.Fatalf("%v: asked for %+v, have %+v", x, part.As, part.Order())
			}
			part.A.F32 = x.a[from(m0, x.lda, x.transA):]
			part.B.F32 = x.b[from(n0, x.ldb, !x.transB):]
			part.C = append([]float32(nil), x.c...)[m0*x.ldc+n0:]
			part.compute(s, nil)
			for b := range x.batch {
				for i := m0; i < m1; i++ {
					at := b*x.strideC + i*x.ldc
					got := part.C[at+n0-m0*x.ldc-n0:][:n1-n0]
					if err := sameBits(got, whole[at+n0:at+n1]); err != nil {
						t.Fatalf("%v: rows %d to %d, columns %d to %d: %v", x, m0, m1, n0, n1, err)
					}
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

// TestResumedSums: a product of one run of k may stop anywhere and go on.
func TestResumedSums(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			x.batch, x.alpha, x.beta = 1, 1, 0
			x.k = rapid.IntRange(2, kBlock).Draw(t, "k of a run")
			x.pack()
			order := x.product().Order()
			cut := rapid.IntRange(1, x.k-1).Draw(t, "cut")
			first, rest := x.inner(0, cut, order.Block), x.inner(cut, x.k, order.Block)
			if order.Block == 0 || first.Order() != order || rest.Order() != order {
				return
			}
			got := append([]float32(nil), x.c...)
			first.C, rest.C, rest.Resume = got, got, true
			first.compute(s, nil)
			rest.compute(s, p)
			if err := sameBits(got, x.result(s, nil)); err != nil {
				t.Fatalf("%v: cut after %d of k: %v", x, cut, err)
			}
			again := x.result(s, nil) // by workers that have resumed sums
			if err := sameBits(again, got); err != nil {
				t.Fatal(err)
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

// TestBadSums: runs that no buffer holds are refused, as are sums that cannot go on.
func TestBadSums(t *testing.T) {
	x := problem{m: 20, n: 20, k: 600, alpha: 1}
	x.pack()
	for name, spoil := range map[string]func(x *Product){
		"a negative run":   func(x *Product) { x.Block = -1 },
		"a long run":       func(x *Product) { x.Block = kBlock + 1 },
		"several runs":     func(x *Product) { x.Resume = true },
		"a factor":         func(x *Product) { x.Resume, x.K, x.Alpha = true, 9, 2 },
		"a sum and a sum":  func(x *Product) { x.Resume, x.K, x.Beta = true, 9, 1 },
		"few rows":         func(x *Product) { x.Resume, x.M, x.B.Trans = true, 4, true },
		"nothing to go on": func(x *Product) { x.Resume, x.K = true, 0 },
	} {
		y := x.product()
		spoil(&y)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			y.Compute(nil)
		}()
	}
}

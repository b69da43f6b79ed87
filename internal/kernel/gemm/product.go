package gemm

import (
	"fmt"

	"github.com/gomem/gomem/internal/kernel/fewbits"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// Product is a batch of independent products and what follows them,
//
//	C = Act(Alpha*op(A)*op(B) + Beta*C + Bias)
//
// where op(A) is M×K, op(B) K×N and C M×N, all row-major. If Beta is zero C is not
// read; if Alpha or K is zero neither are A and B. C must not overlap an operand.
type Product struct {
	Batch       int // products; zero is one
	M, N, K     int
	Alpha, Beta float32 // Alpha is 1 for a plain product: its zero value is a zero

	A, B         Matrix
	C            []float32
	LDC, StrideC int // elements from a row of C to the next, from a result to the next

	// Block is the length of the runs of K whose sums are added to C one after the
	// other, at most kBlock; zero chooses it by K. A product of few rows or columns
	// has none.
	Block int

	// As is the order of the sums, if it is not the zero value: that of the product of the
	// same K of which this one computes some rows and columns. So parts have the bits of
	// the whole, whatever their sizes.
	As Order

	// Resume has the sums go on from what C has, as if the terms of K followed those
	// that are summed there. Then K must be one run, Alpha 1 and Beta 0, and the
	// product not one of few rows or columns.
	Resume bool

	Epilogue
}

// Matrix is an operand of a product. One of bfloat16 or of few bits is widened as it is
// read: the product has the bits of that of the same numbers as float32.
type Matrix struct {
	F32    []float32
	BF16   []uint16     // instead of F32
	Rows   fewbits.Rows // instead of F32, if it has a format; of a batch of one, without strides
	LD     int          // elements from a row to the next
	Stride int          // from the matrix of a product to the next; zero shares it
	Trans  bool         // the rows are those of the transpose of op
}

// Epilogue is what becomes of every element of C once its product is complete,
// while it is in the cache: first the bias, then the activation, by package vec, so
// that the bits are those of the three operations one after another. The zero value
// does nothing.
type Epilogue struct {
	// Bias has an element for every column of C, added to all of its rows; nil for
	// none. All products of a batch have the same.
	Bias []float32

	// Act sets every dst[i] to a function of src[i] alone, as vec.Relu and vec.Gelu
	// do; nil for none. It is called in place (dst is src), on parts of C, by several
	// threads at once.
	Act func(dst, src []float32)
}

// Compute computes the product on the pool's threads; a nil pool is the caller
// alone. It does not allocate. It panics if an element of an operand is not in its
// slice. The result depends on the description alone: not on the number of threads,
// nor on where the slices lie.
func (x Product) Compute(p *pool.Pool) { x.compute(best, p) }

// compute computes the product with the kernels of an instruction set.
func (x Product) compute(s *isa, p *pool.Pool) {
	if x.Batch == 0 {
		x.Batch = 1
	}
	if x.Batch < 0 || x.M <= 0 || x.N <= 0 {
		return
	}
	c := calls.Get().(*call)
	c.set(&x)
	c.run(s, p)
	c.product = product{}
	calls.Put(c)
}

// product is a Product that was checked, with what it must not read left out.
type product struct {
	batch, m, n, k int
	block          int
	as             Order
	resume         bool
	alpha, beta    float32
	a, b, c        operand
	Epilogue
}

// set checks x and makes y its product.
func (y *product) set(x *Product) {
	if x.Block < 0 || x.Block > kBlock {
		panic(fmt.Sprintf("gemm: runs of %d of K, of which %d is the longest", x.Block, kBlock))
	}
	*y = product{batch: x.Batch, m: x.M, n: x.N, block: x.Block, as: x.As, resume: x.Resume,
		alpha: x.Alpha, beta: x.Beta, Epilogue: x.Epilogue}
	if x.Beta == 0 {
		y.beta = 0 // not -0, whose bits the kernels would take for another number
	}
	y.c.set("c", &Matrix{F32: x.C, LD: x.LDC, Stride: x.StrideC}, x.Batch, x.M, x.N)
	if x.K > 0 && x.Alpha != 0 {
		y.k = x.K
		y.a.set("a", &x.A, x.Batch, x.M, x.K)
		y.b.set("b", &x.B, x.Batch, x.K, x.N)
	}
	if y.Bias != nil && len(y.Bias) < x.N {
		panic(fmt.Sprintf("gemm: bias has %d elements: too few for %d columns", len(y.Bias), x.N))
	}
}

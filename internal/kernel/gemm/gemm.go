package gemm

import (
	"fmt"
	"unsafe"

	"github.com/gomem/gomem/internal/invariants"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// best is the instruction set in use.
var best = available()[0]

// F32 computes C = alpha*op(A)*op(B) + beta*C on the pool's threads, where op(A)
// is m×k, op(B) k×n and C m×n. All are row-major with the given leading
// dimensions (elements from a row to the next); transA says that A holds the
// transpose of op(A), a k×m matrix, and transB the same of B, n×k. If beta is
// zero C is not read; if alpha or k is zero neither are A and B, and C is scaled.
// C must not overlap A or B.
//
// The result depends on the arguments alone: not on the number of threads, nor
// on where the slices lie.
func F32(p *pool.Pool, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	BatchF32(p, transA, transB, 1, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0)
}

// BatchF32 computes batch independent products as F32 does, the i-th on the
// operands that begin at elements i*strideA, i*strideB and i*strideC. A zero
// strideA or strideB shares that operand among the products; the results must
// not overlap.
func BatchF32(p *pool.Pool, transA, transB bool, batch, m, n, k int, alpha float32, a []float32, lda, strideA int, b []float32, ldb, strideB int, beta float32, c []float32, ldc, strideC int) {
	batchF32(best, p, transA, transB, batch, m, n, k, alpha, a, lda, strideA, b, ldb, strideB, beta, c, ldc, strideC)
}

// batchF32 is BatchF32 with the kernels of an instruction set.
func batchF32(s *isa, p *pool.Pool, transA, transB bool, batch, m, n, k int, alpha float32, a []float32, lda, strideA int, b []float32, ldb, strideB int, beta float32, c []float32, ldc, strideC int) {
	if batch <= 0 || m <= 0 || n <= 0 {
		return
	}
	x := calls.Get().(*call)
	x.batch, x.m, x.n, x.k, x.alpha, x.beta = batch, m, n, k, alpha, beta
	if beta == 0 {
		x.beta = 0 // not -0, whose bits the kernels would take for another number
	}
	x.c.set("c", false, c, batch, m, n, ldc, strideC)
	if k <= 0 || alpha == 0 {
		x.scale(p)
	} else {
		x.a.set("a", transA, a, batch, m, k, lda, strideA)
		x.b.set("b", transB, b, batch, k, n, ldb, strideB)
		x.run(s, p)
	}
	x.a.data, x.b.data, x.c.data = nil, nil, nil
	calls.Put(x)
}

// product is the argument list of a batch of products.
type product struct {
	batch, m, n, k int
	alpha, beta    float32
	a, b, c        operand
}

// operand is a batch of matrices in memory. Strides are in elements.
type operand struct {
	data          unsafe.Pointer
	row, col, mat int  // strides from a row, a column and a matrix to the next
	colMajor      bool // col is the leading dimension and row is 1, else the reverse
}

// set makes o the operand rows×cols. It panics if an element of it is not in the
// slice: a kernel would touch foreign memory later.
func (o *operand) set(name string, trans bool, s []float32, batch, rows, cols, ld, stride int) {
	o.data, o.mat, o.colMajor = unsafe.Pointer(unsafe.SliceData(s)), stride, trans
	if o.row, o.col = ld, 1; trans {
		o.row, o.col = 1, ld
		rows, cols = cols, rows
	}
	last := (batch-1)*stride + (rows-1)*ld + cols - 1
	if ld < 0 || stride < 0 || last >= len(s) || invariants.Enabled && ld < cols {
		panic(fmt.Sprintf("gemm: %s has %d elements: too few for %d of %d×%d, leading dimension %d, stride %d",
			name, len(s), batch, rows, cols, ld, stride))
	}
}

// at returns the address of an element.
func (o *operand) at(mat, row, col int) unsafe.Pointer {
	return unsafe.Add(o.data, 4*(mat*o.mat+row*o.row+col*o.col))
}

// slice returns a row of a row-major operand.
func (o *operand) slice(mat, row, cols int) []float32 {
	return unsafe.Slice((*float32)(o.at(mat, row, 0)), cols)
}

// scaleGrain is how many elements of C are worth a piece of their own.
const scaleGrain = 1 << 14

// scale computes C = beta*C.
func (x product) scale(p *pool.Pool) {
	p.For(x.batch*x.m, max(1, scaleGrain/x.n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := x.c.slice(i/x.m, i%x.m, x.n)
			if x.beta == 0 {
				clear(row)
				continue
			}
			for j := range row {
				row[j] *= x.beta
			}
		}
	})
}

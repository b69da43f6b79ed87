package gemm

import (
	"fmt"
	"unsafe"

	"github.com/gomem/gomem/internal/invariants"
	"github.com/gomem/gomem/internal/kernel/fewbits"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// best is the instruction set in use.
var best = available()[0]

// InstructionSet names the instruction set in use: avx512, avx2 or portable.
func InstructionSet() string { return best.name }

// F32 computes C = alpha*op(A)*op(B) + beta*C on the pool's threads, where op(A)
// is m×k, op(B) k×n and C m×n. All are row-major with the given leading
// dimensions (elements from a row to the next); transA says that A holds the
// transpose of op(A), a k×m matrix, and transB the same of B, n×k. If beta is
// zero C is not read; if alpha or k is zero neither are A and B, and C is scaled.
// C must not overlap A or B.
//
// The result depends on the arguments alone: not on the number of threads, nor
// on where the slices lie.
func F32(p *pool.Pool, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, beta float32, c []float32, ldc int) {
	BatchF32(p, transA, transB, 1, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0)
}

// BatchF32 computes batch independent products as F32 does, the i-th on the
// operands that begin at elements i*strideA, i*strideB and i*strideC. A zero
// strideA or strideB shares that operand among the products; the results must
// not overlap.
func BatchF32(p *pool.Pool, transA, transB bool, batch, m, n, k int, alpha float32, a []float32,
	lda, strideA int, b []float32, ldb, strideB int, beta float32, c []float32, ldc, strideC int) {
	if batch <= 0 {
		return
	}
	Product{
		Batch: batch, M: m, N: n, K: k, Alpha: alpha, Beta: beta,
		A: Matrix{F32: a, LD: lda, Stride: strideA, Trans: transA},
		B: Matrix{F32: b, LD: ldb, Stride: strideB, Trans: transB},
		C: c, LDC: ldc, StrideC: strideC,
	}.Compute(p)
}

// operand is a batch of matrices in memory. Strides are in elements.
type operand struct {
	data          unsafe.Pointer
	row, col, mat int  // strides from a row, a column and a matrix to the next
	size          int  // bytes of an element: 4, 2 for bfloat16, or 0 in rows of few bits
	colMajor      bool // col is the leading dimension and row is 1, else the reverse
	rows          fewbits.Rows
}

// set makes o the operand rows×cols. It panics if an element of it is not in the
// slice: a kernel would touch foreign memory later.
func (o *operand) set(name string, x *Matrix, batch, rows, cols int) {
	*o = operand{data: unsafe.Pointer(unsafe.SliceData(x.F32)), size: 4, mat: x.Stride,
		colMajor: x.Trans}
	if x.Rows.Format != 0 {
		o.setRows(name, x, batch, rows, cols)
		return
	}
	have := len(x.F32)
	if x.BF16 != nil {
		o.data, o.size, have = unsafe.Pointer(unsafe.SliceData(x.BF16)), 2, len(x.BF16)
	}
	if o.row, o.col = x.LD, 1; x.Trans {
		o.row, o.col = 1, x.LD
		rows, cols = cols, rows
	}
	last := (batch-1)*x.Stride + (rows-1)*x.LD + cols - 1
	if x.LD < 0 || x.Stride < 0 || last >= have || invariants.Enabled && x.LD < cols {
		panic(fmt.Sprintf("gemm: %s has %d elements: too few for %d of %d×%d, leading dimension "+
			"%d, stride %d",
			name, have, batch, rows, cols, x.LD, x.Stride))
	}
}

// setRows is set of rows of few bits.
func (o *operand) setRows(name string, x *Matrix, batch, rows, cols int) {
	if x.Trans {
		rows, cols = cols, rows
	}
	o.size, o.rows = 0, x.Rows
	if have := x.Rows.Len(); batch != 1 || rows > have || cols > x.Rows.Elements {
		panic(fmt.Sprintf("gemm: %s has %d rows of %d elements: too few for %d of %d×%d", name,
			have, x.Rows.Elements, batch, rows, cols))
	}
}

// at returns the address of an element, of which there is none in rows of few bits.
func (o *operand) at(mat, row, col int) unsafe.Pointer {
	return unsafe.Add(o.data, o.size*(mat*o.mat+row*o.row+col*o.col))
}

// slice returns a row of a row-major operand.
func (o *operand) slice(mat, row, cols int) []float32 {
	return unsafe.Slice((*float32)(o.at(mat, row, 0)), cols)
}

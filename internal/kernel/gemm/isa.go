package gemm

import "unsafe"

// Bounds of the tables of micro-kernels, over every instruction set.
const (
	maxRows    = 14
	maxVectors = 2
	maxLanes   = 16
	maxDots    = 4
)

// Shapes of the kernels of products with few rows.
const (
	singleRows = 8 // rows of B of the kernel of a single row
	dotCols    = 4 // columns of op(B) of a dot kernel
)

// isa is an instruction set's micro-kernels and the shapes they have. A tile is
// up to rows × vectors*lanes elements of C, held in registers.
type isa struct {
	name                 string
	rows, vectors, lanes int

	// tiles[r-1][v-1] computes r rows of v whole vectors; edges the same with only
	// some lanes of the last vector.
	tiles, edges table

	// How operands reach the tiles, as measured: the most columns at a time, whose part of
	// B stays in the L2 cache; the most elements that a block of k of B may span to be
	// read where it lies; and whether an A with contiguous columns is copied.
	strip, direct int
	copyT         bool

	// sums says that the tiles take several terms.
	sums bool

	// transpose writes columns of up to lanes rows as rows. It may write a whole
	// vector at every destination row, in ascending order.
	transpose func(*packArgs)

	// copyA copies panels of an A with contiguous columns, and copyB panels of cols()
	// columns of a B with contiguous rows. What copyA writes past a panel is less than a
	// vector.
	copyA, copyB func(*packArgs)

	// row updates a single row of C by singleRows rows of B.
	row func(*rowArgs)

	// dots[r-1] compute the products of r rows with one and with dotCols columns.
	dots    [maxDots][2]func(*dotArgs)
	dotRows int
}

// table holds micro-kernels by rows and vectors, less one each.
type table [maxRows][maxVectors]func(*tileArgs)

// cols returns the columns of the widest tile.
func (s *isa) cols() int { return s.vectors * s.lanes }

// tileArgs are the arguments of a micro-kernel, which computes
//
//	C = alpha*A*B + beta*C
//
// for a number of panels: one of A against several of B, or those of as many
// products. Strides are in bytes. The fields that assembly writes are no pointers
// to the garbage collector, since they end up past the operands.
type tileArgs struct {
	a, b, c  unsafe.Pointer
	k        int // at least 1
	ars, acs int // from a row of A to the next, from a column to the next
	bs       int // from a row of B to the next
	ldc      int

	panels                 int // at least 1; counted down
	apanel, bpanel, cpanel int // from a panel, and tile of C, to the next

	//lint:ignore U1000 only assembly uses it
	panelA, panelB uintptr // assembly keeps the addresses of the panels here

	next uintptr // the next panel of A, to prefetch; counted up

	// The product is a sum over terms, each of k and as far from the end of the one
	// before as a step says. Both are nil for one term.
	terms    unsafe.Pointer
	termsEnd uintptr

	alpha, beta float32
	resume      int32 // not zero: sums go on from what C has
	lanes             // of the last vector
}

// termStep is the bytes from the end of a term's columns of A and rows of B to the
// begin of the next term's.
type termStep struct{ a, b int }

// packArgs are the arguments of what copies operands. Strides are in bytes, rows and
// cols at least 1. Of transpose they are the source's; dst is rows, and lanes of a row's
// last vector. Of copyA and copyB rows are panels, dstStride apart, and cols are what is
// after each other in a panel, srcStride apart in the source.
type packArgs struct {
	dst, src             unsafe.Pointer
	dstStride, srcStride int
	rows, cols           int
	step                 int // of copyA: from a panel to the next at the source
	lanes
}

// rowArgs are the arguments of a kernel that adds to a row of C the products of
// coefficients and as many rows of B.
type rowArgs struct {
	a, b, c unsafe.Pointer
	bs      int
	vectors int // of a row of C, at least 1
	lanes       // of the last vector
}

// dotArgs are the arguments of a kernel that computes the products of rows of A
// and columns of op(B), all of adjacent elements.
type dotArgs struct {
	a, b    unsafe.Pointer
	as, bs  int // from a row of A, a column of op(B), to the next
	vectors int // of k, at least 1
	lanes       // of the last vector
	sums    *[maxDots][dotCols]float32
}

// lanes says which lanes of a vector are used: the first so many, in the forms
// that the instruction sets want.
type lanes struct {
	inUse int
	kmask uint64
	mask  [8]uint32
}

// use sets the mask to the first n lanes.
func (l *lanes) use(n int) {
	if l.inUse == n {
		return
	}
	l.inUse = n
	l.kmask = 1<<n - 1
	for i := range l.mask {
		l.mask[i] = uint32(int64(i-n) >> 63)
	}
}

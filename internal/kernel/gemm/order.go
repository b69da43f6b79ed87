package gemm

// Order is how a product adds up an element of C. Products of one order and one K
// give an element the same bits, however many rows, columns and matrices they have.
type Order struct {
	chosen  bool // it is an order: the zero value is none
	path    path // tiled, dots or ranks
	flipped bool // the transpose of C is computed
	// Block is the length of the runs of K whose sums are added to C one after the
	// other: a product of the first runs, and then one of the others that is added to
	// it (Beta is 1), have the bits of the product of all. Zero if there are no runs.
	Block int
}

// Order is the order of the product's sums. It depends on the shape alone, Alpha,
// the slices and strides aside; what is true of it is true of every instruction set.
func (x Product) Order() Order {
	y := product{m: x.M, n: x.N, k: x.K, block: x.Block, as: x.As}
	y.a.colMajor, y.b.colMajor = x.A.Trans, x.B.Trans
	y.orient()
	o := Order{chosen: true, path: y.skinny(), flipped: y.c.colMajor}
	if o.path == tiled {
		o.Block = y.blockLength()
	}
	return o
}

// blockLength is the length of the runs of k of a tiled product.
func (x *product) blockLength() int {
	switch {
	case x.block > 0:
		return x.block
	case x.as.chosen:
		return x.as.Block
	}
	return split(max(1, x.k), kBlock)
}

// Once reports whether every element of C is visited once, when its sum is complete.
// Then a product that is added to C (Beta is 1) has the bits of one that is not, added
// to C afterwards.
func (x Product) Once() bool {
	switch o := x.Order(); o.path {
	case tiled:
		return x.K <= o.Block
	case dots:
		return x.K <= dotK
	}
	return true
}

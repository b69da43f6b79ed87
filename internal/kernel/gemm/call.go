package gemm

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/gomem/gomem/internal/kernel/pool"
)

// call is one batch of products on its way through the pool.
type call struct {
	product
	isa *isa
	layout

	compute func(piece int) // c.piece, bound once
}

var calls = sync.Pool{New: func() any {
	c := &call{}
	c.compute = c.piece
	return c
}}

// worker is what a thread needs to compute tasks.
type worker struct {
	tile tileArgs
	pack packArgs
	dot  dotArgs
	one  rowArgs

	buffer []float32 // packed panels of B, or rows of A, or sums
	blockA []float32 // a copied block of A, or nil so far
	stepA  int       // bytes from a panel of A to the next
	wide   []float32 // widened parts of B, or nil so far
	steps  []termStep
	sums   [maxDots][dotCols]float32
}

var workers = sync.Pool{New: func() any {
	w := &worker{buffer: make([]float32, bufferSize)}
	w.dot.sums = &w.sums
	return w
}}

// run computes the product.
func (c *call) run(s *isa, p *pool.Pool) {
	c.isa = s
	c.plan(s, &c.product, p.Threads())
	if c.resume && (c.path != tiled || c.kb < c.k || c.alpha != 1 || c.beta != 0) {
		panic(fmt.Sprintf("gemm: sums of a product %d×%d×%d cannot go on", c.m, c.n, c.k))
	}
	p.Run(ceil(c.tasks, c.perPiece), c.compute)
}

// piece runs a piece's tasks.
func (c *call) piece(piece int) {
	w := workers.Get().(*worker)
	for i := piece * c.perPiece; i < min((piece+1)*c.perPiece, c.tasks); i++ {
		w.task(c, i)
	}
	w.forget()
	workers.Put(w)
}

// forget drops what the worker knows of the operands.
func (w *worker) forget() {
	w.tile.a, w.tile.b, w.tile.c = nil, nil, nil
	w.tile.terms, w.tile.termsEnd, w.tile.resume = nil, 0, 0
	w.pack.src, w.pack.dst, w.dot.a, w.dot.b, w.one.b = nil, nil, nil, nil, nil
}

// task computes task i.
func (w *worker) task(c *call, i int) {
	rowTask, n0 := i/c.colTasks, i%c.colTasks*c.cols
	mat, m0 := rowTask/c.rowTasks, rowTask%c.rowTasks*c.rows
	m1, n1 := min(m0+c.rows, c.m), min(n0+c.cols, c.n)
	switch c.path {
	case grouped:
		w.groups(c, mat*c.group, min((mat+1)*c.group, c.batch))
	case dots:
		w.dots(c, mat, n0, n1)
		c.finish(mat, 0, c.m, n0, n1)
	case ranks:
		w.ranks(c, mat, n0, n1)
		c.finish(mat, 0, c.m, n0, n1)
	case scaled:
		c.scale(mat, m0, m1)
	default:
		for k0 := 0; k0 < c.k; k0 += c.kb {
			w.block(c, mat, m0, m1, n0, n1, k0, min(k0+c.kb, c.k))
		}
	}
}

// block adds the products of k0 … k1 to a block of C.
func (w *worker) block(c *call, mat, m0, m1, n0, n1, k0, k1 int) {
	t := &w.tile
	t.k, t.alpha, t.beta = k1-k0, c.alpha, c.beta
	if k0 > 0 {
		t.beta = 1
	}
	if c.resume {
		t.resume = 1
	}
	t.a, t.ars, t.acs, t.ldc = c.a.at(mat, m0, k0), 4*c.a.row, 4*c.a.col, 4*c.c.row
	if w.stepA = c.height * t.ars; c.copyA {
		w.copyA(c, mat, m0, m1, k0, k1)
	}
	a := t.a
	for n := n0; n < n1; n += c.strip {
		t.a = a
		w.columns(c, mat, m0, m1, n, min(n+c.strip, n1), k0, k1)
	}
}

// columns is block for few enough columns that what they need of B stays in the
// cache. The tile's A is that of row m0.
func (w *worker) columns(c *call, mat, m0, m1, n0, n1, k0, k1 int) {
	t := &w.tile
	t.b, t.bs, t.bpanel = c.b.at(mat, k0, n0), 4*c.b.row, 4*c.isa.cols()
	switch c.packB {
	case packColumns:
		w.packColumns(c, mat, n0, n1, k0, k1)
		w.usePacked(c)
	case widenRows:
		t.b, t.bs = c.b.runs(w.buffer, mat, k0, n0, n1-n0, k1-k0)
	case packRows:
		w.packRows(c.isa, c.panel, c.b.at(mat, k0, n0), 4*c.b.row, n1-n0, k1-k0)
		w.usePacked(c)
	}
	for m := m0; m < m1; m += c.height {
		w.row(c, mat, m, m1, n0, n1)
		c.finishPanel(mat, m, m1, n0, n1, k1)
	}
}

// finishPanel applies the epilogue to a row of tiles, from row m0, after the last
// block of k.
func (c *call) finishPanel(mat, m0, m1, n0, n1, k1 int) {
	if k1 == c.k {
		c.finish(mat, m0, min(m0+c.height, m1), n0, n1)
	}
}

// row computes a row of tiles, from row m0, and moves on to the next.
func (w *worker) row(c *call, mat, m0, m1, n0, n1 int) {
	t := &w.tile
	t.c = c.c.at(mat, m0, n0)
	next := t.a
	if m0+c.height < m1 {
		next = unsafe.Add(t.a, w.stepA)
	}
	t.next = uintptr(next)
	w.tiles(c.isa, min(c.height, m1-m0), n1-n0)
	t.a = next
}

// tiles computes a row of tiles of so many rows and columns.
func (w *worker) tiles(s *isa, rows, n int) {
	t, cols := &w.tile, s.cols()
	t.apanel, t.cpanel = 0, 4*cols
	whole, rest := n/cols, n%cols
	if whole > 0 {
		t.panels = whole
		t.use(s.lanes)
		s.tiles[rows-1][s.vectors-1](t)
	}
	if rest > 0 {
		b := t.b
		t.b, t.c = unsafe.Add(b, whole*t.bpanel), unsafe.Add(t.c, whole*4*cols)
		t.panels = 1
		t.use((rest-1)%s.lanes + 1)
		s.edges[rows-1][(rest-1)/s.lanes](t)
		t.b = b
	}
}

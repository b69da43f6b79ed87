package gemm

import (
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

// worker is what a thread needs to compute a piece.
type worker struct {
	tile tileArgs
	pack packArgs
	dot  dotArgs
	rank rankArgs

	buffer []float32 // packed panels of B, or rows of A, or sums
	panelA []float32 // a copied panel of A
	steps  []termStep
	sums   [maxDots][dotCols]float32
}

var workers = sync.Pool{New: func() any {
	w := &worker{buffer: make([]float32, bufferSize), panelA: make([]float32, maxHeight*(kBlock+panelPad))}
	w.dot.sums = &w.sums
	return w
}}

// run computes the product.
func (c *call) run(s *isa, p *pool.Pool) {
	c.isa = s
	c.plan(s, &c.product, p.Threads())
	p.Run(ceil(c.tasks, c.perPiece), c.compute)
}

// piece runs a piece's tasks.
func (c *call) piece(piece int) {
	w := workers.Get().(*worker)
	for i := piece * c.perPiece; i < min((piece+1)*c.perPiece, c.tasks); i++ {
		rowTask, n0 := i/c.colTasks, i%c.colTasks*c.cols
		mat, m0 := rowTask/c.rowTasks, rowTask%c.rowTasks*c.rows
		w.task(c, mat, m0, min(m0+c.rows, c.m), n0, min(n0+c.cols, c.n))
	}
	w.forget()
	workers.Put(w)
}

// forget drops what the worker knows of the operands.
func (w *worker) forget() {
	w.tile.a, w.tile.b, w.tile.c = nil, nil, nil
	w.tile.terms, w.tile.termsEnd = nil, 0
	w.pack.src, w.pack.dst, w.dot.a, w.dot.b, w.rank.b = nil, nil, nil, nil, nil
}

// task computes rows m0 … m1 and columns n0 … n1 of a product.
func (w *worker) task(c *call, mat, m0, m1, n0, n1 int) {
	switch c.path {
	case dots:
		w.dots(c, mat, n0, n1)
	case ranks:
		w.ranks(c, mat, n0, n1)
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
	t.ars, t.acs, t.ldc = 4*c.a.row, 4*c.a.col, 4*c.c.row
	t.b, t.bs, t.bpanel = c.b.at(mat, k0, n0), 4*c.b.row, 4*c.isa.cols()
	switch c.packB {
	case packBefore:
		w.packB(c, mat, n0, n1, k0, k1)
		w.usePacked(c)
	case packMeanwhile:
		t.packed, t.packedPanel, t.packedAt = unsafe.Pointer(&w.buffer[0]), 4*c.panel, 0
		w.row(c, mat, m0, m1, n0, n1, k0, &c.isa.packTiles, &c.isa.packEdges)
		w.usePacked(c)
		m0 += c.height
	}
	for m := m0; m < m1; m += c.height {
		w.row(c, mat, m, m1, n0, n1, k0, &c.isa.tiles, &c.isa.edges)
	}
}

// usePacked has the next tiles read B from the buffer.
func (w *worker) usePacked(c *call) {
	w.tile.b = unsafe.Pointer(&w.buffer[0])
	w.tile.bs, w.tile.bpanel = 4*c.isa.cols(), 4*c.panel
}

// packB packs columns n0 … n1 of a B whose columns are contiguous: of a panel,
// the elements of one k are adjacent, and those of the next k follow.
func (w *worker) packB(c *call, mat, n0, n1, k0, k1 int) {
	t, lanes, cols := &w.pack, c.isa.lanes, c.isa.cols()
	t.dstStride, t.srcStride, t.cols = 4*cols, 4*c.b.col, k1-k0
	t.use((t.cols-1)%lanes + 1)
	for n := 0; n < n1-n0; n += lanes {
		t.rows = min(lanes, n1-n0-n)
		t.dst = unsafe.Pointer(&w.buffer[n/cols*c.panel+n%cols])
		t.src = c.b.at(mat, k0, n0+n)
		c.isa.transpose(t)
	}
}

// row computes a row of tiles, from row m0.
func (w *worker) row(c *call, mat, m0, m1, n0, n1, k0 int, tiles, edges *table) {
	t, rows := &w.tile, min(c.height, m1-m0)
	t.a, t.c = c.a.at(mat, m0, k0), c.c.at(mat, m0, n0)
	t.next = uintptr(t.a)
	if m0+c.height < m1 {
		t.next += uintptr(c.height * t.ars)
	}
	if c.copyA {
		w.copyA(c, mat, m0, rows, k0)
	}
	w.tiles(c.isa, rows, n1-n0, tiles, edges)
}

// copyA copies a panel of A and has the next tiles read the copy. The panel after
// it is not prefetched: its copy will read it in long runs.
func (w *worker) copyA(c *call, mat, m0, rows, k0 int) {
	t, stride := &w.tile, c.kb+panelPad
	for i := range rows {
		copy(w.panelA[i*stride:i*stride+t.k], unsafe.Slice((*float32)(c.a.at(mat, m0+i, k0)), t.k))
	}
	t.a, t.ars = unsafe.Pointer(&w.panelA[0]), 4*stride
	t.next = uintptr(t.a)
}

// tiles computes a row of tiles of so many rows and columns.
func (w *worker) tiles(s *isa, rows, n int, tiles, edges *table) {
	t, cols := &w.tile, s.cols()
	whole, rest := n/cols, n%cols
	if whole > 0 {
		t.panels = whole
		t.use(s.lanes)
		tiles[rows-1][s.vectors-1](t)
	}
	if rest > 0 {
		b := t.b
		t.b, t.c = unsafe.Add(b, whole*t.bpanel), unsafe.Add(t.c, whole*4*cols)
		t.panels = 1
		t.use((rest-1)%s.lanes + 1)
		edges[rows-1][(rest-1)/s.lanes](t)
		t.b = b
	}
}

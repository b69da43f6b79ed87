package gemm

import "unsafe"

// A product with few rows reads op(B) once and computes little with it: memory
// sets its speed. What matters is that B is read in long runs, as the processor
// prefetches them, not in the narrow columns that a tile wants: a thread has one
// task, of whole rows if the sums leave room. A product with few columns is the
// transpose of one with few rows.

// skinnyRows is the most rows that a product may have to take a skinny path. It
// is not an instruction set's property, so that every set sums in one order.
const skinnyRows = 14

// Bounds of a skinny task.
const (
	dotK        = 2048    // longest run of k between two visits to C
	fewBitsCols = 16      // rows of few bits between two visits to C
	rankSums    = 1 << 15 // elements of C that a rank task keeps in the L2 cache
	rankCols    = 256     // fewest columns of a rank task, if C has as many
	rankK       = 512     // coefficients of a row of A in work
	rankRows    = 16      // rows of B at a time
	rankFew     = 3       // most rows of A for which it is half of that: little hides what is slow
	wideCols    = 1024    // most columns of a rank task that widens B
)

// path is how a product is computed.
type path int

const (
	tiled   path = iota
	dots         // op(B)'s columns are contiguous
	ranks        // op(B)'s rows are
	grouped      // several products of a batch at a time
	scaled       // no product: alpha or k is zero
)

// skinny returns the path of a product by its rows. It depends on the shape alone,
// since the paths round differently.
func (x *product) skinny() path {
	switch {
	case x.as.chosen:
		return x.as.path
	case x.m > skinnyRows:
		return tiled
	case x.b.colMajor && (x.m <= 4 && x.k >= 32 || x.k >= 512):
		return dots
	case !x.b.colMajor && (x.m <= 2 && x.n >= 64 || x.n >= 256 && x.n*x.k >= 1<<21):
		return ranks
	}
	return tiled
}

// transposed returns the product that computes the transpose of C.
func (x product) transposed() product {
	x.m, x.n = x.n, x.m
	x.a, x.b, x.c = x.b.transposed(), x.a.transposed(), x.c.transposed()
	return x
}

// transposed returns the transposed operand.
func (o operand) transposed() operand {
	o.row, o.col, o.colMajor = o.col, o.row, !o.colMajor
	return o
}

// skinnyCols returns the columns of a task, multiples of unit but the last.
func skinnyCols(x *product, most, least, unit, threads int) int {
	cols := min(most, ceil(x.n*x.batch, threads))
	return ceil(max(cols, least), unit) * unit
}

// planSkinny chooses the columns of a task, which has all rows.
func (l *layout) planSkinny(x *product, threads int) {
	l.rows = x.m
	if l.path == dots {
		l.cols = skinnyCols(x, x.n, 1+int(skinnyWork/work(x.m, 1, x.k)), dotCols, threads)
	} else {
		most := rankSums / x.m
		if x.b.narrow() {
			most = min(most, wideCols)
		}
		l.cols = skinnyCols(x, most, rankCols, 16, threads)
	}
}

// dots computes columns n0 … n1 of a product as products of vectors. A column of B is
// read from its begin to its end before the next, unless rows of A have to be copied
// for a run of k.
func (w *worker) dots(c *call, mat, n0, n1 int) {
	if c.m == 1 && c.b.size == 0 && c.a.contiguous() && c.b.rows.HasDots(c.isa.lanes, c.k) {
		w.fewBits(c, n0, n1)
		return
	}
	run := c.k
	if !c.a.contiguous() {
		run = dotK
	}
	for k0 := 0; k0 < c.k; k0 += run {
		k1 := min(k0+run, c.k)
		a := w.contiguousA(c, mat, k0, k1-k0)
		for n := n0; n < n1; {
			cols := dotCols
			if n1-n < dotCols {
				cols = 1
			}
			for k := k0; k < k1; k += dotK {
				w.dotBlock(c, unsafe.Add(a, 4*(k-k0)), mat, n, cols, k)
			}
			n += cols
		}
	}
}

// fewBits is dots of a single row and rows of few bits, which are unpacked in registers.
func (w *worker) fewBits(c *call, n0, n1 int) {
	sums := w.buffer[:min(n1-n0, fewBitsCols)]
	for n := n0; n < n1; n += len(sums) {
		sums = sums[:min(len(sums), n1-n)]
		for k, beta := 0, c.beta; k < c.k; k, beta = k+dotK, 1 {
			x := unsafe.Slice((*float32)(c.a.at(0, 0, k)), min(dotK, c.k-k))
			c.b.rows.Dots(c.isa.lanes, sums, x, n, k)
			for j, sum := range sums {
				update(at(c.c.at(0, 0, n+j), 0), sum, c.alpha, beta)
			}
		}
	}
}

// dotBlock adds the products of the run of k at k0 to so many columns.
func (w *worker) dotBlock(c *call, a unsafe.Pointer, mat, n, cols, k0 int) {
	t := &w.dot
	k, beta := min(dotK, c.k-k0), c.beta
	if k0 > 0 {
		beta = 1
	}
	t.vectors = ceil(k, c.isa.lanes)
	t.use((k-1)%c.isa.lanes + 1)
	t.b, t.bs = c.b.at(mat, k0, n), 4*c.b.col
	if c.b.narrow() {
		t.b, t.bs = w.widen(c, mat, k0, n, k, cols)
	}
	for m := 0; m < c.m; m += c.isa.dotRows {
		rows := min(c.isa.dotRows, c.m-m)
		t.a = unsafe.Add(a, m*t.as)
		c.isa.dots[rows-1][cols/dotCols](t)
		c.updateDots(t.sums, mat, m, n, rows, cols, beta)
	}
}

// contiguous says whether rows are of adjacent float32.
func (o *operand) contiguous() bool { return !o.colMajor && !o.narrow() }

// contiguousA returns the rows of A from k0, copied if their elements are not
// adjacent float32, and sets their stride.
func (w *worker) contiguousA(c *call, mat, k0, k int) unsafe.Pointer {
	if c.a.contiguous() {
		w.dot.as = 4 * c.a.row
		return c.a.at(mat, 0, k0)
	}
	one := c.a.one()
	for m := range c.m {
		row := w.buffer[m*k:][:k]
		if !c.a.colMajor {
			c.a.read(row, mat, m, k0)
			continue
		}
		for i := range row {
			row[i] = c.a.value(one, mat, m, k0+i)
		}
	}
	w.dot.as = 4 * k
	return unsafe.Pointer(&w.buffer[0])
}

// updateDots writes a block of C.
func (c *call) updateDots(sums *[maxDots][dotCols]float32, mat, m, n, rows, cols int,
	beta float32) {
	for i := range rows {
		for j := range cols {
			update(at(c.c.at(mat, m+i, n+j), 0), sums[i][j], c.alpha, beta)
		}
	}
}

// update writes alpha*sum + beta*c to an element of C, which it reads only if
// beta is not zero.
func update(c *float32, sum, alpha, beta float32) {
	sum = float32(alpha * sum)
	if beta != 0 {
		sum += float32(beta * *c)
	}
	*c = sum
}

// ranks computes columns n0 … n1 of a product as a sum of products of a few columns of A
// and as many rows of B at a time. B is read in runs as long as a task is wide, and the
// sums are in the L2 cache meanwhile.
func (w *worker) ranks(c *call, mat, n0, n1 int) {
	cols := n1 - n0
	stride := cols + panelPad
	sums, a := w.buffer[:c.m*stride], w.buffer[c.m*stride:]
	clear(sums)
	w.tile.alpha, w.tile.beta, w.tile.resume = 1, 0, 1
	most := rankRows
	if c.m <= rankFew {
		most /= 2
	}
	for k0 := 0; k0 < c.k; k0 += rankK {
		k1 := min(k0+rankK, c.k)
		c.gather(a, mat, k0, k1)
		for k := k0; k < k1; {
			rows, from := min(most, k1-k), a[(k-k0)*c.m:]
			b, bs := c.b.at(mat, k, n0), 4*c.b.row
			if c.b.narrow() {
				b, bs = w.widen(c, mat, k, n0, cols, rows)
			}
			if c.m == 1 && rows == singleRows {
				w.single(c.isa, sums[:cols], from, b, bs)
			} else {
				w.rank(c, sums, from, b, bs, cols, rows)
			}
			k += rows
		}
	}
	for m := range c.m {
		c.updateRow(mat, m, n0, sums[m*stride:][:cols])
	}
}

// rank adds to so many columns of sums the product of as many columns of A, one after the
// other, and rows of B, bs bytes apart.
func (w *worker) rank(c *call, sums, a []float32, b unsafe.Pointer, bs, cols, rows int) {
	t, stride := &w.tile, cols+panelPad
	t.k, t.ars, t.acs, t.ldc = rows, 4, 4*c.m, 4*stride
	t.b, t.bs, t.bpanel = b, bs, 4*c.isa.cols()
	height := split(c.m, c.isa.rows)
	for m := 0; m < c.m; m += height {
		t.a, t.c = unsafe.Pointer(&a[m]), unsafe.Pointer(&sums[m*stride])
		t.next = uintptr(t.a)
		w.tiles(c.isa, min(height, c.m-m), cols)
	}
}

// single is rank for a single row, and singleRows rows of B.
func (w *worker) single(s *isa, sums, a []float32, b unsafe.Pointer, bs int) {
	t := &w.one
	t.a, t.b, t.c, t.bs = unsafe.Pointer(&a[0]), b, unsafe.Pointer(&sums[0]), bs
	t.vectors = ceil(len(sums), s.lanes)
	t.use((len(sums)-1)%s.lanes + 1)
	s.row(t)
}

// gather copies columns k0 … k1 of A, one after the other.
func (c *call) gather(to []float32, mat, k0, k1 int) {
	one := c.a.one()
	for m := range c.m {
		for k := k0; k < k1; k++ {
			to[(k-k0)*c.m+m] = c.a.value(one, mat, m, k)
		}
	}
}

// updateRow writes sums to a row of C from column n on.
func (c *call) updateRow(mat, m, n int, sums []float32) {
	to, step := c.c.at(mat, m, n), 4*c.c.col
	if step == 4 && c.alpha == 1 && c.beta == 0 {
		copy(unsafe.Slice((*float32)(to), len(sums)), sums)
		return
	}
	for i, sum := range sums {
		update(at(to, i*step), sum, c.alpha, c.beta)
	}
}

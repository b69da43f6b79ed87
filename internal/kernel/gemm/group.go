package gemm

// groupBytes is what the operands of a group of products may take of the L1 cache.
const groupBytes = 24 << 10

// planGroup has a task compute several products of a batch, if they are of one panel
// of B each. A product of a few tiles costs little more than its set-up, which they
// share.
func (l *layout) planGroup(s *isa, x *product) {
	if x.batch == 1 || l.packB != packNot || x.a.narrow() || x.n > s.cols() || x.m > mBlock ||
		x.k > l.kb {
		return
	}
	l.path = grouped
	l.rows, l.cols = x.m, x.n
	l.group = min(x.batch, max(1, groupBytes/4/(x.m*x.k+x.k*x.n+x.m*x.n)))
}

// groups computes the products from mat0 to mat1, a row of tiles of each at a time.
func (w *worker) groups(c *call, mat0, mat1 int) {
	t, lanes := &w.tile, c.isa.lanes
	t.k, t.alpha, t.beta = c.k, c.alpha, c.beta
	t.ars, t.acs, t.ldc = 4*c.a.row, 4*c.a.col, 4*c.c.row
	t.b, t.bs = c.b.at(mat0, 0, 0), 4*c.b.row
	t.apanel, t.bpanel, t.cpanel = 4*c.a.mat, 4*c.b.mat, 4*c.c.mat
	t.use((c.n-1)%lanes + 1)
	kernels := &c.isa.edges
	if c.n%lanes == 0 {
		kernels = &c.isa.tiles
	}
	for m := 0; m < c.m; m += c.height {
		t.a, t.c = c.a.at(mat0, m, 0), c.c.at(mat0, m, 0)
		t.next, t.panels = uintptr(t.a), mat1-mat0
		kernels[min(c.height, c.m-m)-1][(c.n-1)/lanes](t)
	}
	for mat := mat0; mat < mat1; mat++ {
		c.finish(mat, 0, c.m, 0, c.n)
	}
}

package gemm

import "github.com/gomem/gomem/internal/kernel/vec"

// scaleGrain is how many elements of C are worth a task of their own.
const scaleGrain = 1 << 14

// planScale cuts up a C that is scaled only.
func (l *layout) planScale(x *product) {
	l.path, l.group, l.perPiece = scaled, 1, 1
	l.rows, l.cols = min(x.m, max(1, scaleGrain/x.n)), x.n
	l.rowTasks, l.colTasks = ceil(x.m, l.rows), 1
	l.tasks = x.batch * l.rowTasks
}

// scale computes rows m0 … m1 of C = beta*C, and the epilogue.
func (x *product) scale(mat, m0, m1 int) {
	for m := m0; m < m1; m++ {
		if row := x.c.slice(mat, m, x.n); x.beta == 0 {
			clear(row)
		} else {
			vec.MulScalar(row, row, x.beta)
		}
	}
	x.finish(mat, m0, m1, 0, x.n)
}

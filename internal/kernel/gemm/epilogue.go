package gemm

import "github.com/gomem/gomem/internal/kernel/vec"

// finish applies the epilogue to rows m0 … m1 and columns n0 … n1 of a result.
func (x *product) finish(mat, m0, m1, n0, n1 int) {
	if x.Bias == nil && x.Act == nil {
		return
	}
	rows := x.c
	if rows.colMajor { // the transpose of the caller's C
		rows = rows.transposed()
		m0, m1, n0, n1 = n0, n1, m0, m1
	}
	if n1-n0 == rows.row && x.Bias == nil { // one run
		run := rows.slice(mat, m0, (m1-m0)*rows.row)
		x.Act(run, run)
		return
	}
	for m := m0; m < m1; m++ {
		x.finishRow(rows.slice(mat, m, n1)[n0:], n0)
	}
}

// finishRow applies the epilogue to a part of a row, from column n0.
func (x *product) finishRow(row []float32, n0 int) {
	if x.Bias != nil {
		addTo(row, x.Bias[n0:])
	}
	if x.Act != nil {
		x.Act(row, row)
	}
}

// addTo adds x to dst. Few elements are not worth a call.
func addTo(dst, x []float32) {
	const few = 16
	if len(dst) >= few {
		vec.Add(dst, dst, x)
		return
	}
	for i := range dst {
		dst[i] += x[i]
	}
}

package main

import (
	"fmt"
	"io"

	"github.com/gomem/gomem/internal/kernel/fewbits"
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/quant"
)

// width is the elements of a row of the matrix, that of a network of a billion parameters.
const width = 2048

// matrix is the shape of what a row of x is multiplied by.
type matrix struct {
	rows   int
	x, out []float32
}

func newMatrix(rows int) *matrix {
	return &matrix{rows: rows, x: drawn(width), out: make([]float32, rows)}
}

// speed is how many millions of elements of a matrix a product with a single row reads in a second.
func (m *matrix) speed(rounds int, of gemm.Matrix) float64 {
	of.LD, of.Trans = width, true
	p := gemm.Product{M: 1, N: m.rows, K: width, Alpha: 1, A: gemm.Matrix{F32: m.x, LD: width},
		B: of, C: m.out, LDC: m.rows}
	return rate(rounds, m.rows*width, func() { p.Compute(nil) })
}

// packed is a matrix of equal rows.
func (m *matrix) packed(f quant.Format) fewbits.Rows {
	size, err := f.RowBytes(width)
	if err != nil {
		panic(err) // the width is a multiple of every block
	}
	data := make([]byte, int(size)*m.rows)
	f.Pack(data[:size], drawn(width))
	for at := int(size); at < len(data); at *= 2 {
		copy(data[at:], data[:at])
	}
	return fewbits.Rows{Format: f, Elements: width, Data: data}
}

// products prints how fast rows are unpacked and multiplied, beside float32's.
func products(w io.Writer, formats []quant.Format, m *matrix, rounds int) {
	fmt.Fprintf(w, "\nA row times a matrix of %d rows of %d elements\n\n", m.rows, width)
	fmt.Fprintln(w, "| format | unpacked, M/s | by Go | multiplied, M/s | GB/s | of f32's |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|")
	plain := gemm.Matrix{F32: make([]float32, m.rows*width)}
	for at := 0; at < len(plain.F32); at += width {
		copy(plain.F32[at:], m.x)
	}
	to := make([]float32, len(plain.F32))
	copied := rate(rounds, len(to), func() { copy(to, plain.F32) })
	fmt.Fprintf(w, "| f32, copied | | | %.0f | %.1f | |\n", copied, 4e-3*copied)
	whole := m.speed(rounds, plain)
	fmt.Fprintf(w, "| f32 | | | %.0f | %.1f | 1.00 |\n", whole, 4e-3*whole)
	for _, f := range formats {
		rows, to := m.packed(f), to[:width]
		each := func(read func(row int)) float64 {
			return rate(rounds, m.rows*width, func() {
				for row := range m.rows {
					read(row)
				}
			})
		}
		size := len(rows.Data) / m.rows
		kernels := each(func(row int) { rows.Read(to, row, 0) })
		plainly := each(func(row int) { f.Unpack(to, rows.Data[row*size:][:size]) })
		// float32's again, since what else runs on the machine comes and goes.
		whole := m.speed(rounds, plain)
		speed := m.speed(rounds, gemm.Matrix{Rows: rows})
		fmt.Fprintf(w, "| %s | %.0f | %.0f | %.0f | %.1f | %.2f |\n", f, kernels, plainly, speed,
			1e-3*speed*float64(size)/width, speed/whole)
	}
}

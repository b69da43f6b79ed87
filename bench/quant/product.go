package main

import (
	"fmt"
	"io"
	"math"

	"github.com/gomem/gomem/internal/kernel/fewbits"
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/quant"
)

// width is the elements of a row of the matrix, that of a network of a billion parameters, and many
// how many rows are multiplied by it as a prompt is.
const (
	width = 2048
	many  = 64
)

// matrix is the shape of what rows of x are multiplied by.
type matrix struct {
	rows    int
	x, out  []float32
	rounded []byte
}

func newMatrix(rows int) *matrix {
	return &matrix{rows: rows, x: drawn(many * width), out: make([]float32, many*rows),
		rounded: make([]byte, many*fewbits.RoundedBytes(width))}
}

// speed is how many millions of elements of a matrix products with so many rows of x read in a
// second, times those rows.
func (m *matrix) speed(rounds, rowsOfX int, of gemm.Matrix) float64 {
	of.LD, of.Trans = width, true
	return rate(rounds, rowsOfX*m.rows*width, func() { m.multiply(rowsOfX, of) })
}

// multiply multiplies as package ops does.
func (m *matrix) multiply(rowsOfX int, of gemm.Matrix) {
	if of.Rows.Format.Integral() {
		size := len(m.rounded) / many
		for i := range rowsOfX {
			fewbits.Round(m.rounded[i*size:][:size], m.x[i*width:][:width])
		}
		of.Rows.Times(m.out, m.rows, m.rounded, rowsOfX, 0, m.rows)
		return
	}
	gemm.Product{M: rowsOfX, N: m.rows, K: width, Alpha: 1, A: gemm.Matrix{F32: m.x, LD: width},
		B: of, C: m.out, LDC: m.rows}.Compute(nil)
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
	fmt.Fprintf(w, "\nA row, and %d, times a matrix of %d rows of %d elements\n\n", many, m.rows,
		width)
	fmt.Fprintln(w, "| format | unpacked, M/s | by Go | multiplied, M/s | GB/s | of f32's | "+
		"many, M/s | of f32's |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|")
	plain := gemm.Matrix{F32: make([]float32, m.rows*width)}
	for at := 0; at < len(plain.F32); at += width {
		copy(plain.F32[at:], m.x[:width])
	}
	to := make([]float32, len(plain.F32))
	copied := rate(rounds, len(to), func() { copy(to, plain.F32) })
	fmt.Fprintf(w, "| f32, copied | | | %.0f | %.1f | | | |\n", copied, 4e-3*copied)
	whole := m.speed(rounds, 1, plain)
	fmt.Fprintf(w, "| f32 | | | %.0f | %.1f | 1.00 | %.0f | 1.00 |\n", whole, 4e-3*whole,
		m.speed(rounds, many, plain))
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
		whole, wholes := m.speed(rounds, 1, plain), m.speed(rounds, many, plain)
		speed, speeds := m.speed(rounds, 1, gemm.Matrix{Rows: rows}),
			m.speed(rounds, many, gemm.Matrix{Rows: rows})
		fmt.Fprintf(w, "| %s | %.0f | %.0f | %.0f | %.1f | %.2f | %.0f | %.2f |\n", f, kernels,
			plainly, speed, 1e-3*speed*float64(size)/width, speed/whole, speeds, speeds/wholes)
	}
}

// roundings prints what products lose, whose x is rounded to integers, beside those of float32, and
// what codes of 8 bits would lose: of rows of x that are drawn, and of such with a few elements a
// hundred times as large.
func roundings(w io.Writer, formats []quant.Format) {
	const rows = 128
	fmt.Fprintf(w, "\nErrors of products of rows of %d elements\n\n", width)
	fmt.Fprintln(w, "| format | by integers | f32 | 8 bits | with outliers: by integers | f32 | "+
		"8 bits |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|")
	for _, f := range formats {
		if !f.Integral() {
			continue
		}
		m := newMatrix(rows)
		of := fewbits.Rows{Format: f, Elements: width}
		size := len(m.packed(f).Data) / rows
		of.Data = make([]byte, rows*size)
		plain, all := make([]float32, rows*width), drawn((rows+1)*width)
		for j := range rows {
			row := of.Data[j*size:][:size]
			f.Pack(row, all[(j+1)*width:][:width])
			f.Unpack(plain[j*width:][:width], row)
		}
		fmt.Fprintf(w, "| %s |", f)
		for range 2 {
			m.multiply(1, gemm.Matrix{Rows: of})
			integers := m.error(plain)
			m.multiply(1, gemm.Matrix{F32: plain, LD: width, Trans: true})
			floats := m.error(plain)
			m.by8(plain)
			fmt.Fprintf(w, " %.1e | %.1e | %.1e |", integers, floats, m.error(plain))
			for i := 0; i < width; i += 500 {
				m.x[i] *= 100
			}
		}
		fmt.Fprintln(w)
	}
}

// error is the root of the mean square of what results of the first row of x lack, as a part of
// that of the results.
func (m *matrix) error(of []float32) float64 {
	var errors, all float64
	for j := range m.rows {
		want := 0.0
		for i, v := range of[j*width:][:width] {
			want += float64(float64(m.x[i]) * float64(v))
		}
		e := float64(m.out[j]) - want
		errors, all = errors+float64(e*e), all+float64(want*want)
	}
	return math.Sqrt(errors / all)
}

// by8 multiplies by the first row of x rounded to 127 multiples of the largest of each 32.
func (m *matrix) by8(of []float32) {
	x := make([]float64, width)
	for b := 0; b < width; b += 32 {
		most := 0.0
		for _, v := range m.x[b:][:32] {
			most = max(most, math.Abs(float64(v)))
		}
		for i, v := range m.x[b:][:32] {
			x[b+i] = math.RoundToEven(float64(v)*127/most) * most / 127
		}
	}
	for j := range m.rows {
		sum := 0.0
		for i, v := range of[j*width:][:width] {
			sum += float64(x[i] * float64(v))
		}
		m.out[j] = float32(sum)
	}
}

package strads

import (
	"fmt"
	"math"
)

// Design is a matrix, a row a sample and a column a feature, that is stored column by column,
// since that is what coordinate descent reads. A column has all of its numbers, or those that are
// not 0.
type Design struct {
	rows, cols int
	dense      []float64 // nil: sparse
	start      []int     // of each column's entries, and one more
	row        []int32   // ascending in a column
	value      []float64
}

// Dense is a design of the numbers of its columns, one column after the other. It keeps them.
func Dense(rows, cols int, columns []float64) (*Design, error) {
	if rows < 1 || cols < 0 || len(columns) != rows*cols {
		return nil, fmt.Errorf("strads: %d numbers for a design of %d x %d", len(columns), rows,
			cols)
	}
	if err := finite(columns); err != nil {
		return nil, err
	}
	return &Design{rows: rows, cols: cols, dense: columns}, nil
}

// Sparse is a design whose column j has entries [start[j], start[j+1]): rows, ascending, and
// values. It keeps the slices.
func Sparse(rows int, start []int, row []int32, value []float64) (*Design, error) {
	if rows < 1 || len(start) == 0 || start[0] != 0 || start[len(start)-1] != len(row) ||
		len(row) != len(value) {
		return nil, fmt.Errorf("strads: %d rows, %d columns and %d entries of %d values are no "+
			"design", rows, len(start)-1, len(row), len(value))
	}
	for j := range len(start) - 1 {
		if start[j] > start[j+1] || start[j+1] > len(row) {
			return nil, fmt.Errorf("strads: column %d has entries %d to %d", j, start[j],
				start[j+1])
		}
		last := int32(-1)
		for _, i := range row[start[j]:start[j+1]] {
			if i <= last || int(i) >= rows {
				return nil, fmt.Errorf("strads: column %d has row %d of %d after %d", j, i, rows,
					last)
			}
			last = i
		}
	}
	if err := finite(value); err != nil {
		return nil, err
	}
	return &Design{rows: rows, cols: len(start) - 1, start: start, row: row, value: value}, nil
}

func finite(x []float64) error {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("strads: %g among the numbers of a problem", v)
		}
	}
	return nil
}

// column is a dense column.
func (d *Design) column(j int32) []float64 { return d.dense[int(j)*d.rows:][:d.rows] }

// entries are those of a sparse column.
func (d *Design) entries(j int32) (row []int32, value []float64) {
	from, to := d.start[j], d.start[j+1]
	return d.row[from:to], d.value[from:to]
}

// dot is the product of a column with a vector of all rows.
func (d *Design) dot(j int32, v []float64) float64 {
	if d.dense != nil {
		return dot(d.column(j), v)
	}
	row, value := d.entries(j)
	sum := 0.0
	for k, i := range row {
		sum += float64(value[k] * v[i])
	}
	return sum
}

// dot has four sums, since an addition takes as long as four can be begun in.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0] * b[0])
		s1 += float64(a[1] * b[1])
		s2 += float64(a[2] * b[2])
		s3 += float64(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += float64(x * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// add adds a multiple of a column to a vector.
func (d *Design) add(j int32, times float64, v []float64) {
	if d.dense != nil {
		x := d.column(j)
		v = v[:len(x)]
		for i, a := range x {
			v[i] += float64(times * a)
		}
		return
	}
	row, value := d.entries(j)
	for k, i := range row {
		v[i] += float64(times * value[k])
	}
}

// cross is the product of two columns.
func (d *Design) cross(j, k int32) float64 {
	if d.dense != nil {
		return dot(d.column(j), d.column(k))
	}
	left, a := d.entries(j)
	right, b := d.entries(k)
	sum := 0.0
	for len(left) > 0 && len(right) > 0 {
		switch {
		case left[0] < right[0]:
			left, a = left[1:], a[1:]
		case left[0] > right[0]:
			right, b = right[1:], b[1:]
		default:
			sum += float64(a[0] * b[0])
			left, a, right, b = left[1:], a[1:], right[1:], b[1:]
		}
	}
	return sum
}

// each calls f for each row in which a column may not be 0, with the number there.
func (d *Design) each(j int32, f func(i int32, x float64)) {
	if d.dense != nil {
		for i, x := range d.column(j) {
			f(int32(i), x)
		}
		return
	}
	row, value := d.entries(j)
	for k, i := range row {
		f(i, value[k])
	}
}

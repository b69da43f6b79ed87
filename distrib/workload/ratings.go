package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
)

// Ratings are the known elements of a matrix.
type Ratings struct {
	Rows, Cols int
	// What a file calls rows and columns, ascending; nil: 1 and so on.
	RowNames, ColNames []int32

	row, col []int32
	value    []float32
}

// Len is how many elements are known.
func (r *Ratings) Len() int { return len(r.value) }

// All are the known elements, by row and then column.
func (r *Ratings) All() iter.Seq2[[2]int32, float32] {
	return func(yield func([2]int32, float32) bool) {
		for i, v := range r.value {
			if !yield([2]int32{r.row[i], r.col[i]}, v) {
				return
			}
		}
	}
}

// mean is that of the known elements, 0 if there are none.
func (r *Ratings) mean() float64 {
	sum := 0.0
	for _, v := range r.value {
		sum += float64(v)
	}
	return sum / float64(max(1, r.Len()))
}

// sorted orders the elements by row, then column.
func (r *Ratings) sorted() {
	order := make([]int, r.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.row[a], r.row[b]), cmp.Compare(r.col[a], r.col[b]))
	})
	was := *r
	r.row, r.col, r.value = nil, nil, nil
	for _, i := range order {
		r.add(was.row[i], was.col[i], was.value[i])
	}
}

func (r *Ratings) add(row, col int32, v float32) {
	r.row, r.col, r.value = append(r.row, row), append(r.col, col), append(r.value, v)
}

// Shard is the part of worker w of n, which has all elements of rows [from, to): as nearly
// 1/n of all elements as whole rows allow.
func (r *Ratings) Shard(w, n int) (part *Ratings, from, to int) {
	from, to = r.bound(w, n), r.bound(w+1, n)
	lo, _ := slices.BinarySearch(r.row, int32(from))
	hi, _ := slices.BinarySearch(r.row, int32(to))
	return &Ratings{Rows: r.Rows, Cols: r.Cols, row: r.row[lo:hi], col: r.col[lo:hi],
		value: r.value[lo:hi]}, from, to
}

// bound is the first row of worker w of n.
func (r *Ratings) bound(w, n int) int {
	if w == 0 {
		return 0
	}
	if i := r.Len() * w / n; w < n && i < r.Len() {
		return int(r.row[i])
	}
	return r.Rows
}

// The most ratings that are read, and rows or columns that they may have.
const (
	maxRatings = 1 << 28
	maxSide    = 1 << 26
)

// ReadMatrixMarket reads ratings in MatrixMarket's coordinate format, of real or integer
// elements, general ones. Each element comes once.
func ReadMatrixMarket(in io.Reader) (*Ratings, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	p := market{}
	number := 0
	for lines.Scan() {
		number++
		if err := p.line(lines.Bytes(), number == 1); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	return p.finish()
}

type market struct {
	r    *Ratings
	want int
}

func (p *market) line(b []byte, first bool) error {
	if first {
		return marketHeader(string(bytes.ToLower(b)))
	}
	words := bytes.Fields(b)
	if len(words) == 0 || b[0] == '%' {
		return nil
	}
	if len(words) != 3 {
		return fmt.Errorf("%d numbers, want 3", len(words))
	}
	if p.r == nil {
		return p.size(words)
	}
	return p.element(words)
}

func marketHeader(s string) error {
	words := bytes.Fields([]byte(s))
	if len(words) != 5 || string(words[0]) != "%%matrixmarket" || string(words[1]) != "matrix" {
		return errors.New("want %%MatrixMarket matrix coordinate real general")
	}
	kind, sym := string(words[3]), string(words[4])
	if string(words[2]) != "coordinate" || kind != "real" && kind != "integer" ||
		sym != "general" {
		return fmt.Errorf("a matrix %.60q, want coordinate real general",
			bytes.Join(words[2:], []byte(" ")))
	}
	return nil
}

func (p *market) size(words [][]byte) error {
	rows, err1 := strconv.Atoi(string(words[0]))
	cols, err2 := strconv.Atoi(string(words[1]))
	n, err3 := strconv.Atoi(string(words[2]))
	if errors.Join(err1, err2, err3) != nil || rows < 1 || cols < 1 || n < 1 ||
		rows > maxSide || cols > maxSide || n > maxRatings {
		return fmt.Errorf("%.60q is no size of a matrix", bytes.Join(words, []byte(" ")))
	}
	p.r, p.want = &Ratings{Rows: rows, Cols: cols}, n
	return nil
}

func (p *market) element(words [][]byte) error {
	row, err1 := strconv.Atoi(string(words[0]))
	col, err2 := strconv.Atoi(string(words[1]))
	v, err3 := strconv.ParseFloat(string(words[2]), 32)
	if errors.Join(err1, err2, err3) != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%.60q is no element", bytes.Join(words, []byte(" ")))
	}
	if row < 1 || col < 1 || row > p.r.Rows || col > p.r.Cols {
		return fmt.Errorf("element %d, %d of a matrix of %d x %d", row, col, p.r.Rows, p.r.Cols)
	}
	if p.r.Len() == p.want {
		return fmt.Errorf("more than the %d elements that were announced", p.want)
	}
	p.r.add(int32(row-1), int32(col-1), float32(v))
	return nil
}

func (p *market) finish() (*Ratings, error) {
	if p.r == nil {
		return nil, errors.New("no matrix")
	}
	if p.r.Len() != p.want {
		return nil, fmt.Errorf("%d elements, and %d were announced", p.r.Len(), p.want)
	}
	r := p.r
	r.sorted()
	for i := 1; i < r.Len(); i++ {
		if r.row[i] == r.row[i-1] && r.col[i] == r.col[i-1] {
			return nil, fmt.Errorf("element %d, %d comes twice", r.row[i]+1, r.col[i]+1)
		}
	}
	return r, nil
}

package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/distrib/workload"
)

// matrixRun is what a directory of snapshots says of the matrix of a factorisation.
type matrixRun struct {
	Rows     int     `json:"rows"`
	Cols     int     `json:"cols"`
	RowNames []int32 `json:"row_names,omitempty"` // what files call rows, ascending; none: 1 and on
	ColNames []int32 `json:"col_names,omitempty"`
}

func matrixOf(r *workload.Ratings) *matrixRun {
	return &matrixRun{r.Rows, r.Cols, r.RowNames, r.ColNames}
}

// check refuses a size that its names do not have, or that is too large.
func (m *matrixRun) check(rank int) error {
	for _, x := range []struct {
		n     int
		names []int32
	}{{m.Rows, m.RowNames}, {m.Cols, m.ColNames}} {
		if x.n < 1 || x.names != nil && (len(x.names) != x.n || !slices.IsSorted(x.names)) {
			return fmt.Errorf("%d rows or columns with %d names", x.n, len(x.names))
		}
	}
	return workload.CheckSides(m.Rows, m.Cols, rank)
}

// side is the numbers of rows, or those of columns.
type side struct {
	word  string
	n     int
	names []int32
}

// place is that of what a file calls so.
func (s side) place(name int) (int, error) {
	at, known := name-1, name >= 1 && name <= s.n
	if s.names != nil {
		at, known = slices.BinarySearchFunc(s.names, name, func(have int32, want int) int {
			return cmp.Compare(int(have), want)
		})
	}
	if !known {
		return 0, fmt.Errorf("%s %d is none of the %d that the model has learnt of", s.word, name,
			s.n)
	}
	return at, nil
}

// name is the opposite.
func (s side) name(place int) int {
	if s.names != nil {
		return int(s.names[place])
	}
	return place + 1
}

// factorisation is a matrix of which any element can be asked for.
type factorisation struct {
	row, col side
	says     func(row, col int) float64
	reply    *reply
}

// elements says what the inputs ask of a matrix: elements, or of a row those that are most.
func (c *predictCmd) elements(e *env, run tablesRun, r *reply) error {
	rank := cmp.Or(run.Factors, usualRank)
	if err := run.Matrix.check(rank); err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	m := run.Matrix
	task := &workload.MF{Data: &workload.Ratings{Rows: m.Rows, Cols: m.Cols}, Rank: rank,
		Both: true}
	state, err := learnt(c.From, task)
	if err != nil {
		return err
	}
	f := factorisation{side{"row", m.Rows, m.RowNames}, side{"column", m.Cols, m.ColNames},
		task.Says(state), r}
	inputs := c.Inputs
	if len(inputs) == 0 {
		inputs = []string{stdinName}
	}
	for _, input := range inputs {
		if strings.HasPrefix(input, "mtx:") || strings.HasPrefix(input, "ml:") {
			if err := f.file(input, int(c.Top)); err != nil {
				return err
			}
			continue
		}
		lines := newLineReader([]string{input}, e.stdin, maxLine)
		for q, ok := lines.one(); ok; q, ok = lines.one() {
			f.line(q, int(c.Top))
		}
	}
	return nil
}

// file asks for the elements that a file of training's forms has.
func (f factorisation) file(spec string, top int) error {
	if top > 0 {
		return usagef("--top is of rows, one a line: %s has elements", spec)
	}
	all, err := quest{data: spec}.ratings()
	if err != nil {
		return err
	}
	rows, cols := side{names: all.RowNames}, side{names: all.ColNames}
	n := 0
	for at := range all.All() {
		n++
		q := question[string]{Input: spec, Line: n}
		f.element(q, rows.name(int(at[0])), cols.name(int(at[1])))
	}
	return nil
}

// line asks for an element, or with top for the columns of a row that have most.
func (f factorisation) line(q question[string], top int) {
	words := strings.Fields(q.Value)
	if q.Err == nil && len(words) == 0 {
		return
	}
	want, numbers := "a row and a column", make([]int, 2)
	if top > 0 {
		want, numbers = "a row", numbers[:1]
	}
	err := q.Err
	if err == nil && len(words) != len(numbers) {
		err = fmt.Errorf("%.40q: want the number of %s", q.Value, want)
	}
	for i := 0; err == nil && i < len(numbers); i++ {
		if numbers[i], err = strconv.Atoi(words[i]); err != nil {
			err = fmt.Errorf("%.40q is no number: want that of %s", words[i], want)
		}
	}
	switch {
	case err != nil:
		f.reply.fail(q.Input, q.Line, err)
	case top > 0:
		f.most(q, numbers[0], top)
	default:
		f.element(q, numbers[0], numbers[1])
	}
}

// element shows one.
func (f factorisation) element(q question[string], row, col int) {
	i, err := f.row.place(row)
	j, bad := f.col.place(col)
	if err = errors.Join(err, bad); err != nil {
		f.reply.fail(q.Input, q.Line, err)
		return
	}
	x := f.says(i, j)
	f.reply.predicted(q, map[string]any{"row": row, "column": col, "value": x},
		fmt.Sprintf("%.6g", x))
}

// columnValue is a column, as files call it, and its element of a row.
type columnValue struct {
	Column int     `json:"column"`
	Value  float64 `json:"value"`
}

// most shows the columns of a row that have most, whether they are known or not.
func (f factorisation) most(q question[string], row, top int) {
	i, err := f.row.place(row)
	if err != nil {
		f.reply.fail(q.Input, q.Line, err)
		return
	}
	values := make([]float64, f.col.n)
	for j := range values {
		values[j] = f.says(i, j)
	}
	var all []columnValue
	for _, t := range about(values, top) {
		all = append(all, columnValue{f.col.name(t.Topic), t.Share})
	}
	text := spaced(all, func(c columnValue) string {
		return fmt.Sprintf("%d:%.4g", c.Column, c.Value)
	})
	f.reply.predicted(q, map[string]any{"row": row, "columns": all}, text)
}

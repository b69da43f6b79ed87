package distrib

import (
	"context"
	"fmt"
	"slices"
)

// Table is a parameter as Bösen's programs see it: rows that are read and incremented.
// It is a view of a [Synchronizer], whose worker uses it, and whose Tick is Clock.
type Table struct {
	id ParamID
	p  *Param
	s  Synchronizer
}

// NewTable is a view of the parameter that was attached as number id.
func NewTable(s Synchronizer, id ParamID, p *Param) Table { return Table{id, p, s} }

// GetRow copies a row, of the parameter's Cols elements, to dst once the consistency allows it
// to be read, and returns its version. A row of a [Kind] comes as the numbers that stand for it.
// Errors are those of [Synchronizer.Pull].
func (t Table) GetRow(ctx context.Context, row int, dst []float32) (Version, error) {
	v, err := t.s.Pull(ctx, Ref{t.id, int32(row), 1})
	switch {
	case err != nil:
	case t.p.Kind != nil:
		clear(dst)
		t.p.Cells[row].AddTo(dst, t.p.Cols, 1)
	default:
		copy(dst, t.p.Data[row*t.p.Cols:(row+1)*t.p.Cols])
	}
	return v, err
}

// Row is a row as its kind keeps it, which nobody may change, once the consistency allows it to be
// read. One of dense numbers changes with the next read. Errors are those of [Synchronizer.Pull].
func (t Table) Row(ctx context.Context, row int) (Update, error) {
	if _, err := t.s.Pull(ctx, Ref{t.id, int32(row), 1}); err != nil {
		return nil, err
	}
	if t.p.Kind != nil {
		return t.p.Cells[row], nil
	}
	return Dense(t.p.Data[row*t.p.Cols : (row+1)*t.p.Cols]), nil
}

// Get is one element.
func (t Table) Get(ctx context.Context, row, col int) (float32, error) {
	if _, err := t.s.Pull(ctx, Ref{t.id, int32(row), 1}); err != nil {
		return 0, err
	}
	if t.p.Kind == nil {
		return t.p.Data[row*t.p.Cols+col], nil
	}
	switch u := t.p.Cells[row].(type) {
	case Ints:
		return float32(u.At(col)), nil
	case Sparse:
		if i, ok := slices.BinarySearch(u.Idx, uint32(col)); ok {
			return u.Val[i], nil
		}
		return 0, nil
	default:
		return AsDense(u)[col], nil
	}
}

// Inc adds to one element. An element of [IntRows] is an integer, and delta must be one; rows of
// another kind of one's own are incremented by [Table.Add]. Errors are those of
// [Synchronizer.Push].
func (t Table) Inc(ctx context.Context, row, col int, delta float32) error {
	u := Sparse{N: t.p.Cols, Idx: []uint32{uint32(col)}, Val: []float32{delta}}
	if _, ok := t.p.Kind.(IntRows); !ok {
		return t.Add(ctx, row, u)
	}
	if delta != float32(int32(delta)) {
		return fmt.Errorf("distrib: %v is added to integers of %s", delta, t.p.Name)
	}
	return t.Add(ctx, row, Ints{N: u.N, Idx: u.Idx, Val: []int32{int32(delta)}})
}

// IncRow adds to a row; deltas, of Cols elements, are the table's from here on.
func (t Table) IncRow(ctx context.Context, row int, deltas []float32) error {
	return t.Add(ctx, row, Dense(deltas))
}

// Add adds an update of a row, of a form that the row's kind takes, which is the table's from here
// on. Errors are those of [Synchronizer.Push].
func (t Table) Add(ctx context.Context, row int, u Update) error {
	return t.s.Push(ctx, Ref{t.id, int32(row), 1}, u)
}

// Clock ends the worker's clock.
func (t Table) Clock(ctx context.Context) (Clock, error) { return t.s.Tick(ctx) }

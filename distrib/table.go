package distrib

import "context"

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
// to be read, and returns its version. Errors are those of [Synchronizer.Pull].
func (t Table) GetRow(ctx context.Context, row int, dst []float32) (Version, error) {
	v, err := t.s.Pull(ctx, Ref{t.id, int32(row), 1})
	if err == nil {
		copy(dst, t.p.Data[row*t.p.Cols:(row+1)*t.p.Cols])
	}
	return v, err
}

// Get is one element.
func (t Table) Get(ctx context.Context, row, col int) (float32, error) {
	if _, err := t.s.Pull(ctx, Ref{t.id, int32(row), 1}); err != nil {
		return 0, err
	}
	return t.p.Data[row*t.p.Cols+col], nil
}

// Inc adds to one element. Errors are those of [Synchronizer.Push].
func (t Table) Inc(ctx context.Context, row, col int, delta float32) error {
	u := Sparse{N: t.p.Cols, Idx: []uint32{uint32(col)}, Val: []float32{delta}}
	return t.s.Push(ctx, Ref{t.id, int32(row), 1}, u)
}

// IncRow adds to a row; deltas, of Cols elements, are the table's from here on.
func (t Table) IncRow(ctx context.Context, row int, deltas []float32) error {
	return t.s.Push(ctx, Ref{t.id, int32(row), 1}, Dense(deltas))
}

// Clock ends the worker's clock.
func (t Table) Clock(ctx context.Context) (Clock, error) { return t.s.Tick(ctx) }

package distrib

import (
	"fmt"
)

// Kind is what the rows of a parameter are where they are not dense float32 numbers, as tables of
// Bösen's programs may say (J. Wei's thesis, section 3.1). A row is kept as an [Update], the one
// that makes it of nothing: so what is added, pends in the outbox, is filtered, sent, held as a
// replica and saved has one form. The nodes of a view must mean the same by a kind's name, which
// they compare when they meet. Several goroutines call a kind's methods at once.
type Kind interface {
	// Name says which kind it is, in a word.
	Name() string
	// Zero is a row of cols elements to which nothing has been added. Rows may share it.
	Zero(cols int) Update
	// Check reports why an update is not one of a row of cols elements, in one line.
	Check(u Update, cols int) error
	// Decode reads what AppendWire of a [Cell] has appended. Bytes may come from anybody: it fails
	// and does not panic whatever they are, and takes no more memory than a few times what they
	// are or [Kind.Most] says.
	Decode(b []byte, cols int) (Update, error)
	// Most is the most bytes that a row of cols elements takes, in memory or on the wire.
	Most(cols int) int
}

// Cell is an update, and so a row, of a form that is not one of this package's for float32
// numbers: [Ints] is one. AddTo adds to numbers that stand for it, for those who want numbers.
type Cell interface {
	Update
	// Plus is the sum with an update that the same [Kind] admits. Neither changes; but where the
	// memory of the cell is the caller's, owned, the sum may be made in it. Whatever the order
	// and the grouping of additions, the sum is the same.
	Plus(u Update, owned bool) Update
	// Elements is how many numbers AddTo adds to.
	Elements() int
	// Bytes is how much memory it holds.
	Bytes() int
	// Sums is the sum of its elements, and of their absolute values or more, for [Ledger]. Both
	// are 0 if it is nothing that adds up.
	Sums() (sum, size float64)
}

// Divisible is a [Cell] of which a filter may keep elements back. All of others goes at once.
type Divisible interface {
	Cell
	// Values are the elements that may go or stay.
	Values() []float32
	// Divide sends the elements of which goes says so, and keeps the others: nil is none. It
	// asks once for each of Values, in their order.
	Divide(goes func(float32) bool) (send, keep Update)
}

// SparseRows is the kind of rows of float32 numbers of which most are zero: a row is [Sparse] until
// more than half of its elements are there, and [Dense] from then on. Updates are of these two
// forms, and take the bytes on the wire that they take anyhow.
type SparseRows struct{}

// Name is "sparse".
func (SparseRows) Name() string { return "sparse" }

// Zero has no elements.
func (SparseRows) Zero(cols int) Update { return Sparse{N: cols} }

// Check admits sparse and dense updates. The error is a *[ShapeError].
func (SparseRows) Check(u Update, cols int) error {
	if _, ok := plain(u).(Factored); ok {
		return &ShapeError{1, cols, "an update of factors, of a sparse row,"}
	}
	return Check(u, 1, cols)
}

// Decode refuses all: numbers have forms of their own.
func (SparseRows) Decode([]byte, int) (Update, error) {
	return nil, badFrame("cells in a sparse row of numbers")
}

// Most is that of a dense row.
func (SparseRows) Most(cols int) int { return 4 * cols }

// check reports why an update does not fit rows of a parameter.
func (p *param) check(u Update, n int32) error {
	if p.kind == nil {
		return Check(u, int(n), p.cols)
	}
	if n != 1 {
		return fmt.Errorf("an update of %d rows of kind %s: want one of each", n, p.kind.Name())
	}
	return p.kind.Check(u, p.cols)
}

// rowMost is the most bytes that a row is.
func (p *param) rowMost() int64 {
	if p.kind == nil {
		return 4 * int64(p.cols)
	}
	return int64(p.kind.Most(p.cols))
}

// Admits reports why the plan cannot be that of a parameter whose rows are of a kind.
func (p *Plan) Admits(k Kind) error {
	why := ""
	switch {
	case isLocal(p.Topology) || len(p.Every) > 0:
		why = "averages and sums at barriers are of dense numbers"
	case !additive(p.Rule):
		why = "a rule that does more than add is of dense numbers"
	case lowRank(p.Up) || lowRank(p.DownF):
		why = "a single row has no low rank"
	default:
		return nil
	}
	return fmt.Errorf("rows of kind %s: %s: want servers, sums or replicas that add, and a filter "+
		"of elements", k.Name(), why)
}

// checkCells reports what is wrong with the first values of a parameter of a kind.
func (p *Param) checkCells() error {
	if p.Data != nil || p.Cells != nil && len(p.Cells) != p.Rows {
		return fmt.Errorf("distrib: parameter %s has %d rows of kind %s, and %d numbers and %d "+
			"cells", p.Name, p.Rows, p.Kind.Name(), len(p.Data), len(p.Cells))
	}
	for i, u := range p.Cells {
		if u == nil {
			continue
		}
		if _, half := u.(Half); half {
			return fmt.Errorf("distrib: row %d of %s is rounded", i, p.Name)
		}
		if err := p.Kind.Check(u, p.Cols); err != nil {
			return fmt.Errorf("distrib: row %d of %s: %w", i, p.Name, err)
		}
	}
	return nil
}

// cell is the first value of a row.
func (p *Param) cell(row int) Update {
	if p.Cells == nil || p.Cells[row] == nil {
		return p.Kind.Zero(p.Cols)
	}
	return p.Cells[row]
}

// fill gives a parameter of a kind cells for all rows.
func (p *Param) fill() {
	if p.Kind == nil {
		return
	}
	if p.Cells == nil {
		p.Cells = make([]Update, p.Rows)
	}
	zero := p.Kind.Zero(p.Cols)
	for i, u := range p.Cells {
		if u == nil {
			p.Cells[i] = zero
		}
	}
}

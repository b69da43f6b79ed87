package graph

// Cut says how an operation is cut into parts, each of which computes some rows. A
// row is a step along the leading axes of operands and results, which are merged
// into one. The cut is the same wherever operands and results are cut.
type Cut struct {
	// Rows is how many rows there are: the product of the leading axes' sizes.
	Rows int
	// Align: a part begins at a multiple of so many rows.
	Align int
	// Least is the fewest rows that a part may have.
	Least int
	// In and Out have, for every operand and result, the number of leading axes that
	// are cut. None of an operand means that every part reads all of it; none of the
	// only result that it is a sum over the rows, to which every part adds its own.
	In, Out []int
	// Sum is the type of what parts add to, and Finish the operation that makes the
	// result of it, if it is not the result itself.
	Sum    Type
	Finish Op
}

// Cutter is implemented by operations that can be computed in parts, with the
// bits of the whole.
type Cutter interface {
	Op
	// Cut says where; ok is false if operands of these types cannot be cut.
	Cut(in, out []Type) (c Cut, ok bool)
	// Part is the operation that computes rows lo to hi-1. Of what is cut it has
	// those rows, in the form of [RowsOf]. If a result is a sum and lo is not zero, there is one
	// more operand, the first: the sum over the rows before, which it may overwrite.
	Part(in, out []Type, lo, hi int) Op
}

// Sums reports whether the result is a sum over the rows.
func (c Cut) Sums() bool { return len(c.Out) > 0 && c.Out[0] == 0 }

// Part is the types of what a part of so many rows computes of the results.
func (c Cut) Part(out []Type, rows int) []Type {
	switch {
	case c.Finish != nil:
		return []Type{c.Sum}
	case c.Sums():
		return out
	}
	parts := make([]Type, len(out))
	for i, t := range out {
		parts[i] = RowsOf(t, c.Out[i], rows)
	}
	return parts
}

// RowsOf is the type of so many rows of a value: its leading axes are merged into
// one, without a name.
func RowsOf(t Type, axes, rows int) Type {
	return Type{DType: t.DType, Shape: append([]Dim{{Size: rows}}, t.Shape[axes:]...)}
}

// Staged is implemented by operations that need all of an operand before they make any of a result,
// such as norms over a batch, and that can be made in stages, with the bits of the whole: of which
// each can be cut.
type Staged interface {
	Op
	// InStages reports whether those on such operands can.
	InStages(in []Type) bool
	// Stages makes them, and is the results.
	Stages(in []Value, u Unfolder) []Value
}

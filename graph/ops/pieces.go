package ops

import "github.com/gomem/gomem/graph"

// Sliced is the operation that takes elements lo to hi-1 along an axis; along the first
// one it is a view.
func Sliced(axis, lo, hi int) graph.Op {
	if axis == 0 {
		return head{lo, hi}
	}
	return cut{axis, lo, hi}
}

// JoinedAlong is the operation that joins values along an axis; see [Joined].
func JoinedAlong(axis int) graph.Op { return concat{axis} }

// Added is the operation that adds two values.
func Added() graph.Op { return binary{add} }

// Span says of an operation that slices which elements it takes, and along which axis.
func Span(op graph.Op) (axis, lo, hi int, ok bool) {
	switch o := op.(type) {
	case head:
		return 0, o.Lo, o.Hi, true
	case cut:
		return o.Axis, o.Lo, o.Hi, true
	}
	return 0, 0, 0, false
}

// ExpertRows says which rows an operation is about that works on rows packed by expert, as
// by [Route]: those of one expert.
type ExpertRows struct {
	Expert, Experts int
	Offsets         int   // the operand that says where the rows of experts are
	Rows            []int // operands of which it reads the expert's rows only
	// Fills: its result is operand 0 but for the expert's rows, which it does not read there.
	Fills bool
}

// RowsOf says which rows of one expert an operation is about, if it is.
func RowsOf(op graph.Op) (r ExpertRows, ok bool) {
	switch o := op.(type) {
	case expertMatMul:
		return ExpertRows{Expert: o.Expert, Experts: o.Experts, Offsets: 3, Rows: []int{1},
			Fills: true}, true
	case packedExpert:
		return ExpertRows{Expert: o.Expert, Experts: o.Experts, Offsets: 3, Rows: []int{1},
			Fills: true}, true
	case expertOuter:
		return ExpertRows{Expert: o.Expert, Experts: o.Experts, Offsets: 2,
			Rows: []int{0, 1}}, true
	}
	return ExpertRows{}, false
}

// GroupsOf are the operands of which an operation reads the rows of each expert for itself, as
// they are packed by experts whose weights are one value; nil of any other operation. Operand 2
// says where the rows are. What it makes of rows, or of pairs of them, is by expert too: rows
// in the same places, or weights.
func GroupsOf(op graph.Op) (rows []int) {
	switch op.(type) {
	case groupedMatMul:
		return []int{0}
	case groupedOuter:
		return []int{0, 1}
	}
	return nil
}

// Filled is the operation that makes an f32 value of a type with every element the same.
func Filled(t graph.Type, value float32) graph.Op {
	return fill{Value: value, Shape: newDims(t.Shape)}
}

// IsZeros reports whether an operation makes zeros.
func IsZeros(op graph.Op) bool {
	f, ok := op.(fill)
	return ok && f.Value == 0
}

// Kept is the update that writes nothing: its operand is computed, though nobody reads it.
func Kept() graph.Op { return keep{} }

// Names reports whether an operation is its first operand under another name: it reads none
// of the others, which are there for its gradient.
func Names(op graph.Op) bool {
	switch op.(type) {
	case expertJoin, expertJoinT, packedJoin:
		return true
	}
	return false
}

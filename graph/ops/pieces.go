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

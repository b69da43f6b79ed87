package ops

import "github.com/gomem/gomem/graph"

// Split is along what the axes of both shapes have in common: an axis that becomes several
// is their product, and several that become one are its factors.
func (o reshape) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	a, b := refactored(&r, in[0], out[0])
	r.In, r.Out, r.Adds = [][][]int{a}, [][][]int{b}, [][]int{{0}}
	r.Local = func(at []graph.Part) graph.Op { return reshape{o.Shape.part(b, at)} }
	return r, true
}

// refactored writes two shapes of as many elements as products of common factors, from the
// first axes on. Where they have no more, as [6 4] and [4 6] behind a factor of 2, axes have
// what is left for themselves, and those behind are whole.
func refactored(r *graph.Rule, x, y graph.Type) (a, b [][]int) {
	a, b = entire(x), entire(y)
	var i, j int
	restA, restB := 1, 1 // of axes i-1 and j-1: what is left to divide
	for x.Elems() > 0 {
		for restA == 1 && i < len(a) {
			restA, i = x.Size(i), i+1
		}
		for restB == 1 && j < len(b) {
			restB, j = y.Size(j), j+1
		}
		if restA == 1 {
			break
		}
		if common := divisor(restA, restB); common > 1 {
			f := factor(r, common)
			a[i-1], b[j-1] = append(a[i-1], f), append(b[j-1], f)
			restA, restB = restA/common, restB/common
		}
		if restA > 1 && restB > 1 {
			a[i-1], b[j-1] = completed(r, a[i-1], restA), completed(r, b[j-1], restB)
			break
		}
	}
	return a, b
}

// completed are the factors of an axis of which something is left; none, if all is.
func completed(r *graph.Rule, axis []int, rest int) []int {
	if len(axis) == 0 {
		return nil
	}
	return append(axis, factor(r, rest))
}

// divisor is the largest common one.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Split is along all axes, which move.
func (o transpose) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, in[0])
	moved := make([][]int, len(axes))
	for i, p := range o.Perm[:o.N] {
		moved[i] = axes[p]
	}
	r.In, r.Out, r.Adds = [][][]int{axes}, [][][]int{moved}, [][]int{{0}}
	return r, true
}

// arranged is the rule of an operation that only arranges what it has along an axis, and
// does the same along all others.
func arranged(in, out []graph.Type, axis int) (graph.Rule, bool) {
	r, ok := splitBut(in, out, axis, axis+1)
	r.Along = 1 + axis
	return r, ok
}

// Split is along the axes behind the first, which is taken apart.
func (s split) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := arranged(in, out, 0)
	if s.Drop {
		for i := range r.Out {
			r.Out[i] = r.Out[i][1:]
		}
	}
	return r, ok
}

// Split is along all axes but the one that is joined.
func (o concat) Split(in, out []graph.Type) (graph.Rule, bool) { return arranged(in, out, o.Axis) }

// Split is along the axes behind the first.
func (head) Split(in, out []graph.Type) (graph.Rule, bool) { return arranged(in, out, 0) }

// Split is along all axes but the one that is cut.
func (o cut) Split(in, out []graph.Type) (graph.Rule, bool) { return arranged(in, out, o.Axis) }

// Split is along all axes but the one that is padded.
func (o pad) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitBut(in, out, o.Axis, o.Axis+1)
}

// Split is along all axes but the one of which some elements are taken.
func (o stride) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitBut(in, out, o.Axis, o.Axis+1)
}

// Split is along all axes but the one along which elements are spread.
func (o unstride) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitBut(in, out, o.Stride.Axis, o.Stride.Axis+1)
}

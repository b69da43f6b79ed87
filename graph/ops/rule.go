package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// The rules of this package, graph.Splitter, stand in files rule*.go, one a family. A part
// computes what it is of the whole: where bits depend on sizes (how long sums are added up,
// which random numbers are drawn), Local is an operation that knows those of the whole.

// factor is a new factor of a rule.
func factor(r *graph.Rule, size int) int {
	r.Factors = append(r.Factors, graph.Factor{Size: size})
	return len(r.Factors) - 1
}

// oneAxis is the factor that an axis has for itself; none, if its size is 1.
func oneAxis(r *graph.Rule, size int) []int {
	if size < 2 {
		return nil
	}
	return []int{factor(r, size)}
}

// eachAxis gives every axis of t a factor of its own, but those of size 1.
func eachAxis(r *graph.Rule, t graph.Type) [][]int {
	axes := make([][]int, t.Rank())
	for i, d := range t.Shape {
		axes[i] = oneAxis(r, d.Size)
	}
	return axes
}

// entire is an operand or a result that no factor divides.
func entire(t graph.Type) [][]int { return make([][]int, t.Rank()) }

// sums says that results are sums over all factors of some axes.
func sums(r *graph.Rule, axes ...[]int) {
	for _, list := range axes {
		for _, f := range list {
			r.Factors[f].Sum = true
		}
	}
}

// exactly says that results are sums over a factor whose parts do not overlap.
func exactly(r *graph.Rule, axes []int) {
	sums(r, axes)
	for _, f := range axes {
		r.Factors[f].Exact = true
	}
}

// aligned are the axes of an operand that broadcasts to a result with axes of its own.
func aligned(t, out graph.Type, axes [][]int) [][]int {
	own, lead := entire(t), out.Rank()-t.Rank()
	for i := range own {
		if t.Size(i) == out.Size(lead+i) {
			own[i] = axes[lead+i]
		}
	}
	return own
}

// leading are the axes of a value whose first ones are given; no factor divides the others.
func leading(axes [][]int, t graph.Type) [][]int {
	return append(slices.Clone(axes), entire(t)[len(axes):]...)
}

// splitElements is the rule of an operation on elements: its operands broadcast to result
// 0, but those in whole, which every part reads. All results have one shape.
func splitElements(in, out []graph.Type, whole ...int) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, out[0])
	for i, t := range in {
		if slices.Contains(whole, i) {
			r.In = append(r.In, entire(t))
		} else {
			r.In = append(r.In, aligned(t, out[0], axes))
		}
	}
	r.Out = slices.Repeat([][][]int{axes}, len(out))
	return r, true
}

// splitLeading is the rule of an operation that does the same for every index of so many
// leading axes, which all operands and results have, but operands in whole.
func splitLeading(in, out []graph.Type, count int, whole ...int) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, graph.Type{Shape: out[0].Shape[:count]})
	for i, t := range in {
		if slices.Contains(whole, i) {
			r.In = append(r.In, entire(t))
		} else {
			r.In = append(r.In, leading(axes, t))
		}
	}
	for _, t := range out {
		r.Out = append(r.Out, leading(axes, t))
	}
	return r, true
}

// splitBut is the rule of an operation that does the same along all axes of its operands
// and results but some, from lo to hi-1: they all have the same axes otherwise.
func splitBut(in, out []graph.Type, lo, hi int, whole ...int) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, graph.Type{Shape: slices.Concat(in[0].Shape[:lo], in[0].Shape[hi:])})
	axes = slices.Concat(axes[:lo], make([][]int, hi-lo), axes[lo:])
	for i, t := range in {
		if slices.Contains(whole, i) {
			r.In = append(r.In, entire(t))
		} else {
			r.In = append(r.In, axes)
		}
	}
	r.Out = slices.Repeat([][][]int{axes}, len(out))
	return r, true
}

// coarse is an axis of which parts have a multiple of some size: the least with which they,
// and all larger ones, are good.
func coarse(r *graph.Rule, size int, good func(part int) bool) []int {
	return inParts(r, size, leastPart(size, good))
}

// coarseTwo are two such axes, of which parts are good whatever those of the other.
func coarseTwo(r *graph.Rule, m, n int, good func(m, n int) bool) (first, second []int) {
	columns := leastPart(n, func(part int) bool { return good(m, part) })
	rows := leastPart(m, func(part int) bool {
		for size := columns; size <= n; size++ {
			if n%size == 0 && !good(part, size) {
				return false
			}
		}
		return true
	})
	return inParts(r, m, rows), inParts(r, n, columns)
}

// leastPart is the least divisor of a size of which it and all larger ones are good.
func leastPart(size int, good func(part int) bool) int {
	least := size
	for part := size / 2; part > 0; part-- {
		if size%part == 0 {
			if !good(part) {
				break
			}
			least = part
		}
	}
	return least
}

// inParts is an axis that divides into parts of so many elements, or multiples of them.
func inParts(r *graph.Rule, size, part int) []int {
	if part == size {
		return nil
	}
	axis := oneAxis(r, size/part)
	if part > 1 {
		axis = append(axis, factor(r, part))
	}
	return axis
}

// shareOf is the size of a part of an axis, and where it begins.
func shareOf(size int, axis []int, at []graph.Part) (n, lo int) {
	if len(axis) == 0 || at[axis[0]].N < 2 {
		return size, 0
	}
	p := at[axis[0]]
	return size / p.N, size / p.N * p.I
}

// divided reports whether some axis is.
func divided(at []graph.Part, axes ...[]int) bool {
	return slices.ContainsFunc(axes, func(axis []int) bool {
		return len(axis) > 0 && at[axis[0]].N > 1
	})
}

// part is the type of a part. Axes keep their names.
func part(t graph.Type, axes [][]int, at []graph.Part) graph.Type {
	out := graph.Type{DType: t.DType, Shape: slices.Clone(t.Shape)}
	for i := range out.Shape {
		out.Shape[i].Size, _ = shareOf(t.Size(i), axes[i], at)
	}
	return out
}

// part is the shape of a part.
func (d dims) part(axes [][]int, at []graph.Part) dims {
	return newDims(part(d.typ(graph.F32), axes, at).Shape)
}

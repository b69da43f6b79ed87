package onnx

import (
	"slices"
	"strings"

	"github.com/gomem/gomem/graph/ops"
)

// einsum multiplies operands, two at a time from the left, as products of matrices: an axis is a
// batch's where both operands and the rest have it, a row's or a column's where one operand and the
// rest have it, and is summed over otherwise. Axes are letters, those of "..." capitals of Greek,
// which nobody can write.
func einsum(n *node) {
	equation := strings.ReplaceAll(n.text("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(n.in) {
		fail("equation %q is of %d operands", equation, len(terms))
	}
	dots := 0
	for i, t := range terms {
		dots = max(dots, n.x(i).Type().Rank()-len(strings.ReplaceAll(t, "...", "")))
	}
	var list []labelled
	for i, t := range terms {
		x := n.wide(i)
		list = append(list, labelled{x, axesOf(t, x.Type().Rank()-
			len(strings.ReplaceAll(t, "...", "")))}.diagonal())
	}
	result := []rune(implied(terms, dots))
	if explicit {
		result = axesOf(right, dots)
	}
	y := list[0]
	for i, next := range list[1:] {
		y = y.times(next, keptAxes(result, list[i+2:]))
	}
	n.give(n.narrow(y.summed(result).ordered(result)))
}

// firstDot is the letter of the first axis of "...", counted from the last.
const firstDot = 'Α'

// axesOf are the letters of a term, in which "..." stands for so many axes, the last ones of all.
func axesOf(term string, dots int) []rune {
	before, after, has := strings.Cut(term, "...")
	list := []rune(before)
	if has {
		for i := dots - 1; i >= 0; i-- {
			list = append(list, firstDot+rune(i))
		}
	}
	return append(list, []rune(after)...)
}

// implied is the result of an equation without one: letters that are there once, sorted.
func implied(terms []string, dots int) []rune {
	all := strings.ReplaceAll(strings.Join(terms, ""), "...", "")
	var list []rune
	for _, r := range all {
		if strings.Count(all, string(r)) == 1 {
			list = append(list, r)
		}
	}
	slices.Sort(list)
	if dots > 0 {
		return append(axesOf("...", dots), list...)
	}
	return list
}

// keptAxes are those of the result and of operands to come.
func keptAxes(result []rune, list []labelled) []rune {
	kept := slices.Clone(result)
	for _, l := range list {
		kept = append(kept, l.axes...)
	}
	return kept
}

// labelled is a value whose axes have letters.
type labelled struct {
	x    value
	axes []rune
}

// diagonal is without letters that are there twice: of the two axes, where they are equal.
func (l labelled) diagonal() labelled {
	for i := 0; i < len(l.axes); i++ {
		j := i + 1 + slices.Index(l.axes[i+1:], l.axes[i])
		if j == i {
			continue
		}
		size := l.x.Type().Size(i)
		places := make([]int, size)
		for k := range places {
			places[k] = k
		}
		sizes := make([]int, l.x.Type().Rank())
		for k := range sizes {
			sizes[k] = 1
		}
		sizes[i], sizes[j] = size, 1
		rows := l.x.Graph().Constant("rows", longs(sizes, places...))
		sizes[i], sizes[j] = 1, size
		columns := l.x.Graph().Constant("columns", longs(sizes, places...))
		x := ops.Where(ops.Equal(rows, columns), l.x, like(l.x, 0))
		l = labelled{ops.Sum(x, j), slices.Delete(slices.Clone(l.axes), j, j+1)}
		i--
	}
	return l
}

// summed is without axes that are not kept.
func (l labelled) summed(kept []rune) labelled {
	var over []int
	var left []rune
	for i, r := range l.axes {
		if slices.Contains(kept, r) {
			left = append(left, r)
		} else {
			over = append(over, i)
		}
	}
	if over == nil {
		return l
	}
	return labelled{ops.Sum(l.x, over...), left}
}

// ordered has the axes in an order, and those that it has not with size 1.
func (l labelled) ordered(order []rune) value {
	var perm []int
	sizes := make([]int, len(order))
	for i, r := range order {
		sizes[i] = 1
		if at := slices.Index(l.axes, r); at >= 0 {
			perm = append(perm, at)
			sizes[i] = l.x.Type().Size(at)
		}
	}
	if len(perm) != len(l.axes) {
		fail("the result has an axis twice, or lacks one")
	}
	x := l.x
	if !slices.IsSorted(perm) {
		x = ops.Transpose(x, perm...)
	}
	return ops.ReshapeSizes(x, sizes...)
}

// times is the product of two values, summed over the axes that are not kept.
func (l labelled) times(m labelled, kept []rune) labelled {
	l, m = l.summed(append(slices.Clone(kept), m.axes...)), m.summed(append(slices.Clone(kept),
		l.axes...))
	var batch, rows, columns, inner []rune
	for _, r := range l.axes {
		switch both := slices.Contains(m.axes, r); {
		case both && slices.Contains(kept, r):
			batch = append(batch, r)
		case both:
			inner = append(inner, r)
		default:
			rows = append(rows, r)
		}
	}
	for _, r := range m.axes {
		if !slices.Contains(l.axes, r) {
			columns = append(columns, r)
		}
	}
	size := l.sizes(m)
	a := ops.ReshapeSizes(l.wide(size, batch, rows, inner), flat(size, batch, rows, inner)...)
	b := ops.ReshapeSizes(m.wide(size, batch, inner, columns), flat(size, batch, inner, columns)...)
	all := slices.Concat(batch, rows, columns)
	var sizes []int
	for _, r := range all {
		sizes = append(sizes, size[r])
	}
	return labelled{ops.ReshapeSizes(ops.MatMul(a, b), sizes...), all}
}

// sizes are those of the axes of either; one of 1 broadcasts.
func (l labelled) sizes(m labelled) map[rune]int {
	size := map[rune]int{}
	for _, x := range []labelled{l, m} {
		for i, r := range x.axes {
			s := x.x.Type().Size(i)
			if have, ok := size[r]; ok && have != s && have != 1 && s != 1 {
				fail("axis %q has %d elements, and %d", r, have, s)
			} else if !ok || s != 1 {
				size[r] = s
			}
		}
	}
	return size
}

// wide is the value with the axes of three groups in order, broadcast to their sizes.
func (l labelled) wide(size map[rune]int, groups ...[]rune) value {
	order := slices.Concat(groups...)
	x := l.ordered(order)
	var sizes []int
	for _, r := range order {
		sizes = append(sizes, size[r])
	}
	if !slices.Equal(sizes, x.Type().Sizes()) {
		x = ops.BroadcastTo(x, sizes...)
	}
	return x
}

// flat are the sizes of groups of axes.
func flat(size map[rune]int, groups ...[]rune) []int {
	out := make([]int, len(groups))
	for i, g := range groups {
		out[i] = 1
		for _, r := range g {
			out[i] *= size[r]
		}
	}
	return out
}

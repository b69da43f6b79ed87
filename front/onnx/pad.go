package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph/ops"
)

// pads are the elements to add before and after the axes of x.
func pads(n *node, rank int) (before, after []int) {
	list := n.list("pads")
	if n.version() >= 11 {
		list = n.ints(1)
	}
	before, after = make([]int, rank), make([]int, rank)
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	if n.has(3) {
		axes = n.ints(3)
	}
	if len(list) != 2*len(axes) {
		fail("pads %v of %d axes", list, len(axes))
	}
	for i, a := range axes {
		a = axis(a, rank)
		before[a], after[a] = list[i], list[len(axes)+i]
	}
	return before, after
}

func pad(n *node) {
	x := n.x(0)
	mode := n.text("mode", "constant")
	n.only("mode", mode, "constant", "reflect", "edge", "wrap")
	fill := like(x, 0)
	switch {
	case n.version() < 11:
		fill = like(x, float64(n.float("value", 0)))
	case n.has(2):
		fill = ops.ReshapeSizes(n.x(2))
	}
	before, after := pads(n, x.Type().Rank())
	for a := range before {
		lo, hi := before[a], after[a]
		if lo < 0 || hi < 0 {
			x = cut(x, a, max(0, -lo), x.Type().Size(a)-max(0, -hi), 1)
			lo, hi = max(lo, 0), max(hi, 0)
		}
		switch {
		case lo == 0 && hi == 0:
		case mode == "constant":
			x = filled(x, a, lo, hi, fill)
		default:
			x = ops.Take(x, n.b.indices(reflected(mode, x.Type().Size(a), lo, hi)), a)
		}
	}
	n.give(x)
}

// filled puts a number before and after x along an axis.
func filled(x value, a, before, after int, fill value) value {
	parts := []value{}
	for _, many := range []int{before, -1, after} {
		switch {
		case many < 0:
			parts = append(parts, x)
		case many > 0:
			sizes := slices.Clone(x.Type().Sizes())
			sizes[a] = many
			parts = append(parts, ops.BroadcastTo(fill, sizes...))
		}
	}
	return ops.Concat(a, parts...)
}

// reflected says which elements of an axis are beside it.
func reflected(mode string, size, before, after int) []int {
	var list []int
	few("elements of padding", before)
	few("elements of padding", after)
	if size == 0 {
		fail("an axis of no elements has none to pad with")
	}
	for i := -before; i < size+after; i++ {
		at := i
		switch mode {
		case "edge":
			at = min(max(i, 0), size-1)
		case "wrap":
			at = ((i % size) + size) % size
		case "reflect":
			period := max(1, 2*(size-1))
			at = ((i % period) + period) % period
			if at >= size {
				at = period - at
			}
		}
		list = append(list, at)
	}
	return list
}

package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
)

// scan runs its body for every element along an axis of some operands, as one operation.
func scan(n *node) {
	n.asked["body"] = true
	if n.version() < 9 {
		fail("its version is %d: those from 9 on are known", n.version())
	}
	count := n.int("num_scan_inputs", 0)
	if count < 1 || count > len(n.in) {
		fail("it scans %d of %d operands", count, len(n.in))
	}
	body := n.bodyOf("body")
	states := n.xs(0)[:len(n.in)-count]
	directions, axes := n.list("scan_input_directions"), n.list("scan_input_axes")
	var types []graph.Type
	for _, s := range states {
		types = append(types, s.Type())
	}
	var xs []value
	for i := range count {
		x := n.x(len(states) + i)
		a := axis(nth(axes, i), x.Type().Rank())
		if nth(directions, i) == 1 {
			x = ops.Reverse(x, a)
		}
		if a != 0 {
			x = ops.Transpose(x, front(a, x.Type().Rank())...)
		}
		xs = append(xs, x)
		types = append(types, graph.Type{DType: x.Type().DType, Shape: x.Type().Shape[1:]})
	}
	outer, _ := body.draft(nil, types)
	last, ys := control.Scan(outer, states, xs, func(same, states, xs []value) (next, ys []value) {
		out := body.in(xs[0].Graph(), outer, same, operands(slices.Concat(states, xs)))
		return out[:len(states)], out[len(states):]
	}, control.Options{Forward: !n.b.ctx.Training()})
	n.give(last...)
	outDirections, outAxes := n.list("scan_output_directions"), n.list("scan_output_axes")
	for i, y := range ys {
		if y.Valid() && nth(outDirections, i) == 1 {
			y = ops.Reverse(y, 0)
		}
		if a := axis(nth(outAxes, i), y.Type().Rank()); a != 0 {
			y = ops.Transpose(y, back(a, y.Type().Rank())...)
		}
		n.give(y)
	}
}

// nth is a number of a list, 0 behind its end.
func nth(list []int, i int) int {
	if i < len(list) {
		return list[i]
	}
	return 0
}

// front is the permutation that makes an axis the first.
func front(a, rank int) []int {
	perm := []int{a}
	for i := range rank {
		if i != a {
			perm = append(perm, i)
		}
	}
	return perm
}

// back is the permutation that makes the first axis the one of a number.
func back(a, rank int) []int {
	perm := make([]int, 0, rank)
	for i := 1; i < rank; i++ {
		perm = append(perm, i)
	}
	return slices.Insert(perm, a, 0)
}

package onnx

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/onnx"
)

// controls are operators with graphs of their own. What decides them has to be known while the
// network is built; a loop is as many copies of its body as it has iterations.
var controls = map[string]operator{
	"If":   {build: branch, bodies: true},
	"Loop": {build: loop, bodies: true},
	"Scan": {build: scan, bodies: true},
}

// mostIterations of a loop are unrolled.
const mostIterations = 1 << 12

// inline builds a function.
func (n *node) inline(f *onnx.Function) {
	inner := *n.b
	inner.opsets, inner.call = f.Opsets, &call{attributes: map[string]*onnx.Attribute{}}
	for _, a := range f.Defaults {
		inner.call.attributes[a.Name] = a
	}
	for _, name := range f.Attributes {
		inner.call.attributes[name] = nil
	}
	for name := range inner.call.attributes {
		i := slices.IndexFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Name == name })
		if i < 0 {
			continue
		}
		if a := n.attribute(name, n.Attributes[i].Kind); a != nil {
			inner.call.attributes[name] = a
		}
	}
	names := scope{names: map[string]operand{}}
	for i, name := range f.In {
		if i < len(n.in) {
			names.names[name] = n.in[i]
		} else {
			names.names[name] = operand{}
		}
	}
	if inner.depth++; inner.depth > onnx.MaxDepth {
		fail("graphs and functions are more than %d deep", onnx.MaxDepth)
	}
	if err := inner.nodes(f.Nodes, &names); err != nil {
		fail("%w", err)
	}
	for _, name := range f.Out {
		o, ok := names.find(name)
		if !ok {
			fail("its function does not compute %q", name)
		}
		n.out = append(n.out, o)
	}
}

// body builds a graph of the node, of operands.
func (n *node) body(name string, in ...operand) []operand {
	a := n.attribute(name, onnx.GraphKind)
	if a == nil {
		fail("it has no %s", name)
	}
	names := scope{outer: n.names, names: map[string]operand{}}
	if len(in) != len(a.Graph.Inputs) {
		fail("%s takes %d operands, not %d", name, len(a.Graph.Inputs), len(in))
	}
	for i, v := range a.Graph.Inputs {
		names.names[v.Name] = in[i]
	}
	out, err := n.b.graph(a.Graph, &names)
	if err != nil {
		fail("%s: %w", name, err)
	}
	return out
}

// branch is one of two graphs, by a condition that is known.
func branch(n *node) {
	n.asked["then_branch"], n.asked["else_branch"] = true, true
	if n.scalar(0, 0) != 0 {
		n.out = n.body("then_branch")
	} else {
		n.out = n.body("else_branch")
	}
}

// loop is a loop whose iterations are known: by their number, and by a condition that is.
func loop(n *node) {
	trips := math.Inf(1)
	if n.has(0) {
		trips = n.scalar(0, 0)
	}
	condition := operand{known: ptr(truth(true))}
	if n.has(1) {
		condition = n.in[1]
	}
	carried := slices.Clone(n.in[min(2, len(n.in)):])
	var rows [][]operand
	for i := 0; float64(i) < trips; i++ {
		if condition.known == nil {
			fail("its condition depends on what is fed, and how often it runs has to be known")
		}
		if condition.known.U8()[0] == 0 {
			break
		}
		if i == mostIterations {
			fail("it runs more than %d times", mostIterations)
		}
		out := n.body("body", append([]operand{{known: ptr(longs(nil, i))}, condition},
			carried...)...)
		condition = out[0]
		carried = out[1 : 1+len(carried)]
		rows = append(rows, out[1+len(carried):])
	}
	n.out = carried
	n.stacked(rows, len(n.Out)-len(carried))
}

// stacked adds results that have a row of each iteration.
func (n *node) stacked(rows [][]operand, count int) {
	for k := range count {
		if len(rows) == 0 {
			fail("it does not run, and result %d is of as many rows", k)
		}
		var list []value
		for _, r := range rows {
			list = append(list, n.b.onGraph(r[k]))
		}
		n.give(ops.Stack(list...))
	}
}

// scan runs its body for every element along an axis of some operands.
func scan(n *node) {
	count := n.int("num_scan_inputs", 0)
	if n.version() < 9 {
		fail("its version is %d: those from 9 on are known", n.version())
	}
	states := slices.Clone(n.in[:len(n.in)-count])
	xs := n.in[len(n.in)-count:]
	directions, axes := n.list("scan_input_directions"), n.list("scan_input_axes")
	outDirections, outAxes := n.list("scan_output_directions"), n.list("scan_output_axes")
	at := func(list []int, i int) int {
		if i < len(list) {
			return list[i]
		}
		return 0
	}
	var scanned []value
	length := -1
	for i := range xs {
		x := n.x(len(states) + i)
		a := axis(at(axes, i), x.Type().Rank())
		if at(directions, i) == 1 {
			x = ops.Reverse(x, a)
		}
		if length >= 0 && x.Type().Size(a) != length {
			fail("its operands have %d and %d elements to scan", length, x.Type().Size(a))
		}
		length = x.Type().Size(a)
		if a != 0 {
			x = ops.Transpose(x, front(a, x.Type().Rank())...)
		}
		scanned = append(scanned, x)
	}
	if length > mostIterations {
		fail("it runs more than %d times", mostIterations)
	}
	var rows [][]operand
	for i := range length {
		in := slices.Clone(states)
		for _, x := range scanned {
			in = append(in, operand{value: ops.Squeeze(ops.Slice(x, 0, i, i+1), 0)})
		}
		out := n.body("body", in...)
		states = out[:len(states)]
		rows = append(rows, out[len(states):])
	}
	n.out = states
	first := len(n.out)
	n.stacked(rows, len(n.Out)-len(states))
	for i := range n.out[first:] {
		y := n.out[first+i].value
		if at(outDirections, i) == 1 {
			y = ops.Reverse(y, 0)
		}
		if a := axis(at(outAxes, i), y.Type().Rank()); a != 0 {
			y = ops.Transpose(y, back(a, y.Type().Rank())...)
		}
		n.out[first+i].value = y
	}
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

func ptr[T any](v T) *T { return &v }

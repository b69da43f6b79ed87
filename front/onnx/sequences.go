package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// sequences are operators of lists of tensors, which are there while the network is built only,
// and of operands that may be left out.
var sequences = map[string]operator{
	"SequenceConstruct": {build: func(n *node) { n.out = []operand{{list: slices.Clone(n.in)}} },
		bodies: true},
	"SequenceEmpty": {build: func(n *node) {
		n.int("dtype", 1)
		n.out = []operand{{list: []operand{}}}
	}, bodies: true},
	"SequenceLength": {build: func(n *node) { n.giveKnown(longs(nil, len(items(n, 0)))) },
		bodies: true},
	"SequenceAt": {build: func(n *node) {
		list := items(n, 0)
		n.out = []operand{list[axis(int(n.scalar(1, 0)), len(list))]}
	}, bodies: true},
	"SequenceInsert": {build: func(n *node) {
		list := items(n, 0)
		at := len(list)
		if n.has(2) {
			if at = int(n.scalar(2, 0)); at < 0 {
				at += len(list)
			}
		}
		if at < 0 || at > len(list) {
			fail("a sequence of %d has no place %d", len(list), at)
		}
		n.out = []operand{{list: slices.Insert(slices.Clone(list), at, n.in[1])}}
	}, bodies: true},
	"SequenceErase": {build: func(n *node) {
		list := items(n, 0)
		at := axis(int(n.scalar(1, -1)), len(list))
		n.out = []operand{{list: slices.Delete(slices.Clone(list), at, at+1)}}
	}, bodies: true},
	"ConcatFromSequence": {build: concatSequence, bodies: true},
	"SplitToSequence":    {build: splitSequence, bodies: true},
	"SequenceMap":        {build: mapSequence, bodies: true},
	"OptionalHasElement": {build: func(n *node) { n.giveKnown(truth(n.has(0))) }, bodies: true},
	"OptionalGetElement": {build: func(n *node) { n.out = n.in }, bodies: true},
	"Optional":           {build: func(n *node) { n.out = n.in }, bodies: true},
}

// truth is a known bool.
func truth(b bool) tensor.View {
	v := tensor.New(tensor.Of(tensor.Bool))
	v.Bool()[0] = b
	return v
}

// items are the elements of operand i, a sequence.
func items(n *node, i int) []operand {
	if i >= len(n.in) || n.in[i].list == nil {
		fail("operand %d is no sequence", i)
	}
	return n.in[i].list
}

func concatSequence(n *node) {
	var list []value
	for _, o := range items(n, 0) {
		list = append(list, n.b.onGraph(o))
	}
	a, isNew := n.int("axis", 0), n.flag("new_axis", false)
	if len(list) == 0 {
		fail("the sequence is empty")
	}
	rank := list[0].Type().Rank()
	if isNew {
		rank++
	}
	if a = axis(a, rank); isNew {
		for i, x := range list {
			list[i] = ops.ExpandDims(x, a)
		}
	}
	n.give(ops.Concat(a, list...))
}

func splitSequence(n *node) {
	x := n.x(0)
	a := axis(n.int("axis", 0), x.Type().Rank())
	keep := n.flag("keepdims", true)
	size, each := x.Type().Size(a), []int{1}
	alone := !n.has(1)
	if !alone {
		each = n.ints(1)
	}
	list := []operand{}
	for at, i := 0, 0; at < size; i++ {
		part := each[min(i, len(each)-1)]
		if part < 1 || i >= len(each) && n.known(1).Type.Rank() > 0 {
			fail("parts of %v along an axis of %d", each, size)
		}
		end := min(at+part, size)
		y := ops.Slice(x, a, at, end)
		if alone && !keep {
			y = ops.Squeeze(y, a)
		}
		list, at = append(list, operand{value: y}), end
	}
	n.out = []operand{{list: list}}
}

// mapSequence runs a body for every element of a sequence.
func mapSequence(n *node) {
	lists := make([][]operand, len(n.Out))
	for i := range items(n, 0) {
		in := []operand{items(n, 0)[i]}
		for _, o := range n.in[1:] {
			if o.list != nil {
				o = o.list[i]
			}
			in = append(in, o)
		}
		for k, o := range n.body("body", in...) {
			lists[k] = append(lists[k], o)
		}
	}
	for _, list := range lists {
		n.out = append(n.out, operand{list: append([]operand{}, list...)})
	}
}

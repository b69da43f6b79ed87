package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// indexing are operators that find elements.
var indexing = each(map[string]func(n *node){
	"Gather": gather, "GatherElements": gatherElements, "OneHot": oneHot,
	"ArgMax": arg(ops.ArgMax), "ArgMin": arg(ops.ArgMin), "TopK": topK, "CumSum": cumSum,
	"NonZero": nonZero, "Compress": compress, "CumProd": cumProd,
	"ReverseSequence": reverseSequence,
})

// gather has the rows of a table by its own operation, whose gradient is the faster one.
func gather(n *node) {
	x := n.x(0)
	a := axis(n.int("axis", 0), x.Type().Rank())
	at := n.index(1, x.Type().Size(a))
	if a == 0 && x.Type().Rank() == 2 && x.Type().DType == graph.F32 {
		n.give(ops.Embedding(x, at))
		return
	}
	n.give(ops.Take(x, at, a))
}

func gatherElements(n *node) {
	x := n.x(0)
	a := axis(n.int("axis", 0), x.Type().Rank())
	n.give(ops.Gather(x, n.index(1, x.Type().Size(a)), a))
}

// oneHot is off everywhere where an index is outside.
func oneHot(n *node) {
	depth := few("classes", int(n.scalar(1, 0)))
	at, both := n.x(0), n.x(2)
	rank := at.Type().Rank() + 1
	a := axis(n.int("axis", -1), rank)
	ids := ops.Cast(at, graph.I64)
	ids = ops.Where(ops.Less(ids, like(ids, 0)), ops.Add(ids, like(ids, float64(depth))), ids)
	list := make([]int, depth)
	for i := range list {
		list[i] = i
	}
	sizes := make([]int, rank)
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[a] = depth
	places := n.b.g.Constant("places", longs(sizes, list...))
	off := ops.ReshapeSizes(ops.Slice(both, 0, 0, 1))
	on := ops.ReshapeSizes(ops.Slice(both, 0, 1, 2))
	n.give(ops.Where(ops.Equal(ops.ExpandDims(ids, a), places), on, off))
}

// arg is where an extreme element is: the first of equals, or the last.
func arg(f func(x value, along int) value) func(n *node) {
	return func(n *node) {
		x := n.x(0)
		a := axis(n.int("axis", 0), x.Type().Rank())
		keep, last := n.flag("keepdims", true), n.flag("select_last_index", false)
		if last {
			x = ops.Reverse(x, a)
		}
		at := ops.Cast(f(x, a), graph.I64)
		if last {
			at = ops.Sub(like(at, float64(x.Type().Size(a)-1)), at)
		}
		if keep {
			at = ops.ExpandDims(at, a)
		}
		n.give(at)
	}
}

// topK is along the last axis, of what is turned there.
func topK(n *node) {
	x := n.x(0)
	k := n.int("k", 0)
	if n.version() >= 10 {
		k = int(n.scalar(1, 0))
	}
	rank := x.Type().Rank()
	a := axis(n.int("axis", -1), rank)
	largest := n.flag("largest", true)
	n.flag("sorted", true) // what is not to be sorted may be
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = i
	}
	perm[a], perm[rank-1] = rank-1, a
	if !largest {
		x = ops.Neg(x)
	}
	values, at := ops.TopK(ops.Transpose(x, perm...), k)
	if !largest {
		values = ops.Neg(values)
	}
	n.give(ops.Transpose(values, perm...), ops.Cast(ops.Transpose(at, perm...), graph.I64))
}

func cumSum(n *node) {
	x := n.x(0)
	a := axis(int(n.scalar(1, 0)), x.Type().Rank())
	f := ops.CumSum
	if n.flag("exclusive", false) {
		f = ops.CumSumExclusive
	}
	if n.flag("reverse", false) {
		n.give(ops.Reverse(f(ops.Reverse(x, a), a), a))
		return
	}
	n.give(f(x, a))
}

// nonZero is of elements that are known: how many there are decides the result's shape.
func nonZero(n *node) {
	x := n.known(0)
	values := x.To(tensor.F64).F64()
	sizes := x.Type.Sizes()
	var found []int
	for i, v := range values {
		if v != 0 {
			found = append(found, i)
		}
	}
	out := make([]int, max(1, len(sizes))*len(found))
	for k, at := range found {
		for a := len(sizes) - 1; a >= 0; a-- {
			out[a*len(found)+k] = at % sizes[a]
			at /= sizes[a]
		}
	}
	n.giveKnown(longs([]int{max(1, len(sizes)), len(found)}, out...))
}

// compress takes elements by a condition that is known.
func compress(n *node) {
	x, which := n.x(0), n.known(1)
	var list []int
	for i, b := range which.U8() {
		if b != 0 {
			list = append(list, i)
		}
	}
	if n.attribute("axis", onnx.IntKind) == nil {
		n.give(ops.Take(ops.ReshapeSizes(x, x.Type().Elems()), n.b.indices(list), 0))
		return
	}
	a := axis(n.int("axis", 0), x.Type().Rank())
	n.give(ops.Take(x, n.b.indices(list), a))
}

// cumProd multiplies along an axis, one element after the other.
func cumProd(n *node) {
	x := n.x(0)
	a := axis(int(n.scalar(1, 0)), x.Type().Rank())
	exclusive, reverse := n.flag("exclusive", false), n.flag("reverse", false)
	size := few("elements", x.Type().Size(a))
	if size == 0 {
		n.give(x)
		return
	}
	if reverse {
		x = ops.Reverse(x, a)
	}
	one := ops.Slice(x, a, 0, 1)
	sofar := ops.BroadcastTo(like(x, 1), one.Type().Sizes()...)
	if !exclusive {
		sofar = one
	}
	list := []value{sofar}
	for i := 1; i < size; i++ {
		at := i
		if exclusive {
			at--
		}
		sofar = ops.Mul(sofar, ops.Slice(x, a, at, at+1))
		list = append(list, sofar)
	}
	y := ops.Concat(a, list...)
	if reverse {
		y = ops.Reverse(y, a)
	}
	n.give(y)
}

// reverseSequence reverses the first elements of each row of a batch, as many as its length says.
func reverseSequence(n *node) {
	x := n.x(0)
	rank := x.Type().Rank()
	batch, time := axis(n.int("batch_axis", 1), rank), axis(n.int("time_axis", 0), rank)
	sizes := make([]int, rank)
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[batch] = x.Type().Size(batch)
	lengths := ops.ReshapeSizes(ops.Cast(n.x(1), graph.I32), sizes...)
	sizes[batch], sizes[time] = 1, x.Type().Size(time)
	places := ops.ReshapeSizes(n.b.indices(upTo(x.Type().Size(time))), sizes...)
	back := ops.Sub(ops.Sub(lengths, places), n.b.i32(1))
	at := ops.Where(ops.Less(places, lengths), back, places)
	n.give(ops.Gather(x, ops.BroadcastTo(at, x.Type().Sizes()...), time))
}

// upTo are the numbers below one.
func upTo(size int) []int {
	list := make([]int, few("elements", size))
	for i := range list {
		list[i] = i
	}
	return list
}

package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// quantised are operators of integers that stand for numbers: (q − zero)·scale. Casts to integers
// saturate, as ONNX wants it. No gradient passes what rounds.
var quantised = each(map[string]func(n *node){
	"QuantizeLinear": quantize, "DequantizeLinear": dequantize,
	"DynamicQuantizeLinear": dynamicQuantize,
})

// parameter is operand i, a scale or a zero in f32, for elements of sizes: one of all, one of each
// place along an axis, or one of each block there.
func parameter(n *node, i int, sizes []int, along, block int) value {
	w := ops.Cast(n.x(i), graph.F32)
	t := w.Type()
	switch {
	case t.Elems() == 1:
		return ops.ReshapeSizes(w)
	case t.Rank() == 1:
		shape := make([]int, len(sizes)-axis(along, len(sizes)))
		for k := range shape {
			shape[k] = 1
		}
		shape[0] = t.Size(0)
		return ops.ReshapeSizes(w, shape...)
	case block < 1 || t.Rank() != len(sizes):
		fail("operand %d is %s, for blocks of %d of elements %v", i, t, block, sizes)
	}
	a := axis(along, len(sizes))
	return ops.Slice(ops.Repeat(w, a, block), a, 0, sizes[a])
}

// quantize divides in the precision of the scale, or that of an attribute.
func quantize(n *node) {
	sizes := n.x(0).Type().Sizes()
	along, block := n.int("axis", 1), n.int("block_size", 0)
	n.flag("saturate", true) // of 8-bit floating-point numbers alone
	to := graph.U8
	if v := n.int("output_dtype", 0); v != 0 {
		to = typed(v)
	}
	precision := n.x(1).Type().DType
	if v := n.int("precision", 0); v != 0 {
		precision = typed(v)
	}
	x := ops.Cast(n.x(0), graph.F32)
	q := ops.Div(x, parameter(n, 1, sizes, along, block))
	if precision.Floating() {
		q = ops.Cast(ops.Cast(q, precision), graph.F32)
	}
	q = ops.Round(q)
	if n.has(2) {
		to = n.x(2).Type().DType
		q = ops.Add(q, parameter(n, 2, sizes, along, block))
	}
	n.give(ops.Cast(q, to))
}

// typed is an attribute's element type.
func typed(v int) graph.DType {
	d, err := dtype(v)
	if err != nil {
		fail("%w", err)
	}
	return d
}

func dequantize(n *node) {
	sizes := n.x(0).Type().Sizes()
	along, block := n.int("axis", 1), n.int("block_size", 0)
	to := n.x(1).Type().DType
	if v := n.int("output_dtype", 0); v != 0 {
		to = typed(v)
	}
	x := ops.Cast(n.x(0), graph.F32)
	if n.has(2) {
		x = ops.Sub(x, parameter(n, 2, sizes, along, block))
	}
	n.give(ops.Cast(ops.Mul(x, parameter(n, 1, sizes, along, block)), to))
}

// dynamicQuantize has 0 among what it has, and 255 steps.
func dynamicQuantize(n *node) {
	x := n.x(0)
	zero := like(x, 0)
	hi, lo := ops.Maximum(ops.Max(x), zero), ops.Minimum(ops.Min(x), zero)
	wide := ops.Sub(hi, lo)
	wide = ops.Where(ops.Equal(wide, zero), like(x, 1), wide)
	scale := ops.Div(wide, like(x, 255))
	offset := ops.Round(ops.Clip(ops.Neg(ops.Div(lo, scale)), 0, 255))
	y := ops.Add(ops.Round(ops.Div(x, scale)), offset)
	n.give(ops.Cast(y, graph.U8), scale, ops.Cast(offset, graph.U8))
}

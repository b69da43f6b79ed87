package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// integers are products of integers of eight bits, which are exact.
var integers = each(map[string]func(n *node){
	"MatMulInteger": func(n *node) {
		n.give(exactProduct(centred(n, 0, 2, rowOf), centred(n, 1, 3, columnOf)))
	},
	"QLinearMatMul": func(n *node) {
		y := exactProduct(centred(n, 0, 2, rowOf), centred(n, 3, 5, columnOf))
		n.give(requantized(n, y, rowOf(n.x(1)), columnOf(n.x(4)), 6))
	},
	"ConvInteger": func(n *node) {
		n.give(exactConv(n, centred(n, 0, 2, nil), centred(n, 1, 3, channelOf)))
	},
	"QLinearConv": func(n *node) {
		x, w := centred(n, 0, 2, nil), centred(n, 3, 5, channelOf)
		rank := x.Type().Rank()
		y := exactConv(n, x, w)
		if n.has(8) {
			y = ops.Add(y, channels(n.x(8), rank))
		}
		scale := n.x(4)
		if scale.Type().Elems() > 1 {
			scale = channels(scale, rank)
		}
		n.give(requantized(n, y, n.x(1), scale, 6))
	},
})

// mostTerms are products of two numbers of eight bits and a sign, of which f32 has every sum.
const mostTerms = 1 << 24 / (255 * 255)

// rowOf is a vector of numbers of rows, columnOf one of columns, as it broadcasts; channelOf is one
// of filters.
func rowOf(x value) value {
	if x.Type().Rank() == 1 && x.Type().Elems() > 1 {
		return ops.ExpandDims(x, 1)
	}
	return x
}

func columnOf(x value) value { return x }

func channelOf(x value) value {
	if x.Type().Elems() > 1 {
		return ops.ReshapeSizes(x, x.Type().Elems(), 1, 1, 1)
	}
	return x
}

// centred is operand i less its zero, an operand that may be left out, in f32.
func centred(n *node, i, zero int, as unary) value {
	x := n.x(i)
	if d := x.Type().DType; d != graph.U8 && d != graph.I8 {
		fail("operand %d is %s: want integers of eight bits", i, x.Type())
	}
	x = ops.Cast(x, graph.F32)
	if !n.has(zero) {
		return x
	}
	z := ops.Cast(n.x(zero), graph.F32)
	if z.Type().Elems() == 1 {
		z = ops.ReshapeSizes(z)
	} else if as != nil {
		z = as(z)
	}
	return ops.Sub(x, z)
}

// exactProduct adds up products of so many terms as f32 has exactly, in i32.
func exactProduct(a, b value) value {
	rank, terms := a.Type().Rank(), a.Type().Size(-1)
	along := max(0, b.Type().Rank()-2)
	var sum value
	for lo := 0; lo < terms || lo == 0; lo += mostTerms {
		hi := min(lo+mostTerms, terms)
		part := product(ops.Slice(a, rank-1, lo, hi), ops.Slice(b, along, lo, hi))
		sum = added(sum, ops.Cast(part, graph.I32))
	}
	return sum
}

func added(sum, part value) value {
	if !sum.Valid() {
		return part
	}
	return ops.Add(sum, part)
}

// exactConv adds up convolutions of as many channels, in i32.
func exactConv(n *node, x, w value) value {
	sizes, kernel := filters(n, x, w)
	s, groups := fitted(n, sizes, kernel), n.int("group", 1)
	depth := w.Type().Size(1)
	each := mostTerms / elems(kernel)
	if depth <= each {
		return ops.Cast(ops.ConvN(x, w, s.conv(groups)), graph.I32)
	}
	if each == 0 || groups != 1 {
		fail("sums of %d products in %d groups are not exact", depth*elems(kernel), groups)
	}
	var sum value
	for lo := 0; lo < depth; lo += each {
		hi := min(lo+each, depth)
		part := ops.ConvN(ops.Slice(x, 1, lo, hi), ops.Slice(w, 1, lo, hi), s.conv(1))
		sum = added(sum, ops.Cast(part, graph.I32))
	}
	return sum
}

// requantized is a product in the scale of the result, operand at, and with its zero, the next one.
func requantized(n *node, y, a, b value, at int) value {
	scale := ops.Div(ops.Mul(a, b), n.x(at))
	if scale.Type().Elems() == 1 {
		scale = ops.ReshapeSizes(scale)
	}
	zero := n.x(at + 1)
	q := ops.Mul(ops.Cast(y, graph.F64), ops.Cast(scale, graph.F64))
	q = ops.Round(ops.Add(q, ops.ReshapeSizes(ops.Cast(zero, graph.F64))))
	return ops.Cast(q, zero.Type().DType)
}

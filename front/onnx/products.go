package onnx

import (
	"github.com/gomem/gomem/graph/ops"
)

// products are operators that multiply matrices.
var products = each(map[string]func(n *node){
	"MatMul": matMul, "Gemm": gemm, "Einsum": einsum,
})

// matMul is NumPy's: an operand of one axis is a row, or a column, of which the result has none.
func matMul(n *node) {
	n.give(n.narrow(product(n.wide(0), n.wide(1))))
}

func product(a, b value) value {
	row, column := a.Type().Rank() == 1, b.Type().Rank() == 1
	if row {
		a = ops.ExpandDims(a, 0)
	}
	if column {
		b = ops.ExpandDims(b, 1)
	}
	y := ops.MatMul(a, b)
	if column {
		y = ops.Squeeze(y, -1)
	}
	if row {
		at := -2
		if column {
			at = -1
		}
		y = ops.Squeeze(y, at)
	}
	return y
}

func gemm(n *node) {
	alpha, beta := n.float("alpha", 1), n.float("beta", 1)
	n.int("broadcast", 1) // of old versions: it always does
	transA, transB := n.flag("transA", false), n.flag("transB", false)
	if alpha == 1 && beta == 1 {
		columns := 1
		if transB {
			columns = 0
		}
		if b, bias, ok := n.scaled(columns); ok {
			n.give(ops.Add(ops.MatMulT(n.x(0), b, transA, transB), bias))
			return
		}
	}
	a, b := n.wide(0), n.wide(1)
	y := ops.MatMulT(a, b, transA, transB)
	if alpha != 1 {
		y = ops.Mul(y, like(y, float64(alpha)))
	}
	if n.has(2) {
		c := n.wide(2)
		if beta != 1 {
			c = ops.Mul(c, like(c, float64(beta)))
		}
		y = ops.Add(y, c)
	}
	n.give(n.narrow(y))
}

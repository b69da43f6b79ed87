package gorgonia

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
)

// product is one of vectors and matrices.
func product(t *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	a, b := in[0], in[1]
	left, right := f.flag("transA"), f.flag("transB")
	m, n := a.Type().Elems(), b.Type().Elems()
	switch f.whole("āBinaryOperator") {
	case 0, 4: // of matrices, or of as many in batches
		return ops.MatMulT(a, b, left, right), nil
	case 1: // a matrix and a vector
		return ops.MatMulT(a, ops.ReshapeSizes(b, n, 1), left, false), nil
	case 2: // vectors to a scalar
		return ops.Sum(ops.Mul(t.shaped(a, []int{m}), t.shaped(b, []int{n}))), nil
	case 3: // vectors to a matrix
		return ops.MatMul(t.shaped(a, []int{m, 1}), t.shaped(b, []int{1, n})), nil
	}
	return a, refusal("gomem has no such product")
}

// contraction is the sum of products along axes.
func contraction(t *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	a, k := matrix(t, in[0], f.list("aAxes"))
	b, l := matrix(t, in[1], f.list("bAxes"))
	if k != l {
		return a, refusal("the axes have other sizes on both sides")
	}
	return ops.MatMulT(a, b, false, true), nil
}

// matrix is a value as [others contracted], and the size of the latter.
func matrix(t *translation, x graph.Value, contracted []int) (graph.Value, int) {
	var perm []int
	k := 1
	for a := range x.Type().Rank() {
		if slices.Contains(contracted, a) {
			k *= x.Type().Size(a)
		} else {
			perm = append(perm, a)
		}
	}
	x = turned(x, append(perm, contracted...))
	return t.shaped(x, []int{x.Type().Elems() / max(k, 1), k}), k
}

// turned is a value with its axes in another order.
func turned(x graph.Value, perm []int) graph.Value {
	if slices.IsSorted(perm) {
		return x
	}
	return ops.Transpose(x, perm...)
}

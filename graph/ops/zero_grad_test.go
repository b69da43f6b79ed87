package ops_test

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// TestGradientsThroughNothing: what values without elements are made of has a gradient of
// zeros.
func TestGradientsThroughNothing(t *testing.T) {
	type v = graph.Value // x is f32[0 5], y is f32[1 5], ids are i32[0]
	for name, f := range map[string]func(x, y, ids v) v{
		"add":    func(x, y, _ v) v { return ops.Add(x, y) },
		"max":    func(x, y, _ v) v { return ops.Max(ops.Mul(x, y), 1) },
		"lse":    func(x, y, _ v) v { return ops.LogSumExp(ops.Mul(x, y), 1) },
		"tile":   func(x, y, _ v) v { return ops.Mul(ops.Tile(x, 2, 3), ops.Tile(y, 1, 3)) },
		"repeat": func(x, y, _ v) v { return ops.Repeat(ops.Add(x, y), 1, 3) },
		"take":   func(_, y, ids v) v { return ops.Take(y, ids, 0) },
		"parent": func(_, y, ids v) v { return ops.Reorder(y, ids) },
		"where":  func(x, y, _ v) v { return ops.Where(ops.Less(x, y), x, y) },
		"cumsum": func(x, y, _ v) v { return ops.CumSum(ops.Sub(x, y), 0) },
		"matmul": func(x, y, _ v) v { return ops.MatMulT(x, y, false, true) },
		"losses": func(x, y, ids v) v {
			losses, _ := ops.CrossEntropyIgnoring(ops.Add(x, y), ids, graph.Value{}, -1, 0.1)
			return losses
		},
		"triangle": func(x, y, _ v) v { return ops.Tril(ops.Reverse(ops.Add(x, y), 1), 1) },
	} {
		grad := compute(t, func(in []graph.Value) graph.Value {
			return autodiff.Grad(ops.Sum(f(in[0], in[1], in[2])), in[1])[0]
		}, counted(0, 0, 5), counted(1, 1, 5), tensor.FromI32(nil, 0))
		expect(t, name, grad, func(int) float64 { return 0 })
	}
}

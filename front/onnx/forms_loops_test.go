package onnx

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// looped is a scan whose body has constants, a fill, a product with what is the same in all
// iterations, another scan, and results that are its operands.
func looped(o control.Options) graph.Value {
	g := graph.New()
	xs, w := g.Input("xs", graph.Of(graph.F32, 5, 3)), g.Input("w", graph.Of(graph.F32, 3, 3))
	zero := ops.Zeros(g, graph.Of(graph.F32))
	body := func(same, states, xs []graph.Value) (next, ys []graph.Value) {
		g := xs[0].Graph()
		two := g.Constant("two", tensor.FromF32([]float32{1, 2, 3}, 3))
		y := ops.Add(ops.Mul(xs[0], two), ops.Full(g, xs[0].Type(), 0.5))
		y = ops.ReshapeSizes(ops.MatMul(ops.ReshapeSizes(y, 1, 3), same[0]), 3)
		inner, _ := control.Scan(nil, []graph.Value{states[0]}, []graph.Value{y},
			func(_, sum, x []graph.Value) (next, ys []graph.Value) {
				return []graph.Value{ops.Add(ops.Scale(sum[0], 0.5), x[0])}, nil
			})
		return []graph.Value{inner[0], states[1]}, []graph.Value{ops.Mul(y, inner[0]), xs[0]}
	}
	last, ys := control.Scan([]graph.Value{w}, []graph.Value{zero, zero}, []graph.Value{xs}, body,
		o)
	return ops.Add(ops.Add(ys[0], ys[1]), ops.Add(last[0], last[1]))
}

// TestExportedLoops: a loop that is exported computes the same, in either direction.
func TestExportedLoops(t *testing.T) {
	roundTrip(t, looped(control.Options{}))
	roundTrip(t, looped(control.Options{Reverse: true, Forward: true}))
}

// TestCountNotExported: a Scan of ONNX has no count.
func TestCountNotExported(t *testing.T) {
	g := graph.New()
	xs, count := g.Input("xs", graph.Of(graph.F32, 5)), g.Input("count", graph.Of(graph.I32))
	body := func(_, _, xs []graph.Value) (next, ys []graph.Value) { return nil, xs }
	_, ys := control.Scan(nil, nil, []graph.Value{xs}, body, control.Options{Count: count})
	err := Export(filepath.Join(t.TempDir(), "model.onnx"), []Output{{"y", ys[0]}}, nil)
	if err == nil || !strings.Contains(err.Error(), "scan, with a count (") {
		t.Errorf("%v", err)
	}
}

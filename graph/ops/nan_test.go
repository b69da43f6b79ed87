package ops_test

import (
	"math"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// TestReluAtNaN: NaN stays NaN, and its gradient is what comes in, as PyTorch's is;
// where there is no slope, a gradient that is NaN does not pass. In sizes for every
// path: the whole vectors of a kernel, its tail, stores around the caches; alone and
// in a chain.
func TestReluAtNaN(t *testing.T) {
	nan := float32(math.NaN())
	points := []float32{nan, -1, 0, float32(math.Copysign(0, -1)), 2, float32(math.Inf(-1))}
	value := []float32{nan, 0, 0, 0, 2, 0}
	passes := []bool{true, false, false, false, true, false}
	for name, f := range map[string]func(graph.Value) graph.Value{
		"relu":         ops.Relu,
		"clipped relu": func(x graph.Value) graph.Value { return ops.ClippedRelu(x, 20) },
	} {
		for _, n := range []int{1, 7, 12, 31, 1000, 1 << 20} {
			for _, fused := range []bool{false, true} {
				for _, d := range []float32{3, nan} {
					x := tensor.New(tensor.Of(graph.F32, n))
					for i := range x.F32() {
						x.F32()[i] = points[i%len(points)]
					}
					y, dx := reluAt(t, f, x, d, fused)
					for i := range x.F32() {
						k, want := i%len(points), float32(0)
						if passes[k] {
							want = d
						}
						if !equalOrNaN(y[i], value[k]) || !equalOrNaN(dx[i], want) {
							t.Fatalf("%s of %d, fused %t: at %g it is %g with gradient %g, want "+
								"%g and %g", name, n, fused, x.F32()[i], y[i], dx[i], value[k],
								want)
						}
					}
				}
			}
		}
	}
}

func equalOrNaN(a, b float32) bool { return a == b || a != a && b != b }

// reluAt computes f at x and its gradient, where that of the result is d, beside a
// product by one, so that there is something to fuse it with.
func reluAt(t *testing.T, f func(graph.Value) graph.Value, x tensor.View, d float32,
	fused bool) (y, dx []float32) {
	t.Helper()
	g := graph.New()
	in, one := g.Constant("x", x), ops.Full(g, x.Type, 1)
	out := f(ops.Mul(in, one))
	grad := autodiff.Grad(ops.Sum(ops.Mul(out, ops.Full(g, x.Type, d))), in)[0]
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	if fused {
		r, err := fuse.Fuse(g, []graph.Value{out, grad}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Graph.Nodes()) >= len(g.Nodes()) {
			t.Fatal("nothing is fused")
		}
		g, out, grad = r.Graph, r.Value(out), r.Value(grad)
	}
	m, err := reference.New(g, g.Ancestors([]graph.NodeID{out.Node.ID, grad.Node.ID}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Step(); err != nil {
		t.Fatal(err)
	}
	return m.Value(out).F32(), m.Value(grad).F32()
}

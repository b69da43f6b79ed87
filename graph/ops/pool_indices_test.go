package ops_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
)

// TestMaxPoolIndices: the elements are where the indices say, their gradient goes there alone,
// and they are put back there.
func TestMaxPoolIndices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.IntRange(1, 3).Draw(t, "axes")
		m, spatial := drawMoves(t, axes, 2), drawSpatial(t, axes)
		x := random(append([]int{2, 3}, spatial...)...)
		y := compute(t, func(in []graph.Value) graph.Value {
			return ops.MaxPool(in[0], m.pool())
		}, x)
		indices := compute(t, func(in []graph.Value) graph.Value {
			_, indices := ops.MaxPoolIndices(in[0], m.pool())
			return indices
		}, x)
		counts, back := make([]float64, x.Type.Elems()), make([]float64, x.Type.Elems())
		for i, k := range indices.I64() {
			if x.F32()[k] != y.F32()[i] {
				t.Fatalf("element %d is %g, and %g where index %d says", i, y.F32()[i],
					x.F32()[k], k)
			}
			counts[k]++
			back[k] = float64(y.F32()[i])
		}
		grad := compute(t, func(in []graph.Value) graph.Value {
			return autodiff.Grad(ops.Sum(ops.MaxPool(in[0], m.pool())), in[0])[0]
		}, x)
		expect(t, "gradient", grad, func(i int) float64 { return counts[i] })
		put := compute(t, func(in []graph.Value) graph.Value {
			y, indices := ops.MaxPoolIndices(in[0], m.pool())
			return ops.MaxUnpool(y, indices, x.Type.Sizes()...)
		}, x)
		expect(t, "put back", put, func(i int) float64 { return back[i] })
	})
}

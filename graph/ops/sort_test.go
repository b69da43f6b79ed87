package ops_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// TestSort: along any axis, elements are in order, equals in the order that they had, and NaN
// is larger than all numbers; the first of them are those of TopKAlong.
func TestSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t, rapid.IntRange(1, 3).Draw(t, "rank"))
		axis := rapid.IntRange(0, len(sizes)-1).Draw(t, "axis")
		sizes[axis] *= rapid.SampledFrom([]int{1, 9}).Draw(t, "longer")
		descending := rapid.Bool().Draw(t, "descending")
		x := random(sizes...)
		for i := range x.F32() {
			x.F32()[i] = rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, -2, 3,
				float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}).Draw(t, "x")
		}
		k := rapid.IntRange(1, sizes[axis]).Draw(t, "k")
		for _, k := range []int{k, sizes[axis]} {
			part := func(indices bool) func(in []graph.Value) graph.Value {
				return func(in []graph.Value) graph.Value {
					v, i := ops.TopKAlong(in[0], axis, k, !descending)
					if k == sizes[axis] {
						v, i = ops.Sort(in[0], axis-len(sizes), descending)
					}
					return map[bool]graph.Value{false: v, true: i}[indices]
				}
			}
			values, indices := compute(t, part(false), x), compute(t, part(true), x)
			for i, got := range indices.I32() {
				index := indexOf(indices.Type, i)
				want := sortedColumn(func(j int) float32 {
					index := slices.Clone(index)
					index[axis] = j
					return x.F32()[at(x.Type, index)]
				}, sizes[axis], descending)[index[axis]]
				from := slices.Clone(index)
				from[axis] = want
				v, w := values.F32()[i], x.F32()[at(x.Type, from)]
				if int(got) != want || math.Float32bits(v) != math.Float32bits(w) {
					t.Fatalf("element %d is %g from %d, want %g from %d", i, v, got, w, want)
				}
			}
		}
	})
}

// sortedColumn is the order of n elements.
func sortedColumn(element func(int) float32, n int, descending bool) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := float64(element(a)), float64(element(b))
		c := 0
		switch {
		case x < y, x == x && y != y:
			c = -1
		case x > y, x != x && y == y:
			c = 1
		}
		if descending {
			return -c
		}
		return c
	})
	return order
}

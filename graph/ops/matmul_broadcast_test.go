package ops_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// TestMatMulBroadcasts: batch axes of size 1, and missing ones, are repeated, whichever
// way the product is computed.
func TestMatMulBroadcasts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int { return rapid.IntRange(1, 4).Draw(t, name) }
		m, n, k := size("m"), size("n"), size("k")
		lead := drawSizes(t, rapid.IntRange(0, 4).Draw(t, "rank"))
		transA, transB := rapid.Bool().Draw(t, "transA"), rapid.Bool().Draw(t, "transB")
		operand := func(name string, rows, columns int, trans bool) tensor.View {
			s := slices.Clone(lead[rapid.IntRange(0, len(lead)).Draw(t, name):])
			for i := range s {
				if rapid.Bool().Draw(t, "one") {
					s[i] = 1
				}
			}
			if trans {
				rows, columns = columns, rows
			}
			return random(append(s, rows, columns)...)
		}
		a, b := operand("a", m, k, transA), operand("b", k, n, transB)
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.MatMulT(in[0], in[1], transA, transB)
		}, a, b)
		expect(t, "product", got, func(i int) float64 {
			index := indexOf(got.Type, i)
			row, column := index[len(index)-2], index[len(index)-1]
			sum := 0.0
			for k := range k {
				sum += element(a, index, row, k, transA) * element(b, index, k, column, transB)
			}
			return sum
		})
	})
}

// element is that of the matrix that belongs to a batch of the result.
func element(x tensor.View, batch []int, row, column int, trans bool) float64 {
	if trans {
		row, column = column, row
	}
	index := append(slices.Clone(batch[:len(batch)-2]), row, column)
	index = index[max(0, len(index)-x.Type.Rank()):]
	return float64(x.F32()[at(x.Type, index)])
}

// TestGroupedQueriesAreOneProduct: queries of several heads and the keys of one are
// multiplied, and differentiated, without a copy of the keys for each.
func TestGroupedQueriesAreOneProduct(t *testing.T) {
	g := graph.New()
	q := g.Input("q", tensor.Of(graph.F32, 2, 3, 4, 5, 6))
	k := g.Input("k", tensor.Of(graph.F32, 2, 3, 1, 7, 6))
	scores := ops.MatMulT(q, k, false, true)
	if got := scores.Type().String(); got != "f32[2 3 4 5 7]" || g.Err() != nil {
		t.Fatalf("scores are %s: %v", got, g.Err())
	}
	for _, n := range g.Nodes() {
		if n.Executes() && n.OpName() != "matmul" {
			t.Errorf("%s is executed", n.OpName())
		}
	}
}

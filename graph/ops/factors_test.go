package ops

import (
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// TestFactors: of what gradients of weights look like, and of nothing else; and what is
// made again of other factors is the same expression of them.
func TestFactors(t *testing.T) {
	g := graph.New()
	in := func(name string, sizes ...int) graph.Value {
		return g.Input(name, tensor.Of(graph.F32, sizes...))
	}
	a, b, c, d := in("a", 6, 2), in("b", 6, 3), in("c", 4, 5, 2), in("d", 4, 5, 3)
	flat := MatMulT(a, b, true, false)
	deep := apply(matMul{TransA: true, Reduce: true}, c, d)
	ids, e := g.Input("ids", tensor.Of(graph.I32, 5)), in("h", 5, 3)
	rows := apply(embeddingGrad{Rows: 2}, ids, e)
	packed := Concat(0, ReshapeSizes(flat, 1, 2, 3), ReshapeSizes(deep, 1, 2, 3))
	for name, x := range map[string]struct {
		v    graph.Value
		want []graph.Value
	}{
		"none":             {graph.Value{}, nil},
		"an input":         {a, nil},
		"a product":        {flat, []graph.Value{a, b}},
		"a sum of batches": {deep, []graph.Value{c, d}},
		"packed":           {packed, []graph.Value{a, b, c, d}},
		"the forward pass": {MatMul(a, in("w", 2, 3)), nil},
		"batches apart":    {MatMulT(c, d, true, false), nil},
		"both transposed":  {MatMulT(a, in("e", 4, 6), true, true), nil},
		"in part":          {Concat(0, flat, in("f", 2, 3)), nil},
		"a sum of two":     {Add(flat, deep), []graph.Value{a, b, c, d}},
		"rows of a table":  {rows, []graph.Value{ids, e}},
		"a large table":    {apply(embeddingGrad{Rows: 1<<24 + 1}, ids, e), nil},
		"a tied table":     {Add(flat, rows), []graph.Value{a, b, ids, e}},
		"a difference":     {Sub(flat, deep), nil},
		"a sum with more":  {Add(flat, in("g", 2, 3)), nil},
		"a sum of rows":    {Add(flat, Slice(deep, 0, 0, 1)), nil},
		"rearranged":       {Transpose(flat, 1, 0), nil},
	} {
		if got := Factors(x.v); !slices.Equal(got, x.want) {
			t.Errorf("%s: factors are %v, want %v", name, got, x.want)
		}
	}
	longer := map[graph.Value]graph.Value{a: in("2a", 12, 2), b: in("2b", 12, 3),
		c: in("2c", 8, 5, 2), d: in("2d", 8, 5, 3)}
	again := Refactor(packed, func(f graph.Value) graph.Value { return longer[f] })
	got := Factors(again)
	if g.Err() != nil || !again.Type().Equal(packed.Type()) || !slices.Equal(got,
		[]graph.Value{longer[a], longer[b], longer[c], longer[d]}) {
		t.Errorf("%s of %v: %v", again.Type(), got, g.Err())
	}
}

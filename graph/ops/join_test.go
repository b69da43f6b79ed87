package ops

import (
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	plain "github.com/gomem/gomem/internal/reference"
)

// products are terms of sums: products of matrices of all ranks, and rows of a table.
type productTerms struct {
	g          *graph.Graph
	flat, deep graph.Value // products over 2 and over 3·2 samples, f32[40 30]
	rows       graph.Value // the gradient of a table of which 3 rows were looked up
	other      graph.Value // an input of their type
	a          graph.Value // the left operand of flat
}

func newProductTerms() productTerms {
	g := graph.New()
	in := func(name string, sizes ...int) graph.Value {
		return g.Input(name, tensor.Of(graph.F32, sizes...))
	}
	a := in("a", 2, 40)
	return productTerms{g: g, a: a, flat: MatMulT(a, in("b", 2, 30), true, false),
		deep: apply(matMul{TransA: true, Reduce: true}, in("c", 3, 2, 40), in("d", 3, 2, 30)),
		rows: apply(embeddingGrad{Rows: 40}, g.Input("ids", tensor.Of(graph.I32, 3)),
			in("e", 3, 30)), other: in("other", 40, 30)}
}

// TestJoin: products of a sum become one, lookups of a table one that is added to it, all else
// stays; the sum has the same value; and there is no joining where it is no fewer bytes.
func TestJoin(t *testing.T) {
	x := newProductTerms()
	small := MatMulT(x.g.Input("f", tensor.Of(graph.F32, 9, 4)),
		x.g.Input("h", tensor.Of(graph.F32, 9, 3)), true, false)
	for name, c := range map[string]struct {
		v    graph.Value
		want []string // the operations of the joined sum's terms; nil: v stays
	}{
		"a product":           {x.flat, nil},
		"no product":          {Add(x.other, x.other), nil},
		"one product":         {Add(x.flat, x.other), nil},
		"an empty value":      {graph.Value{}, nil},
		"too many samples":    {Add(small, small), nil},
		"a difference":        {Sub(x.flat, x.deep), nil},
		"two products":        {Add(x.flat, x.deep), []string{"matmul"}},
		"a product twice":     {Add(x.flat, x.flat), []string{"matmul"}},
		"products and others": {Add(Add(x.flat, x.other), x.deep), []string{"input", "matmul"}},
		"a product and rows":  {Add(x.rows, x.flat), []string{"matmul", "embedding-grad"}},
		"rows twice":          {Add(x.rows, x.rows), []string{"embedding-grad"}},
		"terms on either side": {Add(Add(x.flat, x.deep), Add(x.rows, x.deep)),
			[]string{"matmul", "embedding-grad"}},
		"a repeated row":        {Add(x.flat, x.g.Input("row", tensor.Of(graph.F32, 30))), nil},
		"a sum that is scaled":  {Scale(Add(x.flat, x.deep), 2), nil},
		"a sum that is in part": {Concat(0, Add(x.flat, x.deep), x.other), []string{"concat"}},
	} {
		var j Joining
		got := j.Join(c.v)
		if x.g.Err() != nil {
			t.Fatalf("%s: %v", name, x.g.Err())
		}
		if c.want == nil {
			if got != c.v {
				t.Errorf("%s is joined", name)
			}
			continue
		}
		var have []string
		for _, term := range terms(got) {
			have = append(have, term.Node.OpName())
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: terms are %v, want %v", name, have, c.want)
		}
		sameValue(t, name, got, c.v)
	}
}

// TestJoiningShares: what two sums have in common is put together once.
func TestJoiningShares(t *testing.T) {
	x := newProductTerms()
	a2 := x.g.Input("a2", tensor.Of(graph.F32, 2, 40))
	b := func(name string) graph.Value { return x.g.Input(name, tensor.Of(graph.F32, 2, 30)) }
	sum := func(p, q string) graph.Value {
		return Add(MatMulT(x.a, b(p), true, false), MatMulT(a2, b(q), true, false))
	}
	var j Joining
	one, two := j.Join(sum("p", "q")), j.Join(sum("r", "s"))
	if one.Node.In[0] != two.Node.In[0] || one.Node.In[1] == two.Node.In[1] {
		t.Errorf("operands are %v and %v", one.Node.In, two.Node.In)
	}
	var other Joining
	if three := other.Join(sum("t", "u")); three.Node.In[0] == one.Node.In[0] {
		t.Error("one joining has what another has made")
	}
}

// sameValue evaluates two values on noise.
func sameValue(t *testing.T, name string, got, want graph.Value) {
	t.Helper()
	g := got.Graph()
	roots := []graph.NodeID{got.Node.ID, want.Node.ID}
	m, err := plain.New(g, g.Ancestors(roots), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes() {
		if n.Kind != graph.KindInput || !g.Ancestors(roots)[n.ID] {
			continue
		}
		v := m.Value(n.Value(0))
		for i := range v.Type.Elems() {
			if v.Type.DType == graph.I32 {
				v.I32()[i] = int32(7 * i % 3)
			} else {
				v.F32()[i] = float32(math.Sin(float64(i) + float64(n.ID)))
			}
		}
	}
	if err := m.Step(); err != nil {
		t.Fatal(err)
	}
	x, y := m.Value(got).F32(), m.Value(want).F32()
	for i := range x {
		if d := math.Abs(float64(x[i] - y[i])); !(d <= 1e-5) {
			t.Fatalf("%s: element %d is %v, want %v", name, i, x[i], y[i])
		}
	}
}

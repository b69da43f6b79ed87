package hlo

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
)

// Fold puts the elements of every row of the last axis together: x [… n] → […], of numbers of any
// type but 16-bit floating-point ones, and bits.
func Fold(how How, x graph.Value) graph.Value { return apply(foldOp{How: how}, x) }

type foldOp struct {
	streaming
	How How
}

func (foldOp) Name() string { return "fold" }

func (o foldOp) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if in[0].Rank() == 0 {
		return nil, fmt.Errorf("%s has no axis", in[0])
	}
	if err := numeric(in[0].DType, o.How); err != nil {
		return nil, err
	}
	sizes := in[0].Sizes()
	return []graph.Type{graph.Of(in[0].DType, sizes[:len(sizes)-1]...)}, nil
}

func foldCPU(o foldOp, c *custom.Call) error {
	x, out := c.In[0], c.Out[0]
	n := x.Type.Size(-1)
	fill(out, Neutral(o.How, x.Type.DType))
	put := folder(o.How, out, x)
	c.For(out.Type.Elems(), max(1, grain/max(1, n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for k := range n {
				put(i, i*n+k)
			}
		}
	})
	return nil
}

// Dot is the product of matrices of every batch: [b m k] × [b k n] → [b m n], of integers.
func Dot(a, b graph.Value) graph.Value { return apply(dot{}, a, b) }

type dot struct{ noGradient }

func (dot) Name() string { return "dot" }

func (dot) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	a, b := in[0], in[1]
	if a.DType != b.DType || a.Rank() != 3 || b.Rank() != 3 || a.Size(0) != b.Size(0) ||
		a.Size(2) != b.Size(1) {
		return nil, fmt.Errorf("%s by %s, want [b m k] by [b k n]", a, b)
	}
	if err := numeric(a.DType, Product); err != nil {
		return nil, err
	}
	return []graph.Type{graph.Of(a.DType, a.Size(0), a.Size(1), b.Size(2))}, nil
}

func (dot) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 2 * int64(out[0].Elems()) * int64(in[0].Size(2)),
		Bytes: in[0].Bytes() + in[1].Bytes() + out[0].Bytes()}
}

func dotCPU(_ dot, c *custom.Call) error {
	a, b, out := c.In[0], c.In[1], c.Out[0]
	m, k, n := a.Type.Size(1), a.Type.Size(2), b.Type.Size(2)
	clear(out.Data)
	add := arithmeticOf(a.Type.DType).multiply(out, a, b)
	c.For(out.Type.Elems(), max(1, grain/max(1, k)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row, column := i/n, i%n
			for j := range k {
				add(i, row*k+j, (row/m*k+j)*n+column)
			}
		}
	})
	return nil
}

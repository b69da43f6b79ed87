package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Reorder is the elements of x along its first axis that parent names, of any element
// type: x [batch …], parent i32[n] in [0, batch) → [n …]. Its gradient adds up what
// comes from one element.
func Reorder(x, parent graph.Value) graph.Value { return apply(reorder{}, x, parent) }

type reorder struct{}

func (reorder) Name() string { return "reorder" }

// checkParents wants a list of elements of the first axis, of the same number.
func checkParents(x, parent graph.Type) error {
	if parent.DType != graph.I32 || parent.Rank() != 1 || x.Rank() == 0 ||
		parent.Size(0) != x.Size(0) {
		return fmt.Errorf("the parents are %s, want i32, one for each element of axis 0 of %s%s",
			parent, x, convertible(parent, graph.I32))
	}
	return nil
}

func (reorder) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if in[0].Rank() == 0 || in[1].DType != graph.I32 || in[1].Rank() != 1 {
		return nil, fmt.Errorf("elements %s of axis 0 of %s, want i32 of one axis%s", in[1], in[0],
			convertible(in[1], graph.I32))
	}
	return []graph.Type{resized(in[0], 0, in[1].Size(0))}, nil
}

func (reorder) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

// CheckData wants elements of the first axis.
func (reorder) CheckData(in []tensor.View) error {
	return checkIDs(known(in[1]), in[0].Type.Size(0))
}

func (reorder) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0].Type()
	flat := ReshapeSizes(dout[0], n.Out[0].Size(0), x.Elems()/max(1, x.Size(0)))
	dx := apply(embeddingGrad{Rows: x.Size(0)}, n.In[1], flat)
	return []graph.Value{Reshape(dx, x.Shape...), {}}
}

func reorderCPU(o reorder, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	x, parent, out := c.In[0], c.In[1].I32(), c.Out[0]
	row := len(out.Data) / max(1, len(parent))
	if row == 0 {
		return nil
	}
	c.Pool.For(len(out.Data), 4*grain, func(lo, hi int) {
		for lo < hi { // one element at a time
			i, at := lo/row, lo%row
			n := min(row-at, hi-lo)
			copy(out.Data[lo:lo+n], x.Data[int(parent[i])*row+at:])
			lo += n
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, reorderCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := tensor.Of(graph.I32, 4)
	register(
		Sample{Op: reorder{}, In: []graph.Type{f(4, 2, 5), ids}, Fill: fills{1: below(4)},
			NoGrad: []int{1}, Second: true},
		Sample{Op: reorder{}, In: []graph.Type{f(3), ids}, NoGrad: []int{1}, Second: true},
		Sample{Op: reorder{}, In: []graph.Type{tensor.Of(graph.U8, 3, 7), ids},
			NoGrad: []int{0, 1}},
	)
}

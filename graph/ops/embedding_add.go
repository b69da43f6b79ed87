package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// embeddingAdd adds an embedding's gradient to a sum, in the sum's memory: f32[Rows d],
// ids i32[…], dout f32[… d] → f32[Rows d]. A row's gradients are added up before they
// are added to the sum, as if the gradient had been made first.
type embeddingAdd struct{ Grad embeddingGrad }

func (embeddingAdd) Name() string { return "embedding-grad-add" }

func (o embeddingAdd) Infer(in []graph.Type) ([]graph.Type, error) {
	out, err := o.Grad.Infer(in[min(1, len(in)):])
	if err != nil {
		return nil, err
	}
	if !in[0].Equal(out[0]) {
		return nil, fmt.Errorf("a gradient %s is added to %s", out[0], in[0])
	}
	return out, nil
}

// Cost: the scratch has, of every row, a list of where its gradients are.
func (embeddingAdd) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[2].Elems() + out[0].Elems()), Bytes: bytes(in, out),
		Scratch: 4 * int64(out[0].Size(0)+in[1].Elems())}
}

// InPlace: the sum is what is added to.
func (embeddingAdd) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (embeddingAdd) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{dout[0], {}, Embedding(dout[0], n.In[1])}
}

func embeddingAddCPU(o embeddingAdd, c *kernel.Call) error {
	sum, ids, dout, out := c.In[0].F32(), c.In[1].I32(), c.In[2].F32(), c.Out[0].F32()
	rows, d := o.Grad.Rows, c.Out[0].Type.Size(1)
	if err := checkIDs(ids, rows); err != nil {
		return err
	}
	lists := tensor.View{Type: tensor.Of(graph.I32, rows+len(ids)), Data: c.Scratch}.I32()
	first, next := lists[:rows], lists[rows:]
	for i := range first {
		first[i] = -1
	}
	for i := len(ids) - 1; i >= 0; i-- {
		next[i], first[ids[i]] = first[ids[i]], int32(i)
	}
	c.Pool.For(rows, max(1, grain/d), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			addListed(out[r*d:(r+1)*d], sum[r*d:(r+1)*d], dout, first[r], next)
		}
	})
	return nil
}

// addListed is out = sum + rows of x, which are added up first, in blocks of columns.
func addListed(out, sum, x []float32, first int32, next []int32) {
	const block = 64
	d := len(out)
	for lo := 0; lo < d; lo += block {
		var total [block]float32
		hi := min(d, lo+block)
		for i := first; i >= 0; i = next[i] {
			for j, v := range x[int(i)*d+lo : int(i)*d+hi] {
				total[j] += v
			}
		}
		for j := lo; j < hi; j++ {
			out[j] = sum[j] + total[j-lo]
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, embeddingAddCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	register(
		Sample{Op: embeddingAdd{embeddingGrad{Rows: 5}}, Fill: fills{1: below(5)},
			In: []graph.Type{f(5, 65), ids(7), f(7, 65)}, NoGrad: []int{1}, Second: true},
		Sample{Op: embeddingAdd{embeddingGrad{Rows: 5}}, Fill: fills{1: below(5)},
			In: []graph.Type{f(5, 3), ids(2, 4), f(2, 4, 3)}, NoGrad: []int{1}, Second: true},
	)
}

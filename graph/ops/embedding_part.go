package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// EmbeddingPart is Embedding over some rows of a table, those from first on: table
// f32[n d], ids i32[…] → f32[… d], zeros where the id has its row elsewhere. The sum
// over all parts is the embedding, and a table that is larger than a device is looked
// up in part by part.
func EmbeddingPart(table, ids graph.Value, first int) graph.Value {
	return apply(embeddingPart{First: first}, table, ids)
}

type embeddingPart struct{ First int }

func (embeddingPart) Name() string { return "embedding-part" }

func (o embeddingPart) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.First < 0 {
		return nil, fmt.Errorf("the first row is %d, want 0 or more", o.First)
	}
	return embedding{}.Infer(in)
}

func (embeddingPart) Cost(in, out []graph.Type) graph.Cost { return embedding{}.Cost(in, out) }

func (o embeddingPart) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	rows := n.In[0].Type().Size(0)
	return []graph.Value{apply(embeddingPartGrad{o.First, rows}, n.In[1], dout[0]), {}}
}

func embeddingPartCPU(o embeddingPart, c *kernel.Call) error {
	table, ids, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	rows, d := c.In[0].Type.Size(0), c.In[0].Type.Size(1)
	c.Pool.For(len(ids), max(1, grain/max(1, d)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := out[i*d : (i+1)*d]
			if at := int(ids[i]) - o.First; at >= 0 && at < rows {
				copy(row, table[at*d:])
			} else {
				clear(row)
			}
		}
	})
	return nil
}

// embeddingPartGrad adds the rows of dout up by index, of those that the part has: ids
// i32[…], dout f32[… d] → f32[Rows d].
type embeddingPartGrad struct{ First, Rows int }

func (embeddingPartGrad) Name() string { return "embedding-part-grad" }

func (o embeddingPartGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	return embeddingGrad{Rows: o.Rows}.Infer(in)
}

func (o embeddingPartGrad) Cost(in, out []graph.Type) graph.Cost {
	return embeddingGrad{Rows: o.Rows}.Cost(in, out)
}

func (o embeddingPartGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, EmbeddingPart(dout[0], n.In[0], o.First)}
}

// embeddingPartGradCPU splits over the table's rows, as embeddingGradCPU does.
func embeddingPartGradCPU(o embeddingPartGrad, c *kernel.Call) error {
	ids, dout, out := c.In[0].I32(), c.In[1].F32(), c.Out[0].F32()
	d := c.Out[0].Type.Size(1)
	c.Pool.For(o.Rows, max(1, grain/max(1, d)), func(lo, hi int) {
		clear(out[lo*d : hi*d])
		for i, id := range ids {
			if at := int(id) - o.First; at >= lo && at < hi {
				row := out[at*d : (at+1)*d]
				vec.Add(row, row, dout[i*d:])
			}
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, embeddingPartCPU)
	kernel.Register(kernel.CPU, embeddingPartGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	register(
		Sample{Op: embeddingPart{First: 2}, In: []graph.Type{f(3, 17), ids(2, 4)},
			Fill: fills{1: below(9)}, NoGrad: []int{1}, Second: true},
		Sample{Op: embeddingPartGrad{First: 1, Rows: 3}, In: []graph.Type{ids(7), f(7, 5)},
			Fill: fills{0: below(6)}, NoGrad: []int{0}, Second: true},
	)
}

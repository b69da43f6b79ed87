package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Embedding looks rows up: table f32[v d], ids i32[…] in [0, v) → f32[… d]. Its
// gradient adds up the rows' gradients.
func Embedding(table, ids graph.Value) graph.Value { return apply(embedding{}, table, ids) }

type embedding struct{}

func (embedding) Name() string { return "embedding" }

func (embedding) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if in[0].Rank() != 2 {
		return nil, fmt.Errorf("the table is %s, want two axes", in[0])
	}
	return []graph.Type{{DType: graph.F32, Shape: extended(in[1].Shape, in[0].Shape[1])}}, nil
}

// extended is a shape with one more axis, which keeps its name if no other axis
// has it.
func extended(shape []graph.Dim, last graph.Dim) []graph.Dim {
	if slices.ContainsFunc(shape, func(d graph.Dim) bool { return d.Name == last.Name }) {
		last.Name = ""
	}
	return append(slices.Clone(shape), last)
}

func (embedding) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

func (embedding) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	rows := n.In[0].Type().Size(0)
	return []graph.Value{apply(embeddingGrad{Rows: rows}, n.In[1], dout[0]), {}}
}

// checkIDs reports an index outside [0, n).
func checkIDs(ids []int32, n int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= n {
			return fmt.Errorf("index %d at position %d is outside a table of %d rows", id, i, n)
		}
	}
	return nil
}

func (embedding) form16() string { return "h.>*" }

func (embedding) scratch16(_, _ []graph.Type) int64 { return 0 }

func embeddingCPU(_ embedding, c *kernel.Call) error {
	ids, d := c.In[1].I32(), c.In[0].Type.Size(1)
	if err := checkIDs(ids, c.In[0].Type.Size(0)); err != nil {
		return err
	}
	if half(c.In[0].Type) {
		embeddingRows16(c, ids, d)
		return nil
	}
	table, out := c.In[0].F32(), c.Out[0].F32()
	c.Pool.For(len(ids), max(1, grain/d), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(out[i*d:(i+1)*d], table[int(ids[i])*d:])
		}
	})
	return nil
}

// embeddingRows16 looks up rows of d elements of a table in bfloat16. By way of f32, as the
// definition has it: NaN becomes quiet.
func embeddingRows16(c *kernel.Call, ids []int32, d int) {
	table, rounds := c.In[0].U16(), half(c.Out[0].Type)
	c.Pool.For(len(ids), max(1, grain/max(1, d)), func(lo, hi int) {
		var wide [256]float32
		for i := lo; i < hi; i++ {
			row := table[int(ids[i])*d : (int(ids[i])+1)*d]
			if !rounds {
				vec.F32FromBF16(c.Out[0].F32()[i*d:(i+1)*d], row)
				continue
			}
			out := c.Out[0].U16()[i*d : (i+1)*d]
			for at := 0; at < d; at += len(wide) {
				n := min(len(wide), d-at)
				vec.F32FromBF16(wide[:n], row[at:at+n])
				vec.BF16FromF32(out[at:at+n], wide[:n])
			}
		}
	})
}

// embeddingGrad adds the rows of dout up by index: ids i32[…], dout f32[… d] →
// f32[Rows d].
type embeddingGrad struct{ Rows int }

func (embeddingGrad) Name() string { return "embedding-grad" }

func (o embeddingGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.F32); err != nil {
		return nil, err
	}
	k := in[0].Rank()
	if o.Rows < 0 || in[1].Rank() != k+1 ||
		!(graph.Type{Shape: in[1].Shape[:k]}).SameShape(graph.Type{Shape: in[0].Shape}) {
		return nil, fmt.Errorf("gradient %s of rows %s of a table of %d", in[1], in[0], o.Rows)
	}
	return []graph.Type{tensor.Of(graph.F32, o.Rows, in[1].Size(-1))}, nil
}

func (embeddingGrad) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[1].Elems()), Bytes: bytes(in, out) + 2*in[1].Bytes()}
}

func (embeddingGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, Embedding(dout[0], n.In[0])}
}

// pieces are of some columns each.
func (o embeddingGrad) pieces(in, out []graph.Type) []piece {
	columns, last := out[0].Size(1), in[1].Rank()-1
	return piecesAlong(o, columns, eighth(columns), []int{-1, last}, []int{1})
}

// embeddingGradCPU splits over the table's rows: every thread adds up those that
// are its own, in the order of the indices.
func embeddingGradCPU(o embeddingGrad, c *kernel.Call) error {
	ids, dout, out := c.In[0].I32(), c.In[1].F32(), c.Out[0].F32()
	if err := checkIDs(ids, o.Rows); err != nil {
		return err
	}
	d := c.Out[0].Type.Size(1)
	c.Pool.For(o.Rows, max(1, grain/d), func(lo, hi int) {
		clear(out[lo*d : hi*d])
		for i, id := range ids {
			if int(id) >= lo && int(id) < hi {
				row := out[int(id)*d : (int(id)+1)*d]
				vec.Add(row, row, dout[i*d:])
			}
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, embeddingCPU)
	kernel.Register(kernel.CPU, embeddingGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	register(
		Sample{Op: embedding{}, In: []graph.Type{f(5, 3), ids(7)}, Fill: fills{1: below(5)},
			NoGrad: []int{1}, Second: true},
		Sample{Op: embedding{}, In: []graph.Type{f(5, 17), ids(2, 4)}, Fill: fills{1: below(5)},
			NoGrad: []int{1}, Second: true},
		Sample{Op: embeddingGrad{Rows: 5}, In: []graph.Type{ids(7), f(7, 65)},
			Fill: fills{0: below(5)}, NoGrad: []int{0}, Second: true},
	)
}

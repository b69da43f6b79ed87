package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// rowBytes are those of a row of a matrix.
func rowBytes(t graph.Type) int { return int(t.Bytes()) / max(1, t.Size(0)) }

func packedMatMulCUDA(o packedMatMul, c *cuda.Call) ([]cuda.Command, error) {
	return o.launches(c.Out[0], c.In[0], c.In[1], c.Scratch, 0), nil
}

// launches multiplies all rows of x, or those that are between two numbers at an address, rounded
// in scratch where they are.
func (o packedMatMul) launches(out, x, w cuda.Operand, scratch, between uint64) []cuda.Command {
	const warps, group, four = threads / 32, 8, 4 // rows of x, and of w, by a warp or thread
	_, wide := o.sides(w.Type)
	n, rows := elems(out)/max(1, wide), w.Type.Size(0)
	groups := (n + group - 1) / group
	from := any(x)
	if o.rounded() > 0 {
		from = scratch
	}
	list := []any{out, from, w, between, n, rows, o.Width, rowBytes(w.Type), int32(o.Format)}
	switch {
	case o.Back:
		blocks := (groups*o.Width + threads - 1) / threads
		return []cuda.Command{launched("packed_product_back", blocks, list...)}
	case o.rounded() > 0:
		tiles := groups * ((rows + four - 1) / four)
		return []cuda.Command{
			overElements("packed_round", n*o.Width/32, scratch, x, between, n, o.Width),
			launched("packed_times", (tiles+warps-1)/warps, list...)}
	}
	return []cuda.Command{launched("packed_product", (groups*rows+warps-1)/warps, list...)}
}

func packedEmbeddingCUDA(o packedEmbedding, c *cuda.Call) ([]cuda.Command, error) {
	table, n := c.In[0], elems(c.In[1])
	return only(overElements("packed_rows", n*o.Width, c.Out[0], table, c.In[1], n,
		table.Type.Size(0), o.Width, rowBytes(table.Type), o.First, int32(o.Format)))
}

func init() {
	cuda.Register(packedMatMulCUDA, func(o packedMatMul, in, out []graph.Type) int64 {
		return o.Cost(in, out).Scratch
	})
	cuda.Register(packedEmbeddingCUDA, nil)
}

package ops

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	kernels "github.com/gomem/gomem/internal/kernel/attention"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// attentionTile is how many queries, and keys, a block has at a time.
const attentionTile = 64

// onCUDA is an attention's first argument: its sizes, strides of queries, keys and values, masks
// and noise.
func (o attention) onCUDA(q, k, v graph.Type, masks []cuda.Operand) ([]any, kernels.Problem) {
	x := o.sizes(q, k, v)
	whole := o.whole(x)
	list := []any{x.Batch, x.Queries, x.Keys, x.Heads, x.Groups, x.Size, x.ValueSize}
	y := tensor.Of(graph.F32, q.Size(0), q.Size(1), q.Size(2), v.Size(3))
	for _, t := range []graph.Type{q, k, v, y, {DType: graph.F32, Shape: q.Shape[:3]}} {
		r := o.strides(t)
		list = append(list, r.Batch, r.Head, r.Next)
	}
	place := int(o.Piece.At[2])
	if !o.Placed {
		place += x.Keys - whole[2]
	}
	next := func(has bool) (addr uint64, t graph.Type) {
		if has {
			addr, t, masks = masks[0].Addr, masks[0].Type, masks[1:]
		}
		return addr, t
	}
	padding, _ := next(o.Padded)
	documents, _ := next(o.Documented)
	places, t := next(o.Placed)
	seed, _ := next(o.Rate != 0)
	n := o.noise(whole, x.Keys)
	keep := 1 - o.Rate
	return append(list, flag(o.Causal), place, flag(t.Rank() == 1), o.Window, o.Sinks, n.From,
		n.ByBatch, n.ByHead, n.ByQuery, o.Salt, padding, documents, places, seed, o.Scale,
		o.Softcap, 1/keep, uint32(math.Ceil(float64(float64(keep)*(1<<32)))-1)), x
}

func attentionTiles(n int) int { return (n + attentionTile - 1) / attentionTile }

func attentionCUDA(o attention, c *cuda.Call) ([]cuda.Command, error) {
	list, x := o.onCUDA(c.In[0].Type, c.In[1].Type, c.In[2].Type, c.In[3:])
	list = append(list, c.Out[0], c.Out[1], c.In[0], c.In[1], c.In[2])
	return only(launched(kernelOf("attention", c.In[0]),
		x.Batch*x.Heads*attentionTiles(x.Queries), list...))
}

func attentionGradCUDA(o attentionGrad, c *cuda.Call) ([]cuda.Command, error) {
	list, x := o.Of.onCUDA(c.In[0].Type, c.In[1].Type, c.In[2].Type, c.In[6:])
	for _, operand := range c.In[:6] {
		list = append(list, operand)
	}
	queries := append(list[:len(list):len(list)], c.Out[0])
	keys := append(list[:len(list):len(list)], c.Out[1])
	values := append(list, c.Out[2])
	blocks := x.Batch * x.Groups * attentionTiles(x.Keys)
	return []cuda.Command{
		launched(kernelOf("attention_keys", c.In[0]), blocks, keys...),
		launched(kernelOf("attention_values", c.In[0]), blocks, values...),
		launched(kernelOf("attention_queries", c.In[0]),
			x.Batch*x.Heads*attentionTiles(x.Queries), queries...)}, nil
}

func attentionMaskCUDA(o attentionMask, c *cuda.Call) ([]cuda.Command, error) {
	q, k := o.vectors()
	list, _ := o.masked().onCUDA(q, k, k, c.In)
	return only(overElements("attention_mask", o.Batch*o.Queries*o.Keys, append(list, c.Out[0])...))
}

func init() {
	cuda.Register(attentionCUDA, nil)
	cuda.Register(attentionGradCUDA, nil)
	cuda.Register(attentionMaskCUDA, nil)
}

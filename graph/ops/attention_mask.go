package ops

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// attentionMask is what an attention's masks add to logits, f32[batch 1 queries keys]: −Inf where
// a key is not seen, else 0. Its operands are those that mask.
type attentionMask struct {
	Of                   attention
	Batch, Queries, Keys int
}

func (attentionMask) Name() string { return "attention-mask" }

// vectors are queries and keys of no size.
func (o attentionMask) vectors() (q, k graph.Type) {
	q, k = graph.Of(graph.F32, o.Batch, o.Queries, 1, 1), graph.Of(graph.F32, o.Batch, o.Keys, 1, 1)
	return q, k
}

func (o attentionMask) masked() attention {
	a := o.Of
	a.Rate, a.HeadsFirst, a.Piece = 0, false, attentionPiece{}
	return a
}

func (o attentionMask) Infer(in []graph.Type) ([]graph.Type, error) {
	q, k := o.vectors()
	if err := o.masked().check(q, k, k, in); err != nil {
		return nil, err
	}
	t := tensor.Of(graph.F32, o.Batch, 1, o.Queries, o.Keys)
	return []graph.Type{t}, t.Check()
}

func (attentionMask) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (attentionMask) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func attentionMaskCPU(o attentionMask, c *kernel.Call) error {
	q, k := o.vectors()
	x := o.masked().problem(q, k, k, c.In)
	out := c.Out[0].F32()
	c.Pool.For(o.Batch*o.Queries, max(1, grain/o.Keys), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := out[r*o.Keys : (r+1)*o.Keys]
			clear(row)
			x.Hide(row, r/o.Queries, r%o.Queries, float32(math.Inf(-1)))
		}
	})
	return nil
}

func init() { kernel.Register(kernel.CPU, attentionMaskCPU) }

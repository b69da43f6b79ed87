package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// CausalMaskAt is the mask to add to attention logits [… query key] where the queries
// are some of a sequence, from a position on: −10⁹ where the key is later than the
// query, else 0. For a position i32[] it is f32[queries keys]; for a position of every
// element of a batch, i32[batch], f32[batch 1 queries keys]. Keys that are not written
// yet are later than any query, and so are masked as well.
func CausalMaskAt(position graph.Value, queries, keys int) graph.Value {
	return apply(causalMaskAt{Queries: queries, Keys: keys}, position)
}

type causalMaskAt struct{ Queries, Keys int }

func (causalMaskAt) Name() string { return "causal-mask-at" }

func (o causalMaskAt) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32); err != nil {
		return nil, err
	}
	if in[0].Rank() > 1 {
		return nil, fmt.Errorf("the position is %s, want i32[] or i32[batch]", in[0])
	}
	t := tensor.Of(graph.F32, o.Queries, o.Keys)
	if in[0].Rank() == 1 {
		t.Shape = append([]graph.Dim{in[0].Shape[0], {Size: 1}}, t.Shape...)
	}
	return []graph.Type{t}, t.Check()
}

func (causalMaskAt) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (causalMaskAt) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func causalMaskAtCPU(o causalMaskAt, c *kernel.Call) error {
	positions, out := c.In[0].I32(), c.Out[0].F32()
	rows(c, len(out), max(1, o.Keys), func(lo, hi int) {
		row := lo / o.Keys
		seen := int(positions[row/o.Queries]) + row%o.Queries + 1
		seen = min(max(seen, 0), o.Keys)
		clear(out[lo : lo+seen])
		repeat(out[lo+seen:hi], masked)
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, causalMaskAtCPU)
	position := func(sizes ...int) []graph.Type {
		return []graph.Type{tensor.Of(graph.I32, sizes...)}
	}
	register(
		Sample{Op: causalMaskAt{Queries: 3, Keys: 17}, In: position(), NoGrad: []int{0}},
		Sample{Op: causalMaskAt{Queries: 2, Keys: 5}, In: position(4), NoGrad: []int{0}},
	)
}

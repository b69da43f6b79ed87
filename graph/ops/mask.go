package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// masked is what a mask adds to the logit of a position that must not be
// attended to: e to its power is zero, and a row of it alone is not NaN.
const masked = -1e9

// PaddingMask is, for ids i32[b l], the f32[b 1 1 l] to add to attention logits
// [b heads query l]: −10⁹ where the id is 0, which is padding, else 0.
func PaddingMask(ids graph.Value) graph.Value { return apply(paddingMask{}, ids) }

type paddingMask struct{}

func (paddingMask) Name() string { return "padding-mask" }

func (paddingMask) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32); err != nil {
		return nil, err
	}
	if in[0].Rank() != 2 {
		return nil, fmt.Errorf("ids are %s, want two axes: batch and length", in[0])
	}
	b, l := in[0].Shape[0], in[0].Shape[1]
	return []graph.Type{tensor.Named(graph.F32, b, graph.Dim{Size: 1}, graph.Dim{Size: 1}, l)}, nil
}

func (paddingMask) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (paddingMask) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func paddingMaskCPU(_ paddingMask, c *kernel.Call) error {
	ids, out := c.In[0].I32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		for i, id := range ids[lo:hi] {
			out[lo+i] = 0
			if id == 0 {
				out[lo+i] = masked
			}
		}
	})
	return nil
}

// CausalMask is the f32[l l] to add to attention logits [… query key]: −10⁹
// where the key is later than the query, else 0.
func CausalMask(g *graph.Graph, l int) graph.Value {
	n := g.Apply(causalMask{Length: l})
	if n == nil {
		return graph.Value{}
	}
	return n.Value(0)
}

type causalMask struct{ Length int }

func (causalMask) Name() string { return "causal-mask" }

func (o causalMask) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 0); err != nil {
		return nil, err
	}
	t := tensor.Of(graph.F32, o.Length, o.Length)
	return []graph.Type{t}, t.Check()
}

func (causalMask) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (causalMask) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

func causalMaskCPU(o causalMask, c *kernel.Call) error {
	out, l := c.Out[0].F32(), o.Length
	c.Pool.For(l, max(1, grain/l), func(lo, hi int) {
		for q := lo; q < hi; q++ {
			row := out[q*l : (q+1)*l]
			clear(row[:q+1])
			repeat(row[q+1:], masked)
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, paddingMaskCPU)
	kernel.Register(kernel.CPU, causalMaskCPU)
	register(
		Sample{Op: paddingMask{}, In: []graph.Type{tensor.Of(graph.I32, 3, 17)}, NoGrad: []int{0}},
		Sample{Op: causalMask{Length: 1}},
		Sample{Op: causalMask{Length: 17}},
	)
}

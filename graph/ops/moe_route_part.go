package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/tensor"
)

// RouteParted is the operation that makes of a [Route] a rank's part of it, where experts are
// at several ranks. Its operands are both choices of all tokens, the route's inv and the rank of
// each expert, i32[experts]. Its results are the ranks of every token's choices, i32[T 2], -1
// where there is none, and the route's rows and inv, with -1 for choices that are elsewhere.
// Rewrites make such nodes, by graph.Graph.Copy.
func RouteParted(rank int) graph.Op { return routePart{Rank: rank} }

// Routes reports whether an operation is that of [Route]: its operands are choices.
func Routes(op graph.Op) bool {
	_, ok := op.(route)
	return ok
}

type routePart struct{ Rank int }

func (routePart) Name() string { return "route-part" }

func (o routePart) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 4); err != nil {
		return nil, err
	}
	if err := checkPair(in[:2]); err != nil {
		return nil, err
	}
	t := in[0].Elems()
	inv, rows := tensor.Of(graph.I32, t, 2), tensor.Of(graph.I32, 2*t)
	if !in[2].Equal(inv) || in[3].DType != graph.I32 || in[3].Rank() != 1 {
		return nil, fmt.Errorf("routing is %s, by experts at %s: want %s and i32[experts]", in[2],
			in[3], inv)
	}
	if o.Rank < 0 {
		return nil, fmt.Errorf("there is no rank %d", o.Rank)
	}
	return []graph.Type{inv, rows, inv}, nil
}

func (routePart) Cost(in, out []graph.Type) graph.Cost { return graph.Cost{Bytes: bytes(in, out)} }

func (routePart) VJP(*graph.Node, []graph.Value) []graph.Value { return none(4) }

func routePartCPU(o routePart, c *kernel.Call) error {
	inv, at := c.In[2].I32(), c.In[3].I32()
	ranks, rows, here := c.Out[0].I32(), c.Out[1].I32(), c.Out[2].I32()
	if err := checkChoices(inv, len(rows)); err != nil {
		return err
	}
	for i := range rows {
		rows[i] = -1
	}
	for k, choices := range c.In[:2] {
		if err := checkChoices(choices.I32(), len(at)); err != nil {
			return err
		}
		for t, e := range choices.I32() {
			i := 2*t + k
			ranks[i], here[i] = -1, -1
			if e >= 0 {
				ranks[i] = at[e]
			}
			if r := inv[i]; e >= 0 && int(at[e]) == o.Rank && r >= 0 {
				here[i], rows[r] = r, int32(t)
			}
		}
	}
	return nil
}

func routePartCUDA(o routePart, c *cuda.Call) ([]cuda.Command, error) {
	tokens := elems(c.In[0])
	return []cuda.Command{minusOne(c.Out[1]), overElements("route_part", 2*tokens, c.Out[0],
		c.Out[1], c.Out[2], c.In[0], c.In[1], c.In[2], c.In[3], tokens, elems(c.In[3]),
		o.Rank)}, nil
}

func init() {
	kernel.Register(kernel.CPU, routePartCPU)
	cuda.Register(routePartCUDA, nil)
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	// Four tokens, of which two have one choice only, as in the samples of rows.
	register(
		Sample{Op: routePart{Rank: 1}, In: []graph.Type{ids(2, 2), ids(2, 2), ids(4, 2), ids(3)},
			Fill: fills{0: fill32(1, 0, 1, 2), 1: fill32(-1, 1, 2, -1),
				2: fill32(2, -1, 0, 4, 1, 5, 3, -1), 3: fill32(0, 1, 1)},
			NoGrad: []int{0, 1, 2, 3}},
		Sample{Op: routePart{Rank: 0}, In: []graph.Type{ids(4), ids(4), ids(4, 2), ids(2)},
			Fill: fills{0: fill32(1, 0, 1, 0), 1: fill32(-1, 1, 0, -1),
				2: fill32(2, -1, 0, 4, 1, 5, 3, -1), 3: fill32(1, 1)},
			NoGrad: []int{0, 1, 2, 3}},
	)
}

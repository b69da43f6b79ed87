package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// RouteChoices is [Route] of choices of k experts each, as [TopK] makes them: i32[T k] → rows
// i32[R], inv i32[T k] and offsets i32[experts+1], with R = k·T. A choice that is negative is none.
// Within an expert tokens are in order.
func RouteChoices(choices graph.Value, experts int) (rows, inv, offsets graph.Value) {
	out := applyN(3, routeChoices{Experts: experts}, choices)
	return out[0], out[1], out[2]
}

type routeChoices struct{ Experts int }

func (routeChoices) Name() string { return "route-choices" }

func (o routeChoices) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32); err != nil {
		return nil, err
	}
	if in[0].Rank() != 2 || in[0].Size(1) < 1 {
		return nil, fmt.Errorf("choices are %s, want i32[T k]", in[0])
	}
	if o.Experts < 1 {
		return nil, fmt.Errorf("%d experts", o.Experts)
	}
	return []graph.Type{tensor.Of(graph.I32, in[0].Elems()), tensor.Of(graph.I32,
		in[0].Sizes()...), tensor.Of(graph.I32, o.Experts+1)}, nil
}

func (o routeChoices) Cost(in, out []graph.Type) graph.Cost { return route(o).Cost(in, out) }

func (routeChoices) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

// CheckData wants experts, or none.
func (o routeChoices) CheckData(in []tensor.View) error { return checkExperts(in, o.Experts) }

// routeChoicesCPU is a counting sort.
func routeChoicesCPU(o routeChoices, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	choices, k := c.In[0].I32(), int32(c.In[0].Type.Size(1))
	rows, inv, offsets := c.Out[0].I32(), c.Out[1].I32(), c.Out[2].I32()
	clear(offsets)
	for _, e := range choices {
		if e >= 0 {
			offsets[e+1]++
		}
	}
	for e := range o.Experts {
		offsets[e+1] += offsets[e]
	}
	next := ints(c.Scratch)
	copy(next, offsets)
	for i, e := range choices {
		if inv[i] = -1; e < 0 {
			continue
		}
		inv[i] = next[e]
		rows[next[e]] = int32(i) / k
		next[e]++
	}
	for r := int(offsets[o.Experts]); r < len(rows); r++ {
		rows[r] = -1
	}
	return nil
}

func init() {
	kernel.Register(kernel.CPU, routeChoicesCPU)
	for _, k := range []int{1, 2, 3} {
		register(Sample{Op: routeChoices{Experts: 5}, In: []graph.Type{tensor.Of(graph.I32, 17, k)},
			Fill: fills{0: choices(5)}, NoGrad: []int{0}})
	}
}

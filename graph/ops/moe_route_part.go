package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// RoutedApart is the operation by which part of so many parts, each of which has as many
// experts, those of part 0 first, has its share of what [Route] made: of rows, inv and offsets,
//
//   - ranks, i32[T 2], is the part of each choice, −1 where there is none,
//   - own, i32[R], is rows, but −1 for those of experts of other parts.
func RoutedApart(parts, part int) graph.Op { return routePart{Parts: parts, Part: part} }

type routePart struct{ Parts, Part int }

func (routePart) Name() string { return "route-part" }

func (o routePart) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.I32, graph.I32); err != nil {
		return nil, err
	}
	if _, err := routed(in[0], in[1]); err != nil {
		return nil, err
	}
	offsets := in[2]
	if offsets.Rank() != 1 || offsets.Size(0) < 2 {
		return nil, fmt.Errorf("offsets are %s, want i32[experts+1]", offsets)
	}
	if experts := offsets.Size(0) - 1; o.Parts < 1 || experts%o.Parts != 0 {
		return nil, fmt.Errorf("%d experts in %d parts", experts, o.Parts)
	}
	if o.Part < 0 || o.Part >= o.Parts {
		return nil, fmt.Errorf("part %d of %d", o.Part, o.Parts)
	}
	return []graph.Type{in[1], in[0]}, nil
}

func (routePart) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: bytes(in[:2], out)}
}

func (routePart) VJP(*graph.Node, []graph.Value) []graph.Value { return none(3) }

// routePartCPU refuses nothing: whatever rows say, they have to do with some part.
func routePartCPU(o routePart, c *kernel.Call) error {
	rows, inv, offsets := c.In[0].I32(), c.In[1].I32(), c.In[2].I32()
	ranks, own := c.Out[0].I32(), c.Out[1].I32()
	each := (len(offsets) - 1) / o.Parts
	for i, r := range inv {
		ranks[i] = -1
		if r >= 0 {
			ranks[i] = o.of(r, offsets, each)
		}
	}
	lo, hi := int(offsets[o.Part*each]), int(offsets[(o.Part+1)*each])
	for r, t := range rows {
		if own[r] = -1; r >= lo && r < hi {
			own[r] = t
		}
	}
	return nil
}

// of is the part that has a packed row, if each has so many experts; the last one if no other.
func (o routePart) of(r int32, offsets []int32, each int) (part int32) {
	for int(part) < o.Parts-1 && r >= offsets[(int(part)+1)*each] {
		part++
	}
	return part
}

func routePartCUDA(o routePart, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("route_part", n, c.Out[0], c.Out[1], c.In[0], c.In[1], c.In[2], n,
		o.Parts, o.Part, (elems(c.In[2])-1)/o.Parts))
}

// RowMoves says which operands an operation reads that moves rows between tokens and the packed
// form of [Route], where rows of an expert are one after the other.
type RowMoves struct {
	Rows, Inv int   // those that say which rows are moved
	Tokens    []int // with a row for every token: those of no packed row do not matter
	Choices   []int // f32[T 2], with an element for every choice
	Packed    []int // with packed rows: of zeros it makes zeros
	// Packs: the result is packed, with zeros where Rows has -1. Chooses: it is f32[T 2], of
	// choices. Of neither it has a row for every token.
	Packs, Chooses bool
}

// MovesOf says which rows an operation moves, if it does.
func MovesOf(op graph.Op) (m RowMoves, ok bool) {
	switch op.(type) {
	case gatherRows:
		return RowMoves{Rows: 1, Inv: 2, Tokens: []int{0}, Packs: true}, true
	case spreadRows:
		return RowMoves{Rows: 2, Inv: 3, Tokens: []int{0}, Choices: []int{1}, Packs: true}, true
	case sumRows:
		return RowMoves{Rows: 2, Inv: 1, Packed: []int{0}}, true
	case combineRows:
		return RowMoves{Rows: 3, Inv: 2, Packed: []int{0}, Choices: []int{1}}, true
	case dotRows:
		return RowMoves{Rows: 3, Inv: 2, Tokens: []int{0}, Packed: []int{1}, Chooses: true},
			true
	}
	return RowMoves{}, false
}

// Routes reports whether an operation is that of [Route].
func Routes(op graph.Op) bool {
	_, ok := op.(route)
	return ok
}

func init() {
	kernel.Register(kernel.CPU, routePartCPU)
	cuda.Register(routePartCUDA, nil)
	cuda.Exact[routePart](nil)
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	sample := func(parts, part int, offsets ...int32) {
		register(Sample{Op: RoutedApart(parts, part), NoGrad: []int{0, 1, 2},
			In: []graph.Type{ids(8), ids(4, 2), ids(len(offsets))},
			Fill: fills{0: fill32(1, 2, 0, 3, 1, 2, -1, -1), 1: fill32(2, -1, 0, 4, 1, 5, 3, -1),
				2: fill32(offsets...)}})
	}
	sample(2, 1, 0, 2, 3, 5, 6)
	sample(3, 0, 0, 0, 6, 6)
	sample(1, 0, 0, 2, 6)
}

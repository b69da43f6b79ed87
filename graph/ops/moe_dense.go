package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Positions queues the tokens of each group for their experts: for choices
// i32[g s] as [Top2] makes them, i32[g s] slots expert·capacity + position, or
// −1 where the expert's queue is full or there is no choice. All first choices
// of a group queue before its second choices, tokens in order.
func Positions(idx1, idx2 graph.Value, experts, capacity int) (slot1, slot2 graph.Value) {
	out := applyN(2, positions{Experts: experts, Capacity: capacity}, idx1, idx2)
	return out[0], out[1]
}

type positions struct{ Experts, Capacity int }

func (positions) Name() string { return "positions" }

func (o positions) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := checkPair(in); err != nil {
		return nil, err
	}
	if in[0].Rank() != 2 {
		return nil, fmt.Errorf("choices are %s, want two axes: group and token", in[0])
	}
	if o.Experts < 1 || o.Capacity < 1 || o.Experts > math.MaxInt32/o.Capacity {
		return nil, fmt.Errorf("%d experts of %d slots", o.Experts, o.Capacity)
	}
	return slices.Clone(in), nil
}

// checkPair wants two i32 operands of one shape.
func checkPair(in []graph.Type) error {
	if err := want(in, graph.I32, graph.I32); err != nil {
		return err
	}
	if !in[0].SameShape(in[1]) {
		return fmt.Errorf("first and second choices differ in shape")
	}
	return nil
}

func (o positions) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: bytes(in, out), Scratch: 4 * int64(in[0].Size(0)) * int64(o.Experts)}
}

func (positions) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

// ints sees scratch memory as numbers.
func ints(scratch []byte) []int32 {
	return tensor.View{Type: tensor.Of(tensor.I32), Data: scratch}.I32()
}

func positionsCPU(o positions, c *kernel.Call) error {
	groups, s := c.In[0].Type.Size(0), c.In[0].Type.Size(1)
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	c.Pool.For(groups, max(1, grain/s), func(lo, hi int) {
		for g := lo; g < hi; g++ {
			queues := ints(c.Scratch)[g*o.Experts : (g+1)*o.Experts]
			clear(queues)
			for k, v := range c.In {
				o.queue(queues, v.I32()[g*s:(g+1)*s], c.Out[k].I32()[g*s:(g+1)*s])
			}
		}
	})
	return nil
}

// queue appends tokens to the queues, which are known by their lengths.
func (o positions) queue(queues, choices, slots []int32) {
	for i, e := range choices {
		slots[i] = -1
		if e >= 0 && int(queues[e]) < o.Capacity {
			slots[i] = e*int32(o.Capacity) + queues[e]
			queues[e]++
		}
	}
}

// Dispatch is, for slots i32[g s] as [Positions] makes them, the f32[g s slots]
// that is 1 where a token has a slot and 0 elsewhere.
func Dispatch(slot1, slot2 graph.Value, slots int) graph.Value {
	return apply(dispatch{Slots: slots}, slot1, slot2)
}

type dispatch struct{ Slots int }

func (dispatch) Name() string { return "dispatch" }

func (o dispatch) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := checkPair(in); err != nil {
		return nil, err
	}
	return slotted(in[0], o.Slots)
}

// slotted is t's shape with an axis of slots, f32.
func slotted(t graph.Type, slots int) ([]graph.Type, error) {
	if slots < 1 {
		return nil, fmt.Errorf("%d slots", slots)
	}
	shape := append(slices.Clone(t.Shape), graph.Dim{Size: slots})
	return []graph.Type{{DType: graph.F32, Shape: shape}}, nil
}

func (dispatch) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (dispatch) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

func dispatchCPU(o dispatch, c *kernel.Call) error {
	return inRow{whole: o.Slots}.dispatch(c, o.Slots)
}

func (p inRow) dispatch(c *kernel.Call, slots int) error {
	return p.eachSlot(c, slots, func(x *float32, _, _ int) { *x = 1 })
}

// eachSlot zeroes result 0, [… slots], and then calls set with the element of
// each token's slots, the choice, and the token. Operands 0 and 1 are the slots.
func (p inRow) eachSlot(c *kernel.Call, slots int, set func(x *float32, k, token int)) error {
	out := c.Out[0].F32()
	for _, v := range c.In[:2] {
		if err := checkChoices(v.I32(), p.whole); err != nil {
			return err
		}
	}
	c.Pool.For(len(out)/slots, max(1, grain/slots), func(lo, hi int) {
		clear(out[lo*slots : hi*slots])
		for k, v := range c.In[:2] {
			for t, slot := range v.I32()[lo:hi] {
				if at, ok := p.place(slot, slots); ok {
					set(&out[(lo+t)*slots+at], k, lo+t)
				}
			}
		}
	})
	return nil
}

// Combine is [Dispatch] with the gates g1 and g2, f32[g s], instead of ones.
func Combine(slot1, slot2, g1, g2 graph.Value, slots int) graph.Value {
	return apply(combine{Slots: slots}, slot1, slot2, g1, g2)
}

type combine struct{ Slots int }

func (combine) Name() string { return "combine" }

func (o combine) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.I32, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	for _, t := range in[1:] {
		if !t.SameShape(in[0]) {
			return nil, fmt.Errorf("slots and gates differ in shape")
		}
	}
	return slotted(in[0], o.Slots)
}

func (combine) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (combine) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, {}, TakeLast(dout[0], n.In[0]), TakeLast(dout[0], n.In[1])}
}

func combineCPU(o combine, c *kernel.Call) error {
	return inRow{whole: o.Slots}.combine(c, o.Slots)
}

func (p inRow) combine(c *kernel.Call, slots int) error {
	gates := [2][]float32{c.In[2].F32(), c.In[3].F32()}
	return p.eachSlot(c, slots, func(x *float32, k, token int) { *x += gates[k][token] })
}

func init() {
	kernel.Register(kernel.CPU, positionsCPU)
	kernel.Register(kernel.CPU, dispatchCPU)
	kernel.Register(kernel.CPU, combineCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	pick := fills{0: choices(5), 1: choices(5)}
	register(
		Sample{Op: positions{Experts: 5, Capacity: 3}, In: []graph.Type{ids(3, 17), ids(3, 17)},
			Fill: pick, NoGrad: []int{0, 1}},
		Sample{Op: positions{Experts: 5, Capacity: 100}, In: []graph.Type{ids(1, 17), ids(1, 17)},
			Fill: pick, NoGrad: []int{0, 1}},
		Sample{Op: dispatch{Slots: 5}, In: []graph.Type{ids(3, 17), ids(3, 17)}, Fill: pick,
			NoGrad: []int{0, 1}},
		Sample{Op: combine{Slots: 5}, In: []graph.Type{ids(3, 17), ids(3, 17), f(3, 17), f(3, 17)},
			Fill: pick, NoGrad: []int{0, 1}, Second: true},
	)
}

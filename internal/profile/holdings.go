package profile

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
)

// Category says what bytes are for.
type Category uint8

// The categories.
const (
	Weights     Category = iota // parameters, where they are bound
	Optimizer                   // its state, and what updates compute on the way
	Inputs                      // what is fed, and constants
	Activations                 // computed in the forward phase
	Gradients                   // computed in the backward phase
	Staging                     // copies of variables and constants, for who reads them
	Workspace                   // what operations scribble in
	categories                  // how many there are
)

var categoryNames = [categories]string{"weights", "optimizer", "inputs", "activations",
	"gradients", "staging", "workspace"}

// String is the category in a word.
func (c Category) String() string { return categoryNames[c] }

// Categories are all, in the order in which they are shown.
func Categories() []Category {
	all := make([]Category, categories)
	for i := range all {
		all[i] = Category(i)
	}
	return all
}

// MarshalText is the word.
func (c Category) MarshalText() ([]byte, error) {
	if c >= categories {
		return nil, fmt.Errorf("category %d: there are %d", uint8(c), categories)
	}
	return []byte(c.String()), nil
}

// UnmarshalText reads the word.
func (c *Category) UnmarshalText(text []byte) error {
	i := slices.Index(categoryNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown category %q", text)
	}
	*c = Category(i)
	return nil
}

// holding is what a slot holds from a step on.
type holding struct {
	from     int
	value    graph.Value // of scratch, the node's first result, if it has one
	bytes    int64       // of the value; fewer than it has are a part of it
	category Category
}

// holdings are what every slot holds, in the order of the steps.
type holdings [][]holding

// replay finds out what slots hold.
func replay(p *plan.Plan, g *graph.Graph) holdings {
	h := make(holdings, len(p.Slots))
	for _, list := range [][]plan.Binding{p.Variables, p.Feeds} {
		for _, b := range list {
			v := g.Node(b.Node).Value(0)
			h.put(p, b.Slot, holding{value: v, bytes: v.Type().Bytes()})
		}
	}
	for i, s := range p.Steps {
		n := g.Node(s.Node)
		switch do := s.Do.(type) {
		case plan.Copy:
			if v := h.now(do.Src.Slot); v.value.Valid() {
				h.put(p, do.Dst.Slot, holding{from: i, value: v.value, bytes: do.Bytes})
			}
		case plan.Send:
			h.put(p, do.Out.Slot, holding{from: i, value: n.Value(0), bytes: do.Bytes})
		case plan.Peer:
			h.put(p, do.Out.Slot, holding{from: i, value: n.Value(0), bytes: do.Bytes})
		case plan.Await:
			h.put(p, do.At.Slot, holding{from: i, value: n.Value(0), bytes: do.Bytes})
		case plan.Launch:
			for k, r := range do.Out {
				h.put(p, r.Slot, holding{from: i, value: n.Value(k), bytes: n.Out[k].Bytes()})
			}
			if do.Scratch != plan.NoSlot {
				h[do.Scratch] = append(h[do.Scratch], holding{from: i, value: n.Value(0),
					bytes: p.Slots[do.Scratch].Bytes, category: Workspace})
			}
		}
	}
	return h
}

// put notes that a slot holds a value from a step on.
func (h holdings) put(p *plan.Plan, id plan.SlotID, x holding) {
	x.category = categoryOf(x.value.Node, p.Slots[id].Fixed)
	h[id] = append(h[id], x)
}

// now is what a slot holds at last; nothing at first.
func (h holdings) now(id plan.SlotID) holding {
	if len(h[id]) == 0 {
		return holding{}
	}
	return h[id][len(h[id])-1]
}

// at is what a slot holds at a step; the first thing if it holds none yet.
func (h holdings) at(id plan.SlotID, step int) holding {
	if len(h[id]) == 0 {
		return holding{}
	}
	i := 0
	for i+1 < len(h[id]) && h[id][i+1].from <= step {
		i++
	}
	return h[id][i]
}

// categoryOf is the category of a node's value, in a slot that is bound to a
// variable or constant or in another.
func categoryOf(n *graph.Node, fixed bool) Category {
	leaf := n.Kind == graph.KindVariable || n.Kind == graph.KindConstant
	switch {
	case leaf && !fixed:
		return Staging
	case n.Kind == graph.KindVariable && n.State:
		return Optimizer
	case n.Kind == graph.KindVariable:
		return Weights
	case leaf, n.Kind == graph.KindInput:
		return Inputs
	case n.Exchanges():
		return Gradients
	}
	return [...]Category{Activations, Gradients, Optimizer}[n.Phase]
}

// holder describes what a slot holds at a step.
func (h holdings) holder(p *plan.Plan, id plan.SlotID, step int) Holder {
	s, x := &p.Slots[id], h.at(id, step)
	out := Holder{Value: s.Value, Type: s.Type.String(), Bytes: s.Bytes, Category: x.category}
	if n := x.value.Node; n != nil {
		out.Pos = n.Pos
	}
	if x.category == Workspace || !x.value.Valid() {
		return out
	}
	t := x.value.Type()
	out.Value, out.Type = x.value.String(), t.String()
	if x.bytes < t.Bytes() {
		out.Value, out.Type = "part of "+out.Value, s.Type.String()
	}
	return out
}

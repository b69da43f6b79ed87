package plan

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// leaves proves that every variable and constant of the graph has one slot of
// its own, which is there between steps, and every live input one in host
// memory: no other slot is fixed, and none is there for nothing. Since nothing
// writes fixed slots but updates of their variables, and copies of what these
// have made elsewhere, a variable is all there between steps.
func (v *verifier) leaves() error {
	variables, feeds, fixed := v.plan.Variables, v.plan.Feeds, 0
	for _, n := range v.graph.Nodes() {
		var err error
		switch {
		case n.Kind == graph.KindVariable || n.Kind == graph.KindConstant:
			variables, err = v.bound(n, variables)
			fixed++
		case n.Kind == graph.KindInput && v.live[n.ID]:
			feeds, err = v.bound(n, feeds)
		}
		if err != nil {
			return err
		}
	}
	for _, list := range [][]Binding{variables, feeds} {
		if len(list) > 0 {
			return v.fail(-1, list[0].Name, "node %d is bound, but is no leaf that needs a slot, "+
				"or is bound twice", list[0].Node)
		}
	}
	for i := range v.plan.Slots {
		s := &v.plan.Slots[i]
		if s.Fixed {
			fixed--
		}
		if !v.used[i] {
			return v.fail(-1, s.Value, "slot %d is not used", i)
		}
	}
	if fixed != 0 {
		return v.fail(-1, "", "%d fixed slots are no variable's", -fixed)
	}
	return nil
}

// bound proves that the first binding of a list is the node's, and returns the
// rest: bindings are in the graph's order.
func (v *verifier) bound(n *graph.Node, list []Binding) ([]Binding, error) {
	if len(list) == 0 || list[0].Node != n.ID {
		return nil, v.fail(-1, n.Name, "the %s has no slot, or not in the graph's order", n.Kind)
	}
	b := list[0]
	if b.Name != n.Name {
		return nil, v.fail(-1, b.Name, "is the name of a slot of %s", n.Name)
	}
	if b.Slot < 0 || int(b.Slot) >= len(v.plan.Slots) {
		return nil, v.fail(-1, n.Name, "slot %d does not exist", b.Slot)
	}
	s, input := &v.plan.Slots[b.Slot], n.Kind == graph.KindInput
	switch {
	case s.Value != n.Name || !s.Type.Equal(n.Out[0]):
		return nil, v.fail(-1, n.Name, "is %s, its slot %d is for %s, %s", n.Out[0], b.Slot,
			s.Value, s.Type)
	case s.Fixed == input || s.From != 0:
		return nil, v.fail(-1, n.Name, "slot %d of the %s is not there when the step starts, "+
			"or is there between steps", b.Slot, n.Kind)
	case input && s.Space != space.Host:
		return nil, v.fail(-1, n.Name, "the input is in %s memory", v.plan.SpaceName(s.Space))
	}
	v.used[b.Slot] = true
	return list[1:], nil
}

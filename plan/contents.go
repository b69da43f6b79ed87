package plan

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// content is what a slot holds: bytes of a value, starting at an offset.
type content struct {
	value   graph.Value // the zero Value: nothing defined
	off     int64       // the slot's first byte is this byte of the value
	bytes   int64
	updated bool // a variable, after its update
	flying  bool // the network has it: only an await touches the slot
	begun   bool // the slot has held something: what it says of its value is proved
}

// contents replays the steps symbolically and proves that every read sees the
// value that the graph says. A pure operation makes the same value every time,
// since what it reads is the same: of a variable, what it was before its update.
func (v *verifier) contents() error {
	r := &replay{verifier: v, held: make([]content, len(v.plan.Slots)),
		ran: make([]bool, v.graph.Len()), updated: make([]bool, v.graph.Len()),
		written: make([]written, len(v.plan.Slots)), sent: -1}
	for _, list := range [][]Binding{v.plan.Feeds, v.plan.Variables} {
		for _, b := range list {
			n := v.graph.Node(b.Node)
			r.held[b.Slot] = content{value: n.Value(0), bytes: n.Out[0].Bytes(), begun: true,
				flying: n.Shared != nil}
		}
	}
	for i := range v.plan.Steps {
		if err := v.plan.Steps[i].Do.replay(r, i); err != nil {
			return err
		}
	}
	for _, n := range v.graph.Nodes() {
		if v.live[n.ID] && n.Executes() && !r.ran[n.ID] {
			return v.fail(-1, n.Name, "never runs")
		}
	}
	if err := r.latest(); err != nil {
		return err
	}
	return r.fetched()
}

// latest demands that a variable that is updated is so where it is bound, and that the
// network has it if workers share it.
func (r *replay) latest() error {
	for _, b := range r.plan.Variables {
		if r.updated[b.Node] && !r.held[b.Slot].updated {
			return r.fail(-1, b.Name, "slot %d has the variable from before its update when the "+
				"step ends", b.Slot)
		}
		if shared := r.graph.Node(b.Node).Shared; shared != nil && r.updated[b.Node] &&
			!r.held[b.Slot].flying {
			return r.fail(-1, b.Name, "is updated and not sent when the step ends")
		}
	}
	return nil
}

type replay struct {
	*verifier
	held    []content    // by slot
	ran     []bool       // by node
	updated []bool       // by node: a variable, and its update has begun
	written []written    // by slot
	sent    graph.NodeID // the latest that was sent, or none
}

// write puts a content into a slot. The first one is what the slot says that it
// holds: the value by name, in its type or as so many bytes of it.
func (r *replay) write(step int, id SlotID, c content) error {
	s, old := &r.plan.Slots[id], &r.held[id]
	if !old.begun {
		t := c.value.Type()
		if !isNamed(c.value, s.Value) || !s.Type.Equal(t) && !isBytes(s.Type) {
			return r.fail(step, "", "slot %d says that it holds %s, %s: it is %d bytes of %s, %s",
				id, s.Value, s.Type, c.bytes, c.value, t)
		}
	}
	c.begun = true
	*old = c
	return nil
}

// isNamed reports whether a value has a name, making no string in most cases.
func isNamed(v graph.Value, name string) bool {
	if v.Index == 0 {
		return v.Node.Name == name
	}
	return v.String() == name
}

// isBytes reports whether a type is a number of bytes.
func isBytes(t graph.Type) bool { return t.DType == graph.U8 && t.Rank() == 1 }

// holds demands that a slot holds a value at a place.
func (r *replay) holds(step int, ref Ref, want graph.Value) error {
	root, off := want.Resolve()
	c := &r.held[ref.Slot]
	switch {
	case c.value != root || c.off+ref.Off != off || ref.Off+want.Type().Bytes() > c.bytes:
		return r.fail(step, "", "reads %s from slot %d, which holds %d bytes of %s from %d", want,
			ref.Slot, c.bytes, c.value, c.off)
	case c.flying:
		return r.fail(step, "", "reads %s, which the network has", want)
	case c.updated:
		return r.fail(step, "", "reads %s after its update", want)
	}
	return nil
}

// reads demands that a node's operands are in these places.
func (r *replay) reads(step int, n *graph.Node, in []Ref) error {
	for i, ref := range in {
		if err := r.holds(step, ref, n.In[i]); err != nil {
			return err
		}
	}
	return nil
}

// fetched demands that the plan's fetches are those that were asked for, in host
// memory at the end.
func (r *replay) fetched() error {
	if len(r.fetches) != len(r.plan.Fetches) {
		return r.fail(-1, "", "has %d fetches: want %d", len(r.plan.Fetches), len(r.fetches))
	}
	for i, f := range r.plan.Fetches {
		want := r.fetches[i]
		if !isNamed(want, f.Value) || !f.Type.Equal(want.Type()) {
			return r.fail(-1, f.Value, "fetch %d is %s: want %s, %s", i, f.Type, want, want.Type())
		}
		if f.Ref.Slot < 0 || int(f.Ref.Slot) >= len(r.plan.Slots) {
			return r.fail(-1, f.Value, "fetch %d has no slot", i)
		}
		s, c := &r.plan.Slots[f.Ref.Slot], &r.held[f.Ref.Slot]
		root, off := want.Resolve()
		switch {
		case s.Space != space.Host || s.To != max(0, len(r.plan.Steps)-1):
			return r.fail(-1, f.Value, "fetch %d is not in host memory when the step ends", i)
		case f.Ref.Off < 0 || f.Ref.Off > c.bytes-f.Type.Bytes() || c.value != root ||
			c.off+f.Ref.Off != off:
			return r.fail(-1, f.Value, "fetch %d is of slot %d, which holds %d bytes of %s from %d",
				i, f.Ref.Slot, c.bytes, c.value, c.off)
		}
	}
	return nil
}

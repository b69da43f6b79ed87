package plan

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/space"
)

// content is what a slot holds: bytes of a value, starting at an offset.
type content struct {
	value   graph.Value // the zero Value: nothing defined
	off     int64       // the slot's first byte is this byte of the value
	bytes   int64
	version int // variables: 1 after the update
}

// contents replays the steps symbolically and proves that every read sees the
// value that the graph says.
func (v *verifier) contents() error {
	r := &replay{v: v, slots: make([]content, len(v.plan.Slots)), ran: make([]bool, v.graph.Len()),
		version: make([]int, v.graph.Len())}
	if err := r.bind(); err != nil {
		return err
	}
	for i, s := range v.plan.Steps {
		var err error
		switch do := s.Do.(type) {
		case Copy:
			err = r.copy(i, do)
		case Launch:
			err = r.launch(i, do)
		}
		if err != nil {
			return err
		}
	}
	for _, n := range v.graph.Nodes() {
		if v.live[n.ID] && n.Executes() && !r.ran[n.ID] {
			return v.fail(-1, "%s never runs", n.Name)
		}
	}
	return v.fetched(r)
}

type replay struct {
	v       *verifier
	slots   []content
	ran     []bool
	version []int // of variables, by node
}

// bind fills the slots that hold leaves when the step starts.
func (r *replay) bind() error {
	for _, list := range [][]Binding{r.v.plan.Feeds, r.v.plan.Variables} {
		for _, b := range list {
			n := r.v.graph.Node(b.Node)
			s := r.v.plan.Slots[b.Slot]
			if n.Kind != graph.KindInput && !s.Fixed || n.Kind == graph.KindInput && s.From != 0 {
				return r.v.fail(-1, "the slot of %s is not there when the step starts", n.Name)
			}
			r.slots[b.Slot] = content{value: n.Value(0), bytes: n.Out[0].Bytes()}
		}
	}
	return nil
}

// holds demands that a slot holds a value at a place.
func (r *replay) holds(step int, ref Ref, want graph.Value, bytes int64) error {
	root, off := want.Resolve()
	c := r.slots[ref.Slot]
	switch {
	case c.value != root || c.off+ref.Off != off || ref.Off+bytes > c.bytes:
		return r.v.fail(step, "reads %s from slot %d, which holds %d bytes of %s from %d", want,
			ref.Slot, c.bytes, c.value, c.off)
	case c.version != 0:
		return r.v.fail(step, "reads %s after its update", want)
	}
	return nil
}

func (r *replay) copy(step int, do Copy) error {
	src := r.slots[do.Src.Slot]
	dst := r.v.plan.Slots[do.Dst.Slot]
	switch {
	case !src.value.Valid() || do.Src.Off+do.Bytes > src.bytes:
		return r.v.fail(step, "copies undefined bytes of slot %d", do.Src.Slot)
	case do.Dst.Off != 0 || dst.Fixed:
		return r.v.fail(step, "copies into the middle of a slot or over a variable")
	case r.v.plan.Slots[do.Src.Slot].Space == dst.Space:
		return r.v.fail(step, "copies within a space")
	}
	r.slots[do.Dst.Slot] = content{value: src.value, off: src.off + do.Src.Off, bytes: do.Bytes,
		version: src.version}
	return nil
}

func (r *replay) launch(step int, do Launch) error {
	n := r.v.graph.Node(r.v.plan.Steps[step].Node)
	if !r.v.live[n.ID] || r.ran[n.ID] || !n.Executes() {
		return r.v.fail(step, "runs a node that is dead or has run")
	}
	for i, ref := range do.In {
		if err := r.holds(step, ref, n.In[i], n.In[i].Type().Bytes()); err != nil {
			return err
		}
	}
	if err := r.inPlace(step, n, do); err != nil {
		return err
	}
	r.ran[n.ID] = true
	for i, ref := range do.Out {
		if ref.Off != 0 {
			return r.v.fail(step, "writes into the middle of slot %d", ref.Slot)
		}
		r.slots[ref.Slot] = content{value: n.Value(i), bytes: n.Out[i].Bytes()}
	}
	if do.Scratch != NoSlot {
		r.slots[do.Scratch] = content{}
	}
	return r.update(step, n, do)
}

// inPlace demands that a launch writes no slot that it reads, except where the
// operation allows it, and writes no slot twice.
func (r *replay) inPlace(step int, n *graph.Node, do Launch) error {
	written := map[SlotID]bool{}
	if do.Scratch != NoSlot {
		written[do.Scratch] = true
	}
	for i, out := range do.Out {
		if written[out.Slot] {
			return r.v.fail(step, "writes slot %d twice", out.Slot)
		}
		written[out.Slot] = true
		if r.v.plan.Slots[out.Slot].Fixed {
			return r.v.fail(step, "writes a result over a variable")
		}
		for k, in := range do.In {
			if in.Slot == out.Slot && (i != 0 || in != out || !mayReplace(n, k)) {
				return r.v.fail(step, "writes result %d over operand %d", i, k)
			}
		}
	}
	for _, in := range do.In {
		if do.Scratch != NoSlot && in.Slot == do.Scratch {
			return r.v.fail(step, "uses an operand's slot as scratch")
		}
	}
	return nil
}

// mayReplace reports whether result 0 of a node may have operand k's bytes.
func mayReplace(n *graph.Node, k int) bool {
	op, ok := n.Op.(graph.InPlacer)
	if !ok {
		return false
	}
	for _, j := range op.InPlace(n.InTypes(), n.Out) {
		if n.In[j] == n.In[k] && n.In[k].Type().Bytes() == n.Out[0].Bytes() {
			return true
		}
	}
	return false
}

// update moves the variables that a node writes to their next version. They
// must be written where they live, and every reader must have run.
func (r *replay) update(step int, n *graph.Node, do Launch) error {
	for i, v := range n.In[:n.Mutates] {
		if !r.v.plan.Slots[do.In[i].Slot].Fixed {
			return r.v.fail(step, "updates a copy of %s", v)
		}
		r.slots[do.In[i].Slot].version++
		r.version[v.Node.ID]++
	}
	for i, v := range n.In {
		root, _ := v.Resolve()
		if r.version[root.Node.ID] > 0 && i >= n.Mutates {
			return r.v.fail(step, "reads %s while or after it is updated", v)
		}
	}
	return nil
}

// fetched demands that the fetched values are in the host space at the end.
func (v *verifier) fetched(r *replay) error {
	for _, f := range v.plan.Fetches {
		if int(f.Ref.Slot) >= len(v.plan.Slots) || f.Ref.Slot < 0 {
			return v.fail(-1, "fetch %s has no slot", f.Value)
		}
		s, c := v.plan.Slots[f.Ref.Slot], r.slots[f.Ref.Slot]
		if s.Space != space.Host || s.To != len(v.plan.Steps)-1 {
			return v.fail(-1, "fetch %s is not in host memory when the step ends", f.Value)
		}
		if !c.value.Valid() || f.Ref.Off+f.Type.Bytes() > c.bytes {
			return v.fail(-1, "fetch %s is not defined", f.Value)
		}
	}
	v.held = r.slots
	return nil
}

// results demands that the plan's fetches are those that were asked for.
func (v *verifier) results(fetches []graph.Value) error {
	if len(fetches) != len(v.plan.Fetches) {
		return v.fail(-1, "has %d fetches of %d", len(v.plan.Fetches), len(fetches))
	}
	for i, f := range v.plan.Fetches {
		root, off := fetches[i].Resolve()
		c := v.held[f.Ref.Slot]
		if c.value != root || c.off+f.Ref.Off != off || !f.Type.Equal(fetches[i].Type()) {
			return v.fail(-1, "fetch %d is %s, want %s", i, f.Value, fetches[i])
		}
	}
	return nil
}

package plan

import (
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/space"
)

// content is what a slot holds: bytes of a value, starting at an offset.
type content struct {
	value   graph.Value // the zero Value: nothing defined
	off     int64       // the slot's first byte is this byte of the value
	bytes   int64
	updated bool // a variable, after its update
	begun   bool // the slot has held something: what it says of its value is proved
}

// contents replays the steps symbolically and proves that every read sees the
// value that the graph says. A pure operation makes the same value every time,
// since what it reads is the same: of a variable, what it was before its update.
func (v *verifier) contents() error {
	r := &replay{verifier: v, held: make([]content, len(v.plan.Slots)),
		ran: make([]bool, v.graph.Len()), updated: make([]bool, v.graph.Len()),
		written: make([]written, len(v.plan.Slots))}
	for _, list := range [][]Binding{v.plan.Feeds, v.plan.Variables} {
		for _, b := range list {
			n := v.graph.Node(b.Node)
			r.held[b.Slot] = content{value: n.Value(0), bytes: n.Out[0].Bytes(), begun: true}
		}
	}
	for i := range v.plan.Steps {
		var err error
		switch do := v.plan.Steps[i].Do.(type) {
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
			return v.fail(-1, n.Name, "never runs")
		}
	}
	if err := r.latest(); err != nil {
		return err
	}
	return r.fetched()
}

// latest demands that a variable that is updated is so where it is bound.
func (r *replay) latest() error {
	for _, b := range r.plan.Variables {
		if r.updated[b.Node] && !r.held[b.Slot].updated {
			return r.fail(-1, b.Name, "slot %d has the variable from before its update when the "+
				"step ends", b.Slot)
		}
	}
	return nil
}

type replay struct {
	*verifier
	held    []content // by slot
	ran     []bool    // by node
	updated []bool    // by node: a variable, and its update has begun
	written []written // by slot
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
	case c.updated:
		return r.fail(step, "", "reads %s after its update", want)
	}
	return nil
}

func (r *replay) copy(step int, do Copy) error {
	src := r.held[do.Src.Slot]
	if !src.value.Valid() || do.Src.Off+do.Bytes > src.bytes {
		return r.fail(step, "", "copies undefined bytes of slot %d", do.Src.Slot)
	}
	n := src.value.Node
	if n.ID != r.plan.Steps[step].Node || !fits(do.Why, n.Kind, r.inwards(do)) {
		return r.fail(step, "", "copies %s as %s", src.value, do.Why)
	}
	if do.Why == WriteBack && !src.updated {
		return r.fail(step, "", "writes %s back before its update", src.value)
	}
	if old := r.held[do.Dst.Slot].value; r.plan.Slots[do.Dst.Slot].Fixed && old != src.value {
		return r.fail(step, "", "writes %s over %s", src.value, old)
	}
	src.off, src.bytes = src.off+do.Src.Off, do.Bytes
	return r.write(step, do.Dst.Slot, src)
}

// inwards reports whether a copy goes to a space that is nearer to the kernels.
func (r *replay) inwards(do Copy) bool {
	return r.plan.Slots[do.Dst.Slot].Space < r.plan.Slots[do.Src.Slot].Space
}

// fits reports whether a value of a kind of node is copied inwards or outwards for
// a reason.
func fits(why Why, k graph.Kind, inwards bool) bool {
	switch why {
	case Feed:
		return k == graph.KindInput && inwards
	case Stage:
		return (k == graph.KindVariable || k == graph.KindConstant) && inwards
	case SwapIn:
		return k == graph.KindCompute && inwards
	case WriteBack:
		return k == graph.KindVariable && !inwards
	default:
		return k == graph.KindCompute && !inwards
	}
}

func (r *replay) launch(step int, do Launch) error {
	n := r.graph.Node(r.plan.Steps[step].Node)
	switch {
	case !r.live[n.ID]:
		return r.fail(step, "", "runs a dead node")
	case r.ran[n.ID] && n.Kind != graph.KindCompute:
		return r.fail(step, "", "runs an update twice")
	}
	r.ran[n.ID] = true
	for i, ref := range do.In {
		if err := r.holds(step, ref, n.In[i]); err != nil {
			return err
		}
	}
	if err := r.apart(step, n, do); err != nil {
		return err
	}
	for i, ref := range do.Out {
		if err := r.write(step, ref.Slot, content{value: n.Value(i),
			bytes: n.Out[i].Bytes()}); err != nil {
			return err
		}
	}
	if do.Scratch != NoSlot {
		if err := r.scribble(step, n, do.Scratch); err != nil {
			return err
		}
	}
	return r.update(step, n, do)
}

// scribble leaves nothing defined in the slot of a node's scratch.
func (r *replay) scribble(step int, n *graph.Node, id SlotID) error {
	s := &r.plan.Slots[id]
	name, ok := strings.CutPrefix(s.Value, "scratch of ")
	if !r.held[id].begun && (!ok || name != n.Name || !isBytes(s.Type)) {
		return r.fail(step, "", "slot %d says that it holds %s, %s: it is scratch", id, s.Value,
			s.Type)
	}
	r.held[id] = content{begun: true}
	return nil
}

// apart demands that a launch writes no slot that it reads, except where the
// operation allows it, and writes no slot twice.
func (r *replay) apart(step int, n *graph.Node, do Launch) error {
	for i, out := range do.Out {
		w := &r.written[out.Slot]
		switch {
		case out.Slot == do.Scratch:
			return r.fail(step, "", "writes result %d into its scratch", i)
		case w.steps == step+1:
			return r.fail(step, "", "writes results %d and %d into slot %d", w.result, i, out.Slot)
		}
		*w = written{step + 1, i}
	}
	shared := 0
	for k, in := range do.In {
		w := r.written[in.Slot]
		switch {
		case in.Slot == do.Scratch:
			return r.fail(step, "", "has operand %d as scratch", k)
		case w.steps != step+1:
			continue
		}
		if shared++; w.result != 0 || in != do.Out[0] || shared > 1 || !mayReplace(n, k) {
			return r.fail(step, "", "writes result %d over operand %d", w.result, k)
		}
	}
	return nil
}

// written is the latest result in a slot, and the number of steps up to its own.
type written struct{ steps, result int }

// mayReplace reports whether result 0 of a node may have operand k's bytes, if
// no other operand has any of them.
func mayReplace(n *graph.Node, k int) bool {
	op, ok := n.Op.(graph.InPlacer)
	return ok && slices.Contains(op.InPlace(n.InTypes(), n.Out), k)
}

// update notes that a node writes variables, where they are bound or in copies. It
// must read none of them beside.
func (r *replay) update(step int, n *graph.Node, do Launch) error {
	for i, v := range n.In[:n.Mutates] {
		r.held[do.In[i].Slot].updated = true
		r.updated[v.Node.ID] = true
	}
	for _, v := range n.In[n.Mutates:] {
		if root, _ := v.Resolve(); slices.Contains(n.In[:n.Mutates], root) {
			return r.fail(step, "", "reads %s while it is updated", v)
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

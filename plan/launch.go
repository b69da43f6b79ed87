package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Launch runs a node's operation. In and Out are in the node's order; their
// types are the node's. If Out[0] equals one of In, the operation works in
// place and that operand is gone. An update writes a variable in the slot that
// it is bound to, or in a whole copy of it, which is then written back.
type Launch struct {
	Op      string
	In, Out []Ref
	Scratch SlotID
	Mutates int // In[:Mutates] are variables that an update writes
	// Library is what computes it on the device, where that is not the device's own kernels:
	// "cudnn". It is the node's.
	Library string
}

// What is the operation's name.
func (do Launch) What() string { return do.Op }

// Moves is of no bytes.
func (Launch) Moves() (int64, bool) { return 0, false }

// Launches is the number of steps that run an operation.
func (p *Plan) Launches() int {
	n := 0
	for _, s := range p.Steps {
		if _, ok := s.Do.(Launch); ok {
			n++
		}
	}
	return n
}

func (do Launch) each(f func(slot SlotID, write bool)) {
	for i, r := range do.In {
		f(r.Slot, i < do.Mutates)
	}
	for _, r := range do.Out {
		f(r.Slot, true)
	}
	if do.Scratch != NoSlot {
		f(do.Scratch, true)
	}
}

func (do Launch) print(b *strings.Builder) {
	fmt.Fprintf(b, "launch %s%s <-%s", do.Op, refs(do.Out), refs(do.In))
	if do.Scratch != NoSlot {
		fmt.Fprintf(b, " scratch %d", do.Scratch)
	}
	if do.Mutates > 0 {
		fmt.Fprintf(b, " mutates %d", do.Mutates)
	}
	if do.Library != "" {
		fmt.Fprintf(b, " by %s", do.Library)
	}
}

func parseLaunch(p *parser) Action {
	l := Launch{Op: p.word(), Scratch: NoSlot}
	for p.err == nil && !p.accept("<-") {
		l.Out = append(l.Out, p.ref(p.word()))
	}
	l.In = p.refs()
	if p.accept("scratch") {
		l.Scratch = SlotID(p.integer(""))
	}
	if p.accept("mutates") {
		l.Mutates = p.integer("")
	}
	if p.accept("by") {
		l.Library = p.word()
	}
	return l
}

// verify proves that a launch is of its node, with operands that the engine
// reaches.
func (do Launch) verify(v *verifier, i int, n *graph.Node, engine space.Engine) error {
	switch {
	case engine.Copies():
		return v.fail(i, "", "runs an operation on a stream that %s",
			engine.Name(v.plan.SpaceName))
	case !n.Executes() || do.Op != n.OpName() || do.Mutates != n.Mutates ||
		len(do.In) != len(n.In) || len(do.Out) != len(n.Out):
		return v.fail(i, "", "is %s of %d operands, %d of them written, and %d results: "+
			"the node is %s of %d, %d and %d", do.Op, len(do.In), do.Mutates, len(do.Out),
			n.OpName(), len(n.In), n.Mutates, len(n.Out))
	case n.Exchanges():
		return v.fail(i, "", "runs %s as an operation: it is an exchange", do.Op)
	}
	if err := do.computedBy(v, i, n, engine); err != nil {
		return err
	}
	if err := v.operands(i, n, do.In, engine); err != nil {
		return err
	}
	for k, r := range do.Out {
		if err := v.whole(i, r, n.Out[k].Bytes(), engine.Writes(), false); err != nil {
			return err
		}
		if err := v.aligned(i, r, n.Out[k], "result", k); err != nil {
			return err
		}
	}
	need := n.Cost().Scratch
	if need == 0 && do.Scratch == NoSlot {
		return nil
	}
	if need == 0 {
		return v.fail(i, "", "has scratch that the operation does not use")
	}
	return v.whole(i, Ref{Slot: do.Scratch}, need, engine.Writes(), false)
}

// computedBy proves that what computes a launch is what computes the node there.
func (do Launch) computedBy(v *verifier, i int, n *graph.Node, engine space.Engine) error {
	own := func(library string) string { return cmp.Or(library, "the engine's own kernels") }
	want := ""
	if engine == space.Compute {
		want = n.Library()
	}
	if do.Library != want {
		return v.fail(i, "", "is computed by %s: the node is by %s", own(do.Library), own(want))
	}
	return nil
}

// operands proves that a node's operands are where the engine reads them.
func (v *verifier) operands(i int, n *graph.Node, in []Ref, engine space.Engine) error {
	for k, r := range in {
		t := n.In[k].Type()
		if err := v.place(i, r, t.Bytes(), engine.Reads()); err != nil {
			return err
		}
		if err := v.aligned(i, r, t, "operand", k); err != nil {
			return err
		}
	}
	return nil
}

func (do Launch) replay(r *replay, step int) error {
	n := r.graph.Node(r.plan.Steps[step].Node)
	switch {
	case !r.live[n.ID]:
		return r.fail(step, "", "runs a dead node")
	case r.ran[n.ID] && n.Kind != graph.KindCompute:
		return r.fail(step, "", "runs an update twice")
	}
	r.ran[n.ID] = true
	if err := r.reads(step, n, do.In); err != nil {
		return err
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

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Send hands the bytes of a slot in host memory to the network, which has them until
// the [Await] of the same value is done. In is the node's operands: what is sent, and
// perhaps the count by which the exchange happens. If Out equals In[0], the network has
// the operand's own bytes; or else they are first copied to where Out begins. Bytes are
// those of Out: of a [graph.Gather] more than what is sent.
type Send struct {
	In    []Ref
	Out   Ref
	Bytes int64
	How   graph.How
}

// What is "send".
func (Send) What() string { return "send" }

// Moves is of what is sent.
func (do Send) Moves() (int64, bool) { return do.Bytes, true }

func (do Send) each(f func(slot SlotID, write bool)) {
	for _, r := range do.In {
		f(r.Slot, false)
	}
	f(do.Out.Slot, true)
}

func (do Send) print(b *strings.Builder) {
	fmt.Fprintf(b, "send %s %d %s <-%s", do.Out, do.Bytes, do.How, refs(do.In))
}

func parseSend(p *parser) Action {
	s := Send{Out: p.ref(p.word())}
	s.Bytes = p.long()
	s.How = p.how()
	p.expect("<-")
	s.In = p.refs()
	return s
}

// how reads how values are exchanged.
func (p *parser) how() graph.How {
	h, err := graph.ParseHow(p.word())
	if err != nil {
		p.fail("%v", err)
	}
	return h
}

// verify proves that a send is of its node, on the one stream that sends.
func (do Send) verify(v *verifier, i int, n *graph.Node, engine space.Engine) error {
	x, ok := n.Sends()
	switch {
	case engine != space.Send:
		return v.fail(i, "", "sends on a stream that %s", engine.Name(v.plan.SpaceName))
	case n.Shared != nil:
		return do.verifyShared(v, i, n)
	case !ok || do.How != x.How || len(do.In) != len(n.In):
		return v.fail(i, "", "sends %d operands for their %s: the node is %s of %d, for their %s",
			len(do.In), do.How, n.OpName(), len(n.In), x.How)
	case do.Bytes != n.Out[0].Bytes():
		return v.fail(i, "", "sends %d bytes of %s", do.Bytes, n.Out[0])
	}
	if err := v.operands(i, n, do.In, engine); err != nil {
		return err
	}
	if err := v.whole(i, do.Out, do.Bytes, engine.Reads(), false); err != nil {
		return err
	}
	return v.aligned(i, do.Out, n.Out[0], "result", 0)
}

// verifyShared proves that a send is of a variable that workers share, where it is bound.
func (do Send) verifyShared(v *verifier, i int, n *graph.Node) error {
	if len(do.In) != 1 || do.In[0] != do.Out || do.How != *n.Shared ||
		do.Bytes != n.Out[0].Bytes() {
		return v.fail(i, "", "sends %d bytes for their %s: the variable is %s, for their %s",
			do.Bytes, do.How, n.Out[0], n.Shared)
	}
	return v.home(i, do.Out, do.Bytes)
}

// home proves that an exchange is of all of the slot of a variable.
func (v *verifier) home(i int, at Ref, bytes int64) error {
	if err := v.whole(i, at, bytes, space.Host, true); err != nil {
		return err
	}
	if s := &v.plan.Slots[at.Slot]; !s.Fixed {
		return v.fail(i, "", "exchanges slot %d (%s), which is no variable's", at.Slot, s.Value)
	}
	return nil
}

// replay proves, beside what it does of a launch, that sends are in the graph's order,
// which is the same on all workers: so none can wait for what another sends later.
func (do Send) replay(r *replay, step int) error {
	n := r.graph.Node(r.plan.Steps[step].Node)
	if n.Shared != nil {
		return do.share(r, step, n)
	}
	if err := r.inOrder(step, n); err != nil {
		return err
	}
	if err := r.reads(step, n, do.In); err != nil {
		return err
	}
	if k := slices.IndexFunc(do.In, func(in Ref) bool { return in.Slot == do.Out.Slot }); k > 0 ||
		k == 0 && (do.In[0] != do.Out || do.touches(1)) {
		return r.fail(step, "", "gives the network the bytes of operand %d", k)
	}
	return r.write(step, do.Out.Slot, content{value: n.Value(0), bytes: do.Bytes, flying: true})
}

// inOrder proves that a node gives an exchange its value once, and after all that come before it in
// the graph.
func (r *replay) inOrder(step int, n *graph.Node) error {
	switch {
	case !r.live[n.ID]:
		return r.fail(step, "", "runs a dead node")
	case r.ran[n.ID]:
		return r.fail(step, "", "sends twice")
	case r.sent > n.ID:
		return r.fail(step, "", "sends after %s, which comes later in the graph",
			r.graph.Node(r.sent%graph.NodeID(r.graph.Len())).Name)
	}
	r.ran[n.ID], r.sent = true, n.ID
	return nil
}

// share gives the network a variable after its update. Those come after all other sends,
// in the graph's order too.
func (do Send) share(r *replay, step int, n *graph.Node) error {
	c := &r.held[do.Out.Slot]
	place := n.ID + graph.NodeID(r.graph.Len())
	switch {
	case c.value != n.Value(0) || c.flying || !c.updated:
		return r.fail(step, "", "sends %s, which is not updated in slot %d", n.Name, do.Out.Slot)
	case r.sent >= place:
		return r.fail(step, "", "sends after %s, which comes later in the graph",
			r.graph.Node(r.sent-graph.NodeID(r.graph.Len())).Name)
	}
	r.sent, c.flying = place, true
	return nil
}

// touches reports whether an operand from one on is in the slot that is sent.
func (do Send) touches(from int) bool {
	return slices.ContainsFunc(do.In[from:], func(in Ref) bool { return in.Slot == do.Out.Slot })
}

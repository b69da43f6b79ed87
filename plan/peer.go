package plan

import (
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Peer is an exchange between devices: the others copy what In has from where it is, and Out has
// what comes of all. It is done when nobody needs either any more. In is the node's one operand,
// and Bytes are those of Out: of a [graph.Gather] more than the operand's.
type Peer struct {
	In    []Ref
	Out   Ref
	Bytes int64
	How   graph.How
}

// What is "peer".
func (Peer) What() string { return "peer" }

// Moves is of what comes.
func (do Peer) Moves() (int64, bool) { return do.Bytes, true }

func (do Peer) each(f func(slot SlotID, write bool)) { Send(do).each(f) }

func (do Peer) print(b *strings.Builder) {
	fmt.Fprintf(b, "peer %s %d %s <-%s", do.Out, do.Bytes, do.How, refs(do.In))
}

func parsePeer(p *parser) Action { return Peer(parseSend(p).(Send)) }

// verify proves that an exchange is of its node, on the one stream of them, of which both the
// operand and the result are in the device's memory.
func (do Peer) verify(v *verifier, i int, n *graph.Node, engine space.Engine) error {
	x, ok := n.Peers()
	switch {
	case engine != space.Peer:
		return v.fail(i, "", "exchanges between devices on a stream that %s",
			engine.Name(v.plan.SpaceName))
	case !ok || do.How != x.How || len(do.In) != len(n.In):
		return v.fail(i, "", "exchanges %d operands between devices for their %s: the node is %s "+
			"of %d, for their %s", len(do.In), do.How, n.OpName(), len(n.In), x.How)
	case do.Bytes != n.Out[0].Bytes():
		return v.fail(i, "", "exchanges %d bytes of %s", do.Bytes, n.Out[0])
	}
	if err := v.operands(i, n, do.In, space.Compute); err != nil {
		return err
	}
	if err := v.whole(i, do.Out, do.Bytes, engine.Writes(), false); err != nil {
		return err
	}
	return v.aligned(i, do.Out, n.Out[0], "result", 0)
}

// replay proves, beside what it does of a launch, that exchanges and sends are in the graph's
// order: see [Send].
func (do Peer) replay(r *replay, step int) error {
	n := r.graph.Node(r.plan.Steps[step].Node)
	if err := r.inOrder(step, n); err != nil {
		return err
	}
	if err := r.reads(step, n, do.In); err != nil {
		return err
	}
	if do.In[0].Slot == do.Out.Slot {
		return r.fail(step, "", "writes over what the others copy")
	}
	return r.write(step, do.Out.Slot, content{value: n.Value(0), bytes: do.Bytes})
}

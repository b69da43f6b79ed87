package plan

import (
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Await waits until the network is done with the bytes of a slot that a [Send] gave it.
// They are then what the exchange has made of them, in the same place: all of them, or, of
// a [graph.Scatter], the first Bytes.
type Await struct {
	At    Ref
	Bytes int64
}

// What is "await".
func (Await) What() string { return "await" }

// Moves is of what has come.
func (do Await) Moves() (int64, bool) { return do.Bytes, true }

func (do Await) each(f func(slot SlotID, write bool)) { f(do.At.Slot, true) }

func (do Await) print(b *strings.Builder) { fmt.Fprintf(b, "await %s %d", do.At, do.Bytes) }

func parseAwait(p *parser) Action { return Await{At: p.ref(p.word()), Bytes: p.long()} }

// verify proves that an await is of its node, on a stream that awaits.
func (do Await) verify(v *verifier, i int, n *graph.Node, engine space.Engine) error {
	switch {
	case engine != space.Await:
		return v.fail(i, "", "awaits on a stream that %s", engine.Name(v.plan.SpaceName))
	case n.Shared != nil && do.Bytes == n.Out[0].Bytes():
		return v.home(i, do.At, do.Bytes)
	case n.Shared == nil && !n.Awaits():
		return v.fail(i, "", "awaits: the node is %s", n.OpName())
	case do.Bytes != n.Out[0].Bytes():
		return v.fail(i, "", "awaits %d bytes of %s", do.Bytes, n.Out[0])
	}
	return v.whole(i, do.At, n.In[0].Type().Bytes(), engine.Writes(), false)
}

// replay proves that the slot has what the node's operand has sent.
func (do Await) replay(r *replay, step int) error {
	n := r.graph.Node(r.plan.Steps[step].Node)
	c := &r.held[do.At.Slot]
	switch {
	case n.Shared != nil && (!c.flying || c.value != n.Value(0) || c.updated):
		return r.fail(step, "", "awaits %s in slot %d, which holds %s", n.Name, do.At.Slot, c.value)
	case n.Shared != nil:
		c.flying = false
		return nil
	case !r.live[n.ID]:
		return r.fail(step, "", "runs a dead node")
	case !c.flying || c.value != n.In[0]:
		return r.fail(step, "", "awaits %s in slot %d, which holds %s", n.In[0], do.At.Slot,
			c.value)
	}
	r.ran[n.ID] = true
	return r.write(step, do.At.Slot, content{value: n.Value(0), bytes: do.Bytes})
}

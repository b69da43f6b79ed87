package plan

import (
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Copy moves bytes between spaces.
type Copy struct {
	Src, Dst Ref
	Bytes    int64
	Why      space.Reason
	// Idle is the number of operations during which the value is not needed;
	// zero where that is not the reason of the copy.
	Idle int
}

// What is the reason.
func (do Copy) What() string { return do.Why.String() }

// Moves is of what is copied.
func (do Copy) Moves() (int64, bool) { return do.Bytes, true }

// Traffic is the number of bytes copied in one step, by reason.
type Traffic [space.Reasons]int64

// Traffic adds up the copies.
func (p *Plan) Traffic() Traffic {
	var t Traffic
	for _, s := range p.Steps {
		if c, ok := s.Do.(Copy); ok {
			t[c.Why] += c.Bytes
		}
	}
	return t
}

// Copied is the number of bytes that an engine copies in one step.
func (p *Plan) Copied(e space.Engine) int64 {
	var bytes int64
	for _, s := range p.Steps {
		if c, ok := s.Do.(Copy); ok && p.Streams[s.Stream].Engine == e {
			bytes += c.Bytes
		}
	}
	return bytes
}

// In is the number of bytes copied towards the device, from space to space.
func (t Traffic) In() int64 { return t[space.SwapIn] + t[space.Stage] + t[space.Feed] }

// Out is the number of bytes copied away from the device, from space to space.
func (t Traffic) Out() int64 {
	return t[space.SwapOut] + t[space.Gradient] + t[space.Result] + t[space.WriteBack]
}

func (do Copy) each(f func(slot SlotID, write bool)) {
	f(do.Src.Slot, false)
	f(do.Dst.Slot, true)
}

func (do Copy) print(b *strings.Builder) {
	fmt.Fprintf(b, "copy %s <- %s %d %s", do.Dst, do.Src, do.Bytes, do.Why)
	if do.Idle > 0 {
		fmt.Fprintf(b, " idle %d", do.Idle)
	}
}

func parseCopy(p *parser) Action {
	c := Copy{Dst: p.ref(p.word())}
	p.expect("<-")
	c.Src = p.ref(p.word())
	c.Bytes = p.long()
	c.Why = p.reason()
	if p.accept("idle") {
		c.Idle = p.integer("")
	}
	return c
}

// verify proves that a copy fills a slot of its engine's direction.
func (do Copy) verify(v *verifier, i int, _ *graph.Node, engine space.Engine) error {
	switch {
	case !engine.Copies():
		return v.fail(i, "", "copies on a stream that %s", engine.Name(v.plan.SpaceName))
	case do.Why >= space.Reasons || do.Idle < 0:
		return v.fail(i, "", "copies for reason %d, idle %d", do.Why, do.Idle)
	}
	if err := v.place(i, do.Src, do.Bytes, engine.Reads()); err != nil {
		return err
	}
	return v.whole(i, do.Dst, do.Bytes, engine.Writes(), do.Why == space.WriteBack)
}

func (do Copy) replay(r *replay, step int) error {
	src := r.held[do.Src.Slot]
	if !src.value.Valid() || do.Src.Off+do.Bytes > src.bytes {
		return r.fail(step, "", "copies undefined bytes of slot %d", do.Src.Slot)
	}
	n := src.value.Node
	if n.ID != r.plan.Steps[step].Node || !fits(do.Why, n.Kind, r.inwards(do)) {
		return r.fail(step, "", "copies %s as %s", src.value, do.Why)
	}
	if src.flying {
		return r.fail(step, "", "copies %s, which the network has", src.value)
	}
	if old := r.held[do.Dst.Slot]; old.flying {
		return r.fail(step, "", "writes over %s, which the network has", old.value)
	}
	if do.Why == space.WriteBack && !src.updated {
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
func fits(why space.Reason, k graph.Kind, inwards bool) bool {
	switch why {
	case space.Feed:
		return k == graph.KindInput && inwards
	case space.Stage:
		return (k == graph.KindVariable || k == graph.KindConstant) && inwards
	case space.SwapIn:
		return k == graph.KindCompute && inwards
	case space.WriteBack:
		return k == graph.KindVariable && !inwards
	default:
		return k == graph.KindCompute && !inwards
	}
}

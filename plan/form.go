package plan

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// maxStreams is how many streams a StreamID can number.
const maxStreams = math.MaxUint8 + 1

// header proves that the plan is for this graph, and that its memories and engines
// are some.
func (v *verifier) header() error {
	p := v.plan
	switch {
	case p.Digest != v.graph.Digest():
		return v.fail(-1, "", "is for another graph, %q: this one is %q", p.Digest,
			v.graph.Digest())
	case len(p.Spaces) <= int(space.Host) || len(p.Spaces) > maxSpaces:
		return v.fail(-1, "", "has %d spaces: want 2 to %d", len(p.Spaces), maxSpaces)
	case p.Window < 0:
		return v.fail(-1, "", "has %d partitions in flight", p.Window)
	case p.Parts < 0 || p.Parts > v.graph.Len():
		return v.fail(-1, "", "has %d partitions, of a graph of %d nodes", p.Parts, v.graph.Len())
	case len(p.Streams) > maxStreams:
		return v.fail(-1, "", "has %d streams: want %d at most", len(p.Streams), maxStreams)
	}
	if err := v.spaces(); err != nil {
		return err
	}
	return v.streams()
}

// spaces proves that there are a device and a host, and that all spaces have names
// and alignments.
func (v *verifier) spaces() error {
	names := map[string]bool{}
	wide := v.graph.Align() > space.Line // what is less only takes longer
	for i, s := range v.plan.Spaces {
		id := space.ID(i)
		switch {
		case id <= space.Host && s.Name != id.String():
			return v.fail(-1, s.Name, "space %d is called %s", i, id)
		case names[s.Name]:
			return v.fail(-1, s.Name, "two spaces have this name")
		case s.Name == space.Network.String():
			return v.fail(-1, s.Name, "space %d has the name of what is no memory", i)
		case s.Align < 1:
			return v.fail(-1, s.Name, "slots are aligned to %d bytes", s.Align)
		case wide && s.Align%int64(v.graph.Align()) != 0:
			return v.fail(-1, s.Name, "slots are aligned to %d bytes, and what computes the "+
				"graph needs %d", s.Align, v.graph.Align())
		}
		names[s.Name] = true
	}
	return nil
}

// streams proves that streams have names, and engines that reach spaces of the plan or
// carry exchanges, which one stream sends, and one has between devices.
func (v *verifier) streams() error {
	names, given := map[string]bool{}, map[space.Engine]bool{}
	for _, s := range v.plan.Streams {
		gives := s.Engine == space.Send || s.Engine == space.Peer
		if gives && given[s.Engine] {
			return v.fail(-1, s.Name, "it is the second stream that %s", s.Engine)
		}
		given[s.Engine] = true
		exchanges := gives || s.Engine == space.Await
		far := max(s.Engine.Reads(), s.Engine.Writes())
		if !exchanges && int(far) >= len(v.plan.Spaces) {
			return v.fail(-1, s.Name, "the stream reaches space %d of %d", far, len(v.plan.Spaces))
		}
		if names[s.Name] {
			return v.fail(-1, s.Name, "two streams have this name")
		}
		names[s.Name] = true
	}
	return nil
}

// slots proves that every slot is a range of addresses and of steps. What it
// says of its value is proved where that is written.
func (v *verifier) slots() error {
	steps := max(1, len(v.plan.Steps))
	for i := range v.plan.Slots {
		s := &v.plan.Slots[i]
		bad := ""
		switch {
		case int(s.Space) >= len(v.plan.Spaces):
			bad = "is in no space"
		case s.Off < 0 || s.Bytes < 0 || s.Off > math.MaxInt64-s.Bytes:
			bad = "is out of range"
		case s.Off%v.plan.Spaces[s.Space].Align != 0:
			bad = "is not aligned"
		case s.Type.Check() != nil || s.Type.Bytes() != s.Bytes:
			bad = "is not as large as its type"
		case s.From < 0 || s.To < s.From || s.To >= steps:
			bad = "has no life"
		case s.Fixed && (s.From != 0 || s.To != steps-1):
			bad = "is fixed and not live throughout"
		default:
			continue
		}
		return v.fail(-1, s.Value, "slot %d %s: %d bytes of %s at %d in %s, live from step %d "+
			"to %d", i, bad, s.Bytes, s.Type, s.Off, v.plan.SpaceName(s.Space), s.From, s.To)
	}
	return nil
}

// steps proves that every step does something to slots that are there, with an
// engine that can do it to them.
func (v *verifier) steps() error {
	v.used = make([]bool, len(v.plan.Slots))
	part := 0
	for i := range v.plan.Steps {
		s := &v.plan.Steps[i]
		if err := v.step(i, s); err != nil {
			return err
		}
		if s.Part < part {
			return v.fail(i, "", "is of partition %d after a step of partition %d", s.Part, part)
		}
		part = s.Part
	}
	return nil
}

func (v *verifier) step(i int, s *Step) error {
	if s.Node < 0 || int(s.Node) >= v.graph.Len() || int(s.Stream) >= len(v.plan.Streams) ||
		s.Part < 0 || s.Part >= v.plan.Parts {
		return v.fail(i, "", "node %d, stream %d or partition %d is out of range", s.Node, s.Stream,
			s.Part)
	}
	n := v.graph.Node(s.Node)
	if s.Name != n.Name {
		return v.fail(i, "", "is of node %d, which is called %s", s.Node, n.Name)
	}
	for k, w := range s.Wait {
		switch {
		case w < 0 || w >= i:
			return v.fail(i, "", "waits for step %d, which is not earlier", w)
		case k > 0 && w <= s.Wait[k-1]:
			return v.fail(i, "", "waits for step %d after step %d", w, s.Wait[k-1])
		case v.plan.Steps[w].Stream == s.Stream:
			return v.fail(i, "", "waits for step %d of its own stream", w)
		}
	}
	if s.Do == nil {
		return v.fail(i, "", "does nothing")
	}
	return s.Do.verify(v, i, n, v.plan.Streams[s.Stream].Engine)
}

// aligned proves that a value is where its elements can be read one by one.
func (v *verifier) aligned(step int, r Ref, t graph.Type, what string, k int) error {
	if (v.plan.Slots[r.Slot].Off+r.Off)%t.DType.Size() != 0 {
		return v.fail(step, "", "%s %d is not aligned: %s at %s of %d", what, k, t, r,
			v.plan.Slots[r.Slot].Off)
	}
	return nil
}

// place proves that a step may touch so many bytes at a place in a space.
func (v *verifier) place(step int, r Ref, bytes int64, in space.ID) error {
	if r.Slot < 0 || int(r.Slot) >= len(v.plan.Slots) {
		return v.fail(step, "", "slot %d does not exist", r.Slot)
	}
	s := &v.plan.Slots[r.Slot]
	switch {
	case s.Space != in:
		return v.fail(step, "", "slot %d (%s) is in %s memory: the engine needs it in %s memory",
			r.Slot, s.Value, v.plan.SpaceName(s.Space), v.plan.SpaceName(in))
	case r.Off < 0 || bytes < 0 || r.Off > s.Bytes-bytes:
		return v.fail(step, "", "%d bytes at %d are outside slot %d of %d bytes", bytes, r.Off,
			r.Slot, s.Bytes)
	case step < s.From || step > s.To:
		return v.fail(step, "", "slot %d (%s) is live from step %d to %d only", r.Slot, s.Value,
			s.From, s.To)
	}
	v.used[r.Slot] = true
	return nil
}

// whole proves that a step may write exactly a slot, and that this is no
// variable's: updates write those, as operands, and copies that write back.
func (v *verifier) whole(step int, r Ref, bytes int64, in space.ID, back bool) error {
	if err := v.place(step, r, bytes, in); err != nil {
		return err
	}
	s := &v.plan.Slots[r.Slot]
	if s.Fixed && !back {
		return v.fail(step, "", "writes over the variable of slot %d (%s)", r.Slot, s.Value)
	}
	if r.Off != 0 || bytes != s.Bytes {
		return v.fail(step, "", "writes %d bytes at %d of slot %d of %d bytes", bytes, r.Off,
			r.Slot, s.Bytes)
	}
	return nil
}

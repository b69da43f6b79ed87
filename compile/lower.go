package compile

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
)

// lowering translates a schedule: an event is a step, a stay is a slot, or a part
// of the life of the slot whose bytes it takes over.
type lowering struct {
	graph    *graph.Graph
	schedule *pass.Schedule
	slots    []plan.SlotID // by stay
	effort   int64         // of packing within the budgets; 0 is none
	plan     *plan.Plan
}

// lower makes the plan of a schedule, but for the waits, which do not affect what
// it needs. Effort is how much is done for a packing within the budgets; without any,
// addresses do not depend on them.
func lower(p *pass.Program, title string, o Options, effort int64) *plan.Plan {
	s := p.Schedule
	l := &lowering{graph: p.Graph, schedule: s, effort: effort,
		slots: make([]plan.SlotID, len(s.Stays)),
		plan: &plan.Plan{
			Title:  title,
			Digest: p.Graph.Digest(),
			Parts:  s.Parts,
			Window: s.Window,
			Spaces: spaces(s, o),
			Steps:  make([]plan.Step, len(s.Events)),
		}}
	for _, st := range s.Streams {
		l.plan.Streams = append(l.plan.Streams, plan.Stream(st))
	}
	l.stays()
	for i := range s.Events {
		l.event(i)
	}
	l.plan.Variables, l.plan.Feeds = l.bindings(s.Variables), l.bindings(s.Feeds)
	for i, v := range p.Fetches {
		_, off := v.Resolve()
		l.plan.Fetches = append(l.plan.Fetches, plan.Fetch{Value: v.String(),
			Ref: l.ref(s.Fetches[i], off), Type: v.Type()})
	}
	l.addresses()
	return l.plan
}

// spaces are the memories that a schedule uses: a disk only if something is there.
func spaces(s *pass.Schedule, o Options) []plan.Space {
	list := []plan.Space{
		space.Device: {Name: space.Device.String(), Budget: o.DeviceBytes, Align: arena.Align},
		space.Host:   {Name: space.Host.String(), Budget: o.HostBytes, Align: arena.Align},
	}
	if slices.ContainsFunc(s.Stays, func(y pass.Stay) bool { return y.Space == Disk }) {
		list = append(list, plan.Space{Name: SpaceName(Disk), Budget: o.DiskBytes,
			Align: arena.Align})
	}
	return list
}

// stays makes the slots. A stay takes over the bytes of an earlier one.
func (l *lowering) stays() {
	for i, s := range l.schedule.Stays {
		if s.Over == pass.NoStay {
			l.slots[i] = plan.SlotID(len(l.plan.Slots))
			l.plan.Slots = append(l.plan.Slots, l.slot(s))
			continue
		}
		l.slots[i] = l.slots[s.Over]
		slot := &l.plan.Slots[l.slots[i]]
		slot.To = max(slot.To, int(s.To))
	}
}

// slot is the slot of a stay that has bytes of its own.
func (l *lowering) slot(s pass.Stay) plan.Slot {
	out := plan.Slot{Space: s.Space, Bytes: s.Bytes, From: int(s.From), To: int(s.To),
		Fixed: s.Fixed, Value: s.Value.String(), Type: s.Value.Type()}
	if s.Origin == pass.Workspace {
		out.Value = "scratch of " + s.Value.Node.Name
	}
	if s.Origin == pass.Workspace || s.Bytes != out.Type.Bytes() {
		out.Type = graph.Type{DType: graph.U8, Shape: []graph.Dim{{Size: int(s.Bytes)}}}
	}
	return out
}

// ref is where the byte at an offset of a value is, if a stay has it.
func (l *lowering) ref(id pass.StayID, off int64) plan.Ref {
	return plan.Ref{Slot: l.slots[id], Off: off - l.schedule.Stays[id].Off}
}

// event makes a step.
func (l *lowering) event(i int) {
	e := &l.schedule.Events[i]
	n := l.graph.Node(e.Node)
	step := plan.Step{Node: n.ID, Name: n.Name, Part: int(e.Part), Stream: plan.StreamID(e.Stream)}
	if e.Copies() {
		step.Do = l.copies(e)
	} else {
		step.Do = l.launches(e, n)
	}
	l.plan.Steps[i] = step
}

// copies is the copy of what both stays have.
func (l *lowering) copies(e *pass.Event) plan.Copy {
	src, dst := l.schedule.Stays[e.Src], l.schedule.Stays[e.Dst]
	from := max(src.Off, dst.Off)
	return plan.Copy{Src: l.ref(e.Src, from), Dst: l.ref(e.Dst, from),
		Bytes: min(src.Off+src.Bytes, dst.Off+dst.Bytes) - from,
		Why:   plan.Why(e.Reason), Idle: int(e.Idle)}
}

// launches is the execution of a node.
func (l *lowering) launches(e *pass.Event, n *graph.Node) plan.Launch {
	do := plan.Launch{Op: n.Op.Name(), Scratch: plan.NoSlot, Mutates: n.Mutates,
		In: slices.Grow([]plan.Ref(nil), len(e.In)), Out: slices.Grow([]plan.Ref(nil), len(e.Out))}
	for k, id := range e.In {
		_, off := n.In[k].Resolve()
		do.In = append(do.In, l.ref(id, off))
	}
	for _, id := range e.Out {
		do.Out = append(do.Out, l.ref(id, 0))
	}
	if e.Scratch != pass.NoStay {
		do.Scratch = l.slots[e.Scratch]
	}
	return do
}

// bindings ties leaves to the slots of their stays.
func (l *lowering) bindings(ids []pass.StayID) []plan.Binding {
	var out []plan.Binding
	for _, id := range ids {
		n := l.schedule.Stays[id].Value.Node
		out = append(out, plan.Binding{Node: n.ID, Name: n.Name, Slot: l.slots[id]})
	}
	return out
}

// addresses packs the slots of every space.
func (l *lowering) addresses() {
	for id := range l.plan.Spaces {
		var ids []int
		var blocks []arena.Block
		for i, s := range l.plan.Slots {
			if int(s.Space) == id {
				ids = append(ids, i)
				blocks = append(blocks, arena.Block{From: s.From, To: s.To, Bytes: s.Bytes,
					Fixed: s.Fixed})
			}
		}
		packing := l.pack(blocks, l.plan.Spaces[id].Budget)
		for k, i := range ids {
			l.plan.Slots[i].Off = packing.Offsets[k]
		}
		l.plan.Spaces[id].Bytes = packing.Peak
	}
}

// pack fixes addresses. Where the schedule fills its budget it is worth looking for a
// packing that keeps to it.
func (l *lowering) pack(blocks []arena.Block, budget int64) arena.Packing {
	if l.effort == 0 {
		return arena.Pack(blocks)
	}
	return arena.PackWithin(blocks, budget, l.effort)
}

// title says how a plan was made.
func title(o Options, r Rung) string {
	s := fmt.Sprintf("%s prefetch=%d", o, r.Prefetch)
	if r.Unshared {
		s += " unshared"
	}
	if r.Spill > 0 {
		s += fmt.Sprintf(" spill=%d", r.Spill)
	}
	if r.Told > 0 {
		s += fmt.Sprintf(" told=%d", r.Told)
	}
	return s
}

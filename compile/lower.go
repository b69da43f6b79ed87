package compile

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
)

// lowering emits the steps of a program. Slots have lifetimes but no addresses
// until all steps are there.
type lowering struct {
	p        *pass.Program
	prefetch int32
	reach    int32 // partitions by which copies run ahead at most
	compute  int   // number of compute streams
	plan     *plan.Plan

	lives  []*life
	device []plan.SlotID   // by value: its present slot on the device
	host   []plan.SlotID   // by value: its slot in host memory
	copies [][]arrival     // by position: copies to issue before the operation
	staged [][]*stagedSlot // by position: slots staged for the operation
	// a staged slot is kept for readers within so many partitions; -1: for none
	share  int32
	last   map[part]reader // by part of a leaf: its latest reader so far
	drains [][]plan.SlotID // by position: slots that copies may still read until then
	starts []int32         // by partition: its first position
	begun  []int           // by position: operations before it
	load   []int64         // by compute stream: bytes and FLOPs given to it so far
	recent []int32         // by compute stream: position of its last operation
}

// arrival is a copy towards the device: the next stay of a value, or a variable
// staged for one operation.
type arrival struct {
	need int32 // position of the operation that needs it
	life *life // nil: stage
	stay int
	slot *stagedSlot
}

// part is a part of a leaf, in bytes.
type part struct {
	leaf graph.Value
	off  int64
	size int64
}

// stagedSlot is the copy of a part of a leaf on the device, for an operation or,
// if slots are shared, for several.
type stagedSlot struct {
	part
	slot plan.SlotID
}

// reader is a position, with the slot that it reads.
type reader struct {
	pos  int32
	slot *stagedSlot
}

// lower makes the plan of a program on a rung of the ladder.
func lower(p *pass.Program, o Options, r Rung) *plan.Plan {
	l := newLowering(p, o, r)
	l.leaves()
	l.arrivals()
	for pos := range p.Order {
		l.position(int32(pos))
	}
	l.finish()
	l.addresses()
	addWaits(l.plan)
	return l.plan
}

func newLowering(p *pass.Program, o Options, r Rung) *lowering {
	n := len(p.Order)
	l := &lowering{
		p: p, prefetch: int32(r.Prefetch), compute: o.Streams, lives: lives(p),
		device: make([]plan.SlotID, p.Values()), host: make([]plan.SlotID, p.Values()),
		copies: make([][]arrival, n), staged: make([][]*stagedSlot,
			n), drains: make([][]plan.SlotID, n),
		share: int32(r.Lookahead), last: map[part]reader{},
		load: make([]int64, o.Streams), recent: make([]int32, o.Streams),
	}
	if r.Unshared {
		l.share = -1
	}
	if l.reach = 1; r.Prefetch > o.Partition {
		l.reach = int32((r.Prefetch + o.Partition - 1) / o.Partition)
	}
	for i := range l.device {
		l.device[i], l.host[i] = plan.NoSlot, plan.NoSlot
	}
	l.plan = &plan.Plan{
		Title: title(o, r),
		Parts: p.Parts(),
		Spaces: []plan.Space{
			space.Device: {Name: space.Device.String(), Budget: o.DeviceBytes},
			space.Host:   {Name: space.Host.String(), Budget: o.HostBytes},
		},
	}
	for i := range o.Streams {
		l.plan.Streams = append(l.plan.Streams,
			plan.Stream{Name: fmt.Sprintf("compute%d", i), Engine: space.Compute})
		l.recent[i] = -1
	}
	l.plan.Streams = append(l.plan.Streams, plan.Stream{Name: "in", Engine: space.CopyIn},
		plan.Stream{Name: "out", Engine: space.CopyOut}, plan.Stream{Name: "host",
			Engine: space.HostCompute})
	begun := 0
	for pos, id := range p.Order {
		if int(p.Part[id]) == len(l.starts) {
			l.starts = append(l.starts, int32(pos))
		}
		l.begun = append(l.begun, begun)
		begun += p.Graph.Node(id).Operations()
	}
	return l
}

// title says how a plan was made.
func title(o Options, r Rung) string {
	s := fmt.Sprintf("%s prefetch=%d", o, r.Prefetch)
	if r.Unshared {
		s += " unshared"
	}
	return s
}

func (l *lowering) inStream() plan.StreamID   { return plan.StreamID(l.compute) }
func (l *lowering) outStream() plan.StreamID  { return plan.StreamID(l.compute + 1) }
func (l *lowering) hostStream() plan.StreamID { return plan.StreamID(l.compute + 2) }

// leaves gives variables, constants and inputs their slots. Every variable and
// constant of the graph has one, whether or not this program reads it, so that
// all plans of a graph agree on their addresses.
func (l *lowering) leaves() {
	for _, n := range l.p.Graph.Nodes() {
		b := plan.Binding{Node: n.ID, Name: n.Name}
		switch {
		case n.Kind == graph.KindVariable || n.Kind == graph.KindConstant:
			b.Slot = l.slot(l.p.Place[n.ID], n.Value(0), n.Out[0])
			l.plan.Slots[b.Slot].Fixed = true
			l.plan.Variables = append(l.plan.Variables, b)
			if l.p.Place[n.ID] == space.Device {
				l.device[l.p.ValueIndex(n.Value(0))] = b.Slot
			} else {
				l.host[l.p.ValueIndex(n.Value(0))] = b.Slot
			}
		case n.Kind == graph.KindInput && l.p.Live[n.ID]:
			b.Slot = l.slot(space.Host, n.Value(0), n.Out[0])
			l.plan.Feeds = append(l.plan.Feeds, b)
			l.host[l.p.ValueIndex(n.Value(0))] = b.Slot
		}
	}
}

// slot makes a slot that is live from the next step on.
func (l *lowering) slot(in space.ID, v graph.Value, t graph.Type) plan.SlotID {
	now := len(l.plan.Steps)
	l.plan.Slots = append(l.plan.Slots, plan.Slot{
		Space: in, Bytes: t.Bytes(), From: now, To: now, Value: v.String(), Type: t,
	})
	return plan.SlotID(len(l.plan.Slots) - 1)
}

// keep makes a slot live at least until the step that is emitted next.
func (l *lowering) keep(id plan.SlotID) {
	s := &l.plan.Slots[id]
	s.To = max(s.To, len(l.plan.Steps))
}

// emit appends a step.
func (l *lowering) emit(n *graph.Node, pos int32, stream plan.StreamID, do plan.Action) {
	plan.Each(do, func(id plan.SlotID, _ bool) { l.keep(id) })
	l.plan.Steps = append(l.plan.Steps, plan.Step{
		Node: n.ID, Name: n.Name, Part: int(l.p.Part[l.p.Order[pos]]), Stream: stream, Do: do,
	})
}

// arrivals decides where the copies towards the device are issued.
func (l *lowering) arrivals() {
	for _, v := range l.lives {
		if v == nil {
			continue
		}
		for i, s := range v.stays {
			switch {
			case i > 0:
				l.issue(arrival{need: s.first, life: v, stay: i}, v.stays[i-1].last+1)
			case v.producedAt < 0:
				l.issue(arrival{need: s.first, life: v, stay: i}, 0)
			}
		}
	}
	for pos, id := range l.p.Order {
		n := l.p.Graph.Node(id)
		if n.Executes() && l.p.Place[id] == space.Device {
			l.stageOperands(n, int32(pos))
		}
	}
}

// stageOperands asks for a copy of every part of a host-resident leaf that an
// operation on the device reads, unless one is there already.
func (l *lowering) stageOperands(n *graph.Node, pos int32) {
	for _, v := range n.In {
		root, off := v.Resolve()
		kind := root.Node.Kind
		if kind != graph.KindVariable && kind != graph.KindConstant ||
			l.p.Place[root.Node.ID] == space.Device {
			continue
		}
		key := part{leaf: root, off: off, size: v.Type().Bytes()}
		if l.stagedFor(pos, key) != nil {
			continue
		}
		now := reader{pos, l.shared(key, pos)}
		if now.slot == nil {
			now.slot = &stagedSlot{part: key}
			l.issue(arrival{need: pos, slot: now.slot}, 0)
		}
		l.staged[pos], l.last[key] = append(l.staged[pos], now.slot), now
	}
}

// shared is the slot of the latest reader of a part, if that is kept until a
// position, or nil.
func (l *lowering) shared(key part, pos int32) *stagedSlot {
	before, ok := l.last[key]
	if !ok || l.p.Part[l.p.Order[pos]]-l.p.Part[l.p.Order[before.pos]] > l.share {
		return nil
	}
	return before.slot
}

// stagedFor finds the staged part of a leaf that the operation at a position
// reads, or nil.
func (l *lowering) stagedFor(pos int32, key part) *stagedSlot {
	for _, s := range l.staged[pos] {
		if s.part == key {
			return s
		}
	}
	return nil
}

// issue files a copy under the position before which it starts: prefetch
// operations before the need, but neither before a position nor more than one
// partition early.
func (l *lowering) issue(a arrival, notBefore int32) {
	part := l.p.Part[l.p.Order[a.need]]
	earliest := max(notBefore, l.starts[max(0, part-l.reach)])
	at := max(l.ahead(a.need), earliest)
	l.copies[at] = append(l.copies[at], a)
}

// ahead is the first position that is no more than prefetch operations before
// another.
func (l *lowering) ahead(pos int32) int32 {
	for first := l.begun[pos] - int(l.prefetch); pos > 0 && l.begun[pos-1] >= first; {
		pos--
	}
	return pos
}

// behind is the last position that is no more than prefetch operations after
// another.
func (l *lowering) behind(pos int32) int32 {
	for last := l.begun[pos] + int(l.prefetch); int(pos) < len(l.begun)-1 &&
		l.begun[pos+1] <= last; {
		pos++
	}
	return pos
}

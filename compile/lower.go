package compile

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
)

// lowering emits the steps of a program. Slots have lifetimes but no addresses
// until all steps are there.
type lowering struct {
	p        *pass.Program
	prefetch int // operations by which copies run ahead, at most all there are
	reach    int // partitions by which copies run ahead at most
	compute  int // number of compute streams
	plan     *plan.Plan

	lives  []*life
	device []plan.SlotID   // by value: its present slot on the device
	host   []plan.SlotID   // by value: its slot in host memory
	copies [][]arrival     // by position: copies to issue before the operation
	staged [][]*stagedSlot // by position and operand: the slot staged for it, if one is
	// a staged slot is kept for readers within so many partitions; -1: for none
	share  int
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

// lower makes the plan of a program on a rung of the ladder, but for the waits,
// which do not affect what it needs.
func lower(p *pass.Program, o Options, r Rung) *plan.Plan {
	l := newLowering(p, o, r)
	l.leaves()
	l.arrivals()
	for pos := range p.Order {
		l.position(int32(pos))
	}
	l.finish()
	l.addresses()
	return l.plan
}

func newLowering(p *pass.Program, o Options, r Rung) *lowering {
	n := len(p.Order)
	l := &lowering{
		p: p, compute: o.Streams, lives: lives(p),
		device: make([]plan.SlotID, p.Values()), host: make([]plan.SlotID, p.Values()),
		copies: make([][]arrival, n), staged: make([][]*stagedSlot, n),
		drains: make([][]plan.SlotID, n), share: r.Lookahead, last: map[part]reader{},
		load: make([]int64, o.Streams), recent: make([]int32, o.Streams),
	}
	if r.Unshared {
		l.share = -1
	}
	if l.reach = 1; r.Prefetch > o.Partition {
		l.reach = min((r.Prefetch-1)/o.Partition+1, p.Parts())
	}
	for i := range l.device {
		l.device[i], l.host[i] = plan.NoSlot, plan.NoSlot
	}
	l.plan = &plan.Plan{
		Title:  title(o, r),
		Digest: p.Graph.Digest(),
		Parts:  p.Parts(),
		Spaces: []plan.Space{
			space.Device: {Name: space.Device.String(), Budget: o.DeviceBytes},
			space.Host:   {Name: space.Host.String(), Budget: o.HostBytes},
		},
		Streams: streams(o.Streams),
	}
	for i := range l.recent {
		l.recent[i] = -1
	}
	l.prefetch = min(r.Prefetch, l.count())
	return l
}

// streams are so many compute streams, one for each direction of copies, and the
// host's.
func streams(compute int) []plan.Stream {
	var list []plan.Stream
	for i := range compute {
		list = append(list, plan.Stream{Name: fmt.Sprintf("compute%d", i), Engine: space.Compute})
	}
	return append(list, plan.Stream{Name: "in", Engine: space.CopyIn},
		plan.Stream{Name: "out", Engine: space.CopyOut},
		plan.Stream{Name: "host", Engine: space.HostCompute})
}

// count notes where partitions start and how many operations come before each
// position, and returns how many there are.
func (l *lowering) count() int {
	begun := 0
	l.begun = make([]int, 0, len(l.p.Order))
	for pos, id := range l.p.Order {
		if int(l.p.Part[id]) == len(l.starts) {
			l.starts = append(l.starts, int32(pos))
		}
		l.begun = append(l.begun, begun)
		begun += l.p.Graph.Node(id).Operations()
	}
	return begun
}

// title says how a plan was made.
func title(o Options, r Rung) string {
	s := fmt.Sprintf("%s prefetch=%d", o, r.Prefetch)
	if r.Unshared {
		s += " unshared"
	}
	if r.Told > 0 {
		s += fmt.Sprintf(" told=%d", r.Told)
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
	for k, v := range n.In {
		root, off := v.Resolve()
		kind := root.Node.Kind
		if kind != graph.KindVariable && kind != graph.KindConstant ||
			l.p.Place[root.Node.ID] == space.Device {
			continue
		}
		if l.staged[pos] == nil {
			l.staged[pos] = make([]*stagedSlot, len(n.In))
		}
		l.staged[pos][k] = l.stagedFor(part{leaf: root, off: off, size: v.Type().Bytes()}, pos)
	}
}

// stagedFor is the slot in which the operation at a position finds a part: that of
// the latest reader, if it is this operation or shares it, or a new one.
func (l *lowering) stagedFor(key part, pos int32) *stagedSlot {
	before, ok := l.last[key]
	slot := before.slot
	if !ok || before.pos != pos && l.partOf(pos)-l.partOf(before.pos) > l.share {
		slot = &stagedSlot{part: key}
		l.issue(arrival{need: pos, slot: slot}, 0)
	}
	l.last[key] = reader{pos, slot}
	return slot
}

// partOf is the partition of a position.
func (l *lowering) partOf(pos int32) int { return int(l.p.Part[l.p.Order[pos]]) }

// issue files a copy under the position before which it starts: prefetch
// operations before the need, but neither before a position nor more than reach
// partitions early.
func (l *lowering) issue(a arrival, notBefore int32) {
	earliest := max(notBefore, l.starts[max(0, l.partOf(a.need)-l.reach)])
	at := max(l.ahead(a.need), earliest)
	l.copies[at] = append(l.copies[at], a)
}

// ahead is the first position that is no more than prefetch operations before
// another.
func (l *lowering) ahead(pos int32) int32 {
	first, _ := slices.BinarySearch(l.begun[:pos], l.begun[pos]-l.prefetch)
	return int32(first)
}

// behind is the last position that is no more than prefetch operations after
// another.
func (l *lowering) behind(pos int32) int32 {
	later := l.begun[pos+1:]
	n, _ := slices.BinarySearch(later, l.begun[pos]+l.prefetch+1)
	return pos + int32(n)
}

package compile

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
)

// lowering emits the steps of a program. Slots have lifetimes but no addresses
// until all steps are there.
type lowering struct {
	p        *pass.Program
	prefetch int32
	compute  int // number of compute streams
	plan     *plan.Plan

	lives  []*life
	device []plan.SlotID   // by value: its present slot on the device
	host   []plan.SlotID   // by value: its slot in host memory
	copies [][]arrival     // by position: copies to issue before the operation
	staged [][]stagedSlot  // by position: slots staged for the operation
	drains [][]plan.SlotID // by position: slots that copies may still read until then
	starts []int32         // by partition: its first position
	load   []int64         // by compute stream: bytes and FLOPs given to it so far
	recent []int32         // by compute stream: position of its last operation
}

// arrival is a copy towards the device: the next stay of a value, or a variable
// staged for one operation.
type arrival struct {
	need int32 // position of the operation that needs it
	life *life // nil: stage
	stay int
	leaf graph.Value
	off  int64
	size int64
}

// stagedSlot is a staged part of a leaf.
type stagedSlot struct {
	leaf graph.Value
	off  int64
	size int64
	slot plan.SlotID
}

// lower makes the plan of a program with a given prefetch.
func lower(p *pass.Program, o Options, prefetch int) *plan.Plan {
	l := newLowering(p, o, prefetch)
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

func newLowering(p *pass.Program, o Options, prefetch int) *lowering {
	n := len(p.Order)
	l := &lowering{
		p: p, prefetch: int32(prefetch), compute: o.Streams, lives: lives(p),
		device: make([]plan.SlotID, p.Values()), host: make([]plan.SlotID, p.Values()),
		copies: make([][]arrival, n), staged: make([][]stagedSlot, n), drains: make([][]plan.SlotID, n),
		load: make([]int64, o.Streams), recent: make([]int32, o.Streams),
	}
	for i := range l.device {
		l.device[i], l.host[i] = plan.NoSlot, plan.NoSlot
	}
	l.plan = &plan.Plan{
		Title: fmt.Sprintf("%s prefetch=%d", o, prefetch),
		Parts: p.Parts(),
		Spaces: []plan.Space{
			pass.Device: {Name: plan.DeviceSpace, Budget: o.DeviceBytes},
			pass.Host:   {Name: plan.HostSpace, Budget: o.HostBytes},
		},
	}
	for i := range o.Streams {
		l.plan.Streams = append(l.plan.Streams, plan.Stream{Name: fmt.Sprintf("compute%d", i), Engine: plan.Compute})
		l.recent[i] = -1
	}
	l.plan.Streams = append(l.plan.Streams, plan.Stream{Name: "in", Engine: plan.CopyIn},
		plan.Stream{Name: "out", Engine: plan.CopyOut}, plan.Stream{Name: "host", Engine: plan.HostCompute})
	for pos, id := range p.Order {
		if int(p.Part[id]) == len(l.starts) {
			l.starts = append(l.starts, int32(pos))
		}
	}
	return l
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
			if l.p.Place[n.ID] == pass.Device {
				l.device[l.p.ValueIndex(n.Value(0))] = b.Slot
			} else {
				l.host[l.p.ValueIndex(n.Value(0))] = b.Slot
			}
		case n.Kind == graph.KindInput && l.p.Live[n.ID]:
			b.Slot = l.slot(pass.Host, n.Value(0), n.Out[0])
			l.plan.Feeds = append(l.plan.Feeds, b)
			l.host[l.p.ValueIndex(n.Value(0))] = b.Slot
		}
	}
}

// slot makes a slot that is live from the next step on.
func (l *lowering) slot(space pass.SpaceID, v graph.Value, t graph.Type) plan.SlotID {
	now := len(l.plan.Steps)
	l.plan.Slots = append(l.plan.Slots, plan.Slot{
		Space: plan.SpaceID(space), Bytes: t.Bytes(), From: now, To: now, Value: v.String(), Type: t,
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
			case v.made < 0:
				l.issue(arrival{need: s.first, life: v, stay: i}, 0)
			}
		}
	}
	for pos, id := range l.p.Order {
		n := l.p.Graph.Node(id)
		if pass.Executes(n) && l.p.Place[id] == pass.Device {
			l.stageOperands(n, int32(pos))
		}
	}
}

// stageOperands asks for a copy of every part of a host-resident leaf that an
// operation on the device reads.
func (l *lowering) stageOperands(n *graph.Node, pos int32) {
	for _, v := range n.In {
		root, off := v.Resolve()
		kind := root.Node.Kind
		if kind != graph.KindVariable && kind != graph.KindConstant || l.p.Place[root.Node.ID] == pass.Device {
			continue
		}
		size := v.Type().Bytes()
		if l.stagedFor(pos, root, off, size) == nil {
			l.staged[pos] = append(l.staged[pos], stagedSlot{leaf: root, off: off, size: size})
			l.issue(arrival{need: pos, leaf: root, off: off, size: size}, 0)
		}
	}
}

// stagedFor finds the staged part of a leaf that the operation at a position
// reads, or nil.
func (l *lowering) stagedFor(pos int32, leaf graph.Value, off, size int64) *stagedSlot {
	for i, s := range l.staged[pos] {
		if s.leaf == leaf && s.off == off && s.size == size {
			return &l.staged[pos][i]
		}
	}
	return nil
}

// issue files a copy under the position before which it starts: prefetch
// operations before the need, but neither before a position nor more than one
// partition early.
func (l *lowering) issue(a arrival, notBefore int32) {
	part := l.p.Part[l.p.Order[a.need]]
	earliest := max(notBefore, l.starts[max(0, part-1)])
	at := max(a.need-l.prefetch, earliest)
	l.copies[at] = append(l.copies[at], a)
}

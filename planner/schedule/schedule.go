package schedule

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// Options are what is decided here and not by earlier passes.
type Options struct {
	Partition int  // operations a partition; 0 if the graph is not cut
	Streams   int  // compute streams
	Prefetch  int  // operations by which copies run ahead, at most
	Lookahead int  // partitions within which readers share a staged variable
	Unshared  bool // every reader of a variable on the host gets a copy of its own
}

// window is how many partitions are in flight at most: the thesis' number.
const window = 2

// Pass fills Schedule from Order, Part, Place and Away.
func Pass(o Options) program.Pass {
	return program.Pass{Name: "schedule", Run: func(p *program.Program) error {
		b := newBuilder(p, o)
		b.arrivals()
		b.reserve()
		b.leaves()
		for pos := range p.Order {
			b.position(int32(pos))
		}
		b.finish()
		p.Schedule = b.made
		return nil
	}}
}

// builder writes the events of a program down.
type builder struct {
	p        *program.Program
	prefetch int // operations by which copies run ahead, at most all there are
	reach    int // partitions by which copies run ahead at most
	compute  int // number of compute streams
	made     *program.Schedule

	lives  []*life
	device []program.StayID   // by value: its present stay on the device
	host   []program.StayID   // by value: its stay in host memory
	copies [][]arrival        // by position: copies to issue before the operation
	issued int                // how many these are
	staged [][]*stagedPart    // by position and operand: the part staged for it, if one is
	share  int                // partitions within which readers share a staged part; -1: none do
	last   map[part]reader    // by part of a leaf: its latest reader so far
	drains [][]program.StayID // by position: stays that copies may still read until then
	starts []int32            // by partition: its first position
	begun  []int              // by position: operations before it
	load   []int64            // by compute stream: bytes and FLOPs given to it so far
	recent []int32            // by compute stream: position of its last operation
	spare  []program.StayID   // room for operands of executions

	overwrites []bool // by node: an exchange in the bytes of its operand; nil if there are none
}

// arrival is a copy towards the device: the next stay of a value, or a variable
// staged for one operation.
type arrival struct {
	need int32 // position of the operation that needs it
	life *life // nil: stage
	stay int
	part *stagedPart
}

// part is a part of a leaf, in bytes.
type part struct {
	leaf graph.Value
	off  int64
	size int64
}

// stagedPart is the copy of a part of a leaf on the device, for an operation or,
// if copies are shared, for several.
type stagedPart struct {
	part
	stay program.StayID
}

// reader is a position, with the staged part that it reads.
type reader struct {
	pos  int32
	part *stagedPart
}

func newBuilder(p *program.Program, o Options) *builder {
	n := len(p.Order)
	b := &builder{
		p: p, compute: o.Streams, lives: lives(p),
		device: make([]program.StayID, p.Values()), host: make([]program.StayID, p.Values()),
		copies: make([][]arrival, n), staged: make([][]*stagedPart, n),
		drains: make([][]program.StayID, n), share: o.Lookahead, last: map[part]reader{},
		load: make([]int64, o.Streams), recent: make([]int32, o.Streams),
		made: &program.Schedule{Parts: p.Parts(), Window: window,
			Streams: Streams(o.Streams, p.Graph)},
	}
	if len(b.made.Streams) > b.compute+3 {
		b.overwrites = p.Overwrites()
	}
	if o.Unshared {
		b.share = -1
	}
	if b.reach = 1; o.Partition > 0 && o.Prefetch > o.Partition {
		b.reach = min((o.Prefetch-1)/o.Partition+1, p.Parts())
	}
	for i := range b.device {
		b.device[i], b.host[i] = program.NoStay, program.NoStay
	}
	for i := range b.recent {
		b.recent[i] = -1
	}
	b.prefetch = min(o.Prefetch, b.count())
	return b
}

// Streams are so many compute streams, one for each direction of copies, the host's,
// and, if workers exchange values of a graph, those that send and await, and, if their devices do,
// the one that has copies of what is on others.
func Streams(compute int, g *graph.Graph) []program.Stream {
	var list []program.Stream
	for i := range compute {
		list = append(list, program.Stream{Name: fmt.Sprintf("compute%d", i),
			Engine: space.Compute})
	}
	list = append(list, program.Stream{Name: "in", Engine: space.CopyIn},
		program.Stream{Name: "out", Engine: space.CopyOut},
		program.Stream{Name: "host", Engine: space.HostCompute})
	if g.Exchanges() {
		list = append(list, program.Stream{Name: "send", Engine: space.Send},
			program.Stream{Name: "await", Engine: space.Await})
	}
	if slices.ContainsFunc(g.Nodes(), peers) {
		list = append(list, program.Stream{Name: "peer", Engine: space.Peer})
	}
	return list
}

// peers reports whether a node is an exchange between devices.
func peers(n *graph.Node) bool {
	_, ok := n.Peers()
	return ok
}

// count notes where partitions start and how many operations come before each
// position, and returns how many there are.
func (b *builder) count() int {
	begun := 0
	b.begun = make([]int, 0, len(b.p.Order))
	for pos, id := range b.p.Order {
		if int(b.p.Part[id]) == len(b.starts) {
			b.starts = append(b.starts, int32(pos))
		}
		b.begun = append(b.begun, begun)
		begun += b.p.Graph.Node(id).Operations()
	}
	return begun
}

func (b *builder) inStream() uint8  { return uint8(b.compute) }
func (b *builder) outStream() uint8 { return uint8(b.compute + 1) }

// deviceStream is the stream of a node that is executed on the device.
func (b *builder) deviceStream(n *graph.Node, pos int32, cost graph.Cost) uint8 {
	if peers(n) {
		return uint8(b.compute + 5)
	}
	return b.computeStream(n, pos, cost)
}

// hostStream is the stream of a node that is executed on the host. Awaits have one of
// their own, so that they hold up nothing but what needs them.
func (b *builder) hostStream(n *graph.Node) uint8 {
	_, sends := n.Sends()
	switch {
	case sends:
		return uint8(b.compute + 3)
	case n.Awaits():
		return uint8(b.compute + 4)
	}
	return uint8(b.compute + 2)
}

// leaves gives variables, constants and inputs their stays. Every variable and
// constant of the graph has one, whether or not this program reads it, so that
// all plans of a graph agree on their addresses.
func (b *builder) leaves() {
	for _, n := range b.p.Graph.Nodes() {
		switch {
		case n.Kind == graph.KindVariable || n.Kind == graph.KindConstant:
			id := b.stay(program.Stay{Space: b.p.Place[n.ID], Value: n.Value(0),
				Bytes: n.Out[0].Bytes(), Origin: program.Bound, Fixed: true})
			b.made.Variables = append(b.made.Variables, id)
			if b.p.Place[n.ID] == space.Device {
				b.device[b.p.ValueIndex(n.Value(0))] = id
			} else {
				b.host[b.p.ValueIndex(n.Value(0))] = id
			}
		case n.Kind == graph.KindInput && b.p.Live[n.ID]:
			id := b.stay(program.Stay{Space: space.Host, Value: n.Value(0), Bytes: n.Out[0].Bytes(),
				Origin: program.Bound})
			b.made.Feeds = append(b.made.Feeds, id)
			b.host[b.p.ValueIndex(n.Value(0))] = id
		}
	}
}

// reserve makes room for all stays and events.
func (b *builder) reserve() {
	stays, events := b.issued, b.issued
	for _, n := range b.p.Graph.Nodes() {
		switch {
		case n.Leaf():
			stays++
		case b.p.Live[n.ID] && n.Executes():
			stays += len(n.Out) + 1 // with what it scribbles in
			events++
		}
	}
	for _, v := range b.lives {
		if v != nil && v.hostCopy && !v.onHost {
			stays++
			events++
		}
	}
	b.made.Stays = make([]program.Stay, 0, stays)
	b.made.Events = make([]program.Event, 0, events)
}

// stay enters a stay, from the next event on.
func (b *builder) stay(s program.Stay) program.StayID {
	s.From = int32(len(b.made.Events))
	s.To, s.Over = s.From, program.NoStay
	b.made.Stays = append(b.made.Stays, s)
	return program.StayID(len(b.made.Stays) - 1)
}

// keep makes a stay last at least until the event that comes next.
func (b *builder) keep(id program.StayID) {
	b.made.Stays[id].To = int32(len(b.made.Events))
}

// event appends an event for a node at a position of the order.
func (b *builder) event(e program.Event, pos int32) {
	e.Part = b.p.Part[b.p.Order[pos]]
	e.Each(b.keep)
	b.made.Events = append(b.made.Events, e)
}

// arrivals decides where the copies towards the device are issued.
func (b *builder) arrivals() {
	for _, v := range b.lives {
		if v == nil {
			continue
		}
		for i, s := range v.stays {
			switch {
			case i > 0:
				b.issue(arrival{need: s.first, life: v, stay: i}, v.stays[i-1].last+1)
			case v.producedAt < 0 || v.onHost:
				b.issue(arrival{need: s.first, life: v, stay: i}, v.producedAt+1)
			}
		}
	}
	for pos, id := range b.p.Order {
		n := b.p.Graph.Node(id)
		if n.Executes() && b.p.Place[id] == space.Device {
			b.stageOperands(n, int32(pos))
		}
	}
}

// stageOperands asks for a copy of every part of a host-resident leaf that an
// operation on the device reads, unless one is there already.
func (b *builder) stageOperands(n *graph.Node, pos int32) {
	for k, v := range n.In {
		root, off, size := v.Staged()
		kind := root.Node.Kind
		if kind != graph.KindVariable && kind != graph.KindConstant ||
			b.p.Place[root.Node.ID] == space.Device {
			continue
		}
		if b.staged[pos] == nil {
			b.staged[pos] = make([]*stagedPart, len(n.In))
		}
		b.staged[pos][k] = b.stagedFor(part{leaf: root, off: off, size: size}, pos)
	}
}

// stagedFor is the copy in which the operation at a position finds a part: that of
// the latest reader, if it is this operation or shares it, or a new one.
func (b *builder) stagedFor(key part, pos int32) *stagedPart {
	before, ok := b.last[key]
	staged := before.part
	if !ok || before.pos != pos && b.partOf(pos)-b.partOf(before.pos) > b.share {
		staged = &stagedPart{part: key}
		b.issue(arrival{need: pos, part: staged}, 0)
	}
	b.last[key] = reader{pos, staged}
	return staged
}

// partOf is the partition of a position.
func (b *builder) partOf(pos int32) int { return int(b.p.Part[b.p.Order[pos]]) }

// issue files a copy under the position before which it starts: prefetch
// operations before the need, but neither before a position nor more than reach
// partitions early.
func (b *builder) issue(a arrival, notBefore int32) {
	earliest := max(notBefore, b.starts[max(0, b.partOf(a.need)-b.reach)])
	at := max(b.ahead(a.need), earliest)
	b.copies[at] = append(b.copies[at], a)
	b.issued++
}

// ahead is the first position that is no more than prefetch operations before
// another.
func (b *builder) ahead(pos int32) int32 {
	first, _ := slices.BinarySearch(b.begun[:pos], b.begun[pos]-b.prefetch)
	return int32(first)
}

// behind is the last position that is no more than prefetch operations after
// another.
func (b *builder) behind(pos int32) int32 {
	later := b.begun[pos+1:]
	n, _ := slices.BinarySearch(later, b.begun[pos]+b.prefetch+1)
	return pos + int32(n)
}

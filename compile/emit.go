package compile

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
)

// position emits what belongs to one position of the order: copies towards the
// device for later operations, the operation, and copies of its results to the
// host.
func (l *lowering) position(pos int32) {
	slices.SortStableFunc(l.copies[pos], func(a, b arrival) int {
		return cmp.Compare(a.need, b.need)
	})
	for _, a := range l.copies[pos] {
		l.arrive(a, pos)
	}
	for _, id := range l.drains[pos] {
		l.keep(id)
	}
	n := l.p.Graph.Node(l.p.Order[pos])
	if !n.Executes() {
		return
	}
	l.launch(n, pos)
	for i := range n.Out {
		l.depart(n.Value(i), pos)
	}
}

// arrive emits a copy towards the device.
func (l *lowering) arrive(a arrival, pos int32) {
	if a.life == nil {
		l.stage(a, pos)
		return
	}
	v := a.life.value
	i := l.p.ValueIndex(v)
	dst := l.slot(space.Device, v, v.Type())
	c := plan.Copy{Src: plan.Ref{Slot: l.host[i]}, Dst: plan.Ref{Slot: dst},
		Bytes: v.Type().Bytes(), Why: plan.Feed}
	if a.stay > 0 {
		c.Idle = int(a.life.stays[a.stay].first - a.life.stays[a.stay-1].last)
	}
	if a.life.producedAt >= 0 {
		c.Why = plan.SwapIn
	}
	l.emit(v.Node, pos, l.inStream(), c)
	l.device[i] = dst
}

// stage emits the copy of a variable or constant.
func (l *lowering) stage(a arrival, pos int32) {
	s := a.slot
	t := graph.Type{DType: graph.U8, Shape: []graph.Dim{{Size: int(s.size)}}}
	if leaf := s.leaf.Type(); s.size == leaf.Bytes() {
		t = leaf
	}
	s.slot = l.slot(space.Device, s.leaf, t)
	l.emit(s.leaf.Node, pos, l.inStream(), plan.Copy{
		Src:   plan.Ref{Slot: l.host[l.p.ValueIndex(s.leaf)], Off: s.off},
		Dst:   plan.Ref{Slot: s.slot},
		Bytes: s.size,
		Why:   plan.Stage,
	})
}

// launch emits an operation.
func (l *lowering) launch(n *graph.Node, pos int32) {
	do := plan.Launch{Op: n.Op.Name(), Scratch: plan.NoSlot, Mutates: n.Mutates,
		In: slices.Grow([]plan.Ref(nil), len(n.In)), Out: slices.Grow([]plan.Ref(nil), len(n.Out))}
	place, where, stream := l.p.Place[n.ID], l.device, l.hostStream()
	cost := n.Cost()
	if place == space.Host {
		where = l.host
	} else {
		stream = l.computeStream(n, pos, cost)
	}
	for k := range n.In {
		do.In = append(do.In, l.operand(n, k, pos))
	}
	for i, t := range n.Out {
		v := l.p.ValueIndex(n.Value(i))
		if i == 0 && place == space.Device {
			where[v] = l.reusable(n, do.In, pos)
		}
		if where[v] == plan.NoSlot {
			where[v] = l.slot(place, n.Value(i), t)
		}
		do.Out = append(do.Out, plan.Ref{Slot: where[v]})
	}
	if cost.Scratch > 0 {
		do.Scratch = l.slot(place, n.Value(0),
			graph.Type{DType: graph.U8, Shape: []graph.Dim{{Size: int(cost.Scratch)}}})
		l.plan.Slots[do.Scratch].Value = "scratch of " + n.Name
	}
	l.emit(n, pos, stream, do)
}

// operand is where an operation finds operand k.
func (l *lowering) operand(n *graph.Node, k int, pos int32) plan.Ref {
	root, off := n.In[k].Resolve()
	i := l.p.ValueIndex(root)
	if l.p.Place[n.ID] == space.Host {
		return plan.Ref{Slot: l.host[i], Off: off}
	}
	if staged := l.staged[pos]; staged != nil && staged[k] != nil {
		return plan.Ref{Slot: staged[k].slot}
	}
	return plan.Ref{Slot: l.device[i], Off: off}
}

// reusable is the slot of an operand that result 0 may replace: the operation
// allows it, and nobody needs the operand on the device after it.
func (l *lowering) reusable(n *graph.Node, in []plan.Ref, pos int32) plan.SlotID {
	op, ok := n.Op.(graph.InPlacer)
	if !ok {
		return plan.NoSlot
	}
	for _, k := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[k].Resolve()
		v := l.lives[l.p.ValueIndex(root)]
		if v == nil || v.stays[len(v.stays)-1].last != pos ||
			root.Type().Bytes() != n.Out[0].Bytes() || l.usedTwice(n, k, root) {
			continue
		}
		return in[k].Slot
	}
	return plan.NoSlot
}

// usedTwice reports whether another operand shares bytes with operand k.
func (l *lowering) usedTwice(n *graph.Node, k int, root graph.Value) bool {
	for j, v := range n.In {
		if other, _ := v.Resolve(); j != k && other == root {
			return true
		}
	}
	return false
}

// depart emits the copy of a result to the host, if it needs one. The slot it
// reads is not reused for prefetch operations, so that nothing waits for it.
func (l *lowering) depart(v graph.Value, pos int32) {
	i := l.p.ValueIndex(v)
	life := l.lives[i]
	if life == nil || !life.hostCopy || life.onHost {
		return
	}
	l.host[i] = l.slot(space.Host, v, v.Type())
	c := plan.Copy{Src: plan.Ref{Slot: l.device[i]}, Dst: plan.Ref{Slot: l.host[i]},
		Bytes: v.Type().Bytes(), Why: life.why}
	if life.why == plan.SwapOut {
		c.Idle = int(life.stays[1].first - life.stays[0].last)
	}
	l.emit(v.Node, pos, l.outStream(), c)
	until := l.behind(pos)
	if next := l.partOf(pos) + l.reach + 1; next < len(l.starts) {
		until = min(until, l.starts[next]-1)
	}
	if l.prefetch > 0 && until > life.stays[0].last {
		l.drains[until] = append(l.drains[until], l.device[i])
	}
}

// computeStream chooses among the compute streams: that of the operand made
// last if nothing has been put there since, else the least loaded.
func (l *lowering) computeStream(n *graph.Node, pos int32, cost graph.Cost) plan.StreamID {
	latest := int32(-1)
	for _, v := range n.In {
		root, _ := v.Resolve()
		if !root.Node.Leaf() {
			latest = max(latest, l.p.Pos(root.Node.ID))
		}
	}
	best := 0
	if s := slices.Index(l.recent, latest); s >= 0 && latest >= 0 {
		best = s
	} else {
		for s, load := range l.load {
			if load < l.load[best] {
				best = s
			}
		}
	}
	l.load[best] += cost.FLOPs + cost.Bytes
	l.recent[best] = pos
	return plan.StreamID(best)
}

// finish keeps fetched values to the end and lists them.
func (l *lowering) finish() {
	last := len(l.plan.Steps) - 1
	for _, v := range l.p.Fetches {
		root, off := v.Resolve()
		slot := l.host[l.p.ValueIndex(root)]
		l.plan.Slots[slot].To = last
		l.plan.Fetches = append(l.plan.Fetches,
			plan.Fetch{Value: v.String(), Ref: plan.Ref{Slot: slot, Off: off}, Type: v.Type()})
	}
	for i := range l.plan.Slots {
		s := &l.plan.Slots[i]
		s.To = min(s.To, last)
		if s.Fixed {
			s.From, s.To = 0, last
		}
	}
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
		packing := arena.Pack(blocks)
		for k, i := range ids {
			l.plan.Slots[i].Off = packing.Offsets[k]
		}
		l.plan.Spaces[id].Bytes = packing.Peak
	}
}

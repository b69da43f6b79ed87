package schedule

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// position writes down what belongs to one position of the order: copies towards
// the device for later operations, the operation, and copies of its results to the
// host.
func (b *builder) position(pos int32) {
	slices.SortStableFunc(b.copies[pos], func(x, y arrival) int {
		return cmp.Compare(x.need, y.need)
	})
	for _, a := range b.copies[pos] {
		b.arrive(a, pos)
	}
	for _, id := range b.drains[pos] {
		b.keep(id)
	}
	n := b.p.Graph.Node(b.p.Order[pos])
	if !n.Executes() {
		return
	}
	b.launch(n, pos)
	for i := range n.Out {
		b.depart(n.Value(i), pos)
	}
}

// arrive writes a copy towards the device down.
func (b *builder) arrive(a arrival, pos int32) {
	if a.life == nil {
		b.stage(a.part, pos)
		return
	}
	v := a.life.value
	i := b.p.ValueIndex(v)
	dst := b.stay(program.Stay{Space: space.Device, Value: v, Bytes: v.Type().Bytes(),
		Origin: program.Copied})
	e := program.Event{Node: v.Node.ID, Stream: b.inStream(), Scratch: program.NoStay,
		Src: b.host[i], Dst: dst, Reason: space.Feed}
	if a.stay > 0 {
		e.Idle = a.life.stays[a.stay].first - a.life.stays[a.stay-1].last
	}
	if a.life.producedAt >= 0 {
		e.Reason = space.SwapIn
	}
	b.event(e, pos)
	b.device[i] = dst
}

// stage writes the copy of a variable or constant down.
func (b *builder) stage(s *stagedPart, pos int32) {
	s.stay = b.stay(program.Stay{Space: space.Device, Value: s.leaf, Off: s.off, Bytes: s.size,
		Origin: program.Copied})
	b.event(program.Event{Node: s.leaf.Node.ID, Stream: b.inStream(), Scratch: program.NoStay,
		Src: b.host[b.p.ValueIndex(s.leaf)], Dst: s.stay, Reason: space.Stage}, pos)
}

// launch writes an execution down.
func (b *builder) launch(n *graph.Node, pos int32) {
	e := program.Event{Node: n.ID, Stream: b.hostStream(n), In: b.room(len(n.In)),
		Out: b.room(len(n.Out)), Scratch: program.NoStay, Src: program.NoStay, Dst: program.NoStay}
	place, where := b.p.Place[n.ID], b.device
	cost := n.Cost()
	if place == space.Host {
		where = b.host
	} else {
		e.Stream = b.deviceStream(n, pos, cost)
	}
	for k := range n.In {
		e.In[k] = b.operand(n, k, pos)
	}
	for i, t := range n.Out {
		s := program.Stay{Space: place, Value: n.Value(i), Bytes: t.Bytes(), Origin: program.Made}
		e.Out[i] = b.stay(s)
		switch over := &b.made.Stays[e.Out[i]].Over; {
		case i == 0 && place == space.Device:
			*over = b.reusable(n, e.In, pos)
		case b.overwrites != nil && b.overwrites[n.ID]:
			*over = e.In[0]
		}
		where[b.p.ValueIndex(n.Value(i))] = e.Out[i]
	}
	if cost.Scratch > 0 {
		e.Scratch = b.stay(program.Stay{Space: place, Value: n.Value(0), Bytes: cost.Scratch,
			Origin: program.Workspace})
	}
	b.event(e, pos)
}

// room is a list of so many stays. Lists are cut from large pieces, since there is
// one for the operands and one for the results of every execution.
func (b *builder) room(n int) []program.StayID {
	const piece = 1 << 12
	if len(b.spare) < n {
		b.spare = make([]program.StayID, max(n, piece))
	}
	out := b.spare[:n:n]
	b.spare = b.spare[n:]
	return out
}

// operand is where an operation finds operand k.
func (b *builder) operand(n *graph.Node, k int, pos int32) program.StayID {
	root, _ := n.In[k].Resolve()
	i := b.p.ValueIndex(root)
	if b.p.Place[n.ID] == space.Host {
		return b.host[i]
	}
	if staged := b.staged[pos]; staged != nil && staged[k] != nil {
		return staged[k].stay
	}
	return b.device[i]
}

// reusable is the stay of an operand whose bytes result 0 may take over: the
// operation allows it, and nobody needs the operand on the device after it.
func (b *builder) reusable(n *graph.Node, in []program.StayID, pos int32) program.StayID {
	op, ok := n.Op.(graph.InPlacer)
	if !ok {
		return program.NoStay
	}
	for _, k := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[k].Resolve()
		v := b.lives[b.p.ValueIndex(root)]
		if v == nil || v.stays[len(v.stays)-1].last != pos ||
			root.Type().Bytes() != n.Out[0].Bytes() || usedTwice(n, k, root) {
			continue
		}
		return in[k]
	}
	return program.NoStay
}

// usedTwice reports whether another operand shares bytes with operand k.
func usedTwice(n *graph.Node, k int, root graph.Value) bool {
	for j, v := range n.In {
		if other, _ := v.Resolve(); j != k && other == root {
			return true
		}
	}
	return false
}

// depart writes the copy of a result to the host down, if it needs one. The bytes
// that it reads are not reused for prefetch operations, so that nothing waits for
// it.
func (b *builder) depart(v graph.Value, pos int32) {
	i := b.p.ValueIndex(v)
	life := b.lives[i]
	if life == nil || !life.hostCopy || life.onHost {
		return
	}
	b.host[i] = b.stay(program.Stay{Space: space.Host, Value: v, Bytes: v.Type().Bytes(),
		Origin: program.Copied})
	e := program.Event{Node: v.Node.ID, Stream: b.outStream(), Scratch: program.NoStay,
		Src: b.device[i], Dst: b.host[i], Reason: life.why}
	if life.why == space.SwapOut {
		e.Idle = life.stays[1].first - life.stays[0].last
	}
	b.event(e, pos)
	until := b.behind(pos)
	if next := b.partOf(pos) + b.reach + 1; next < len(b.starts) {
		until = min(until, b.starts[next]-1)
	}
	if b.prefetch > 0 && until > life.stays[0].last {
		b.drains[until] = append(b.drains[until], b.device[i])
	}
}

// computeStream chooses among the compute streams: that of the operand made
// last if nothing has been put there since, else the least loaded.
func (b *builder) computeStream(n *graph.Node, pos int32, cost graph.Cost) uint8 {
	latest := int32(-1)
	for _, v := range n.In {
		root, _ := v.Resolve()
		if !root.Node.Leaf() {
			latest = max(latest, b.p.Pos(root.Node.ID))
		}
	}
	best := 0
	if s := slices.Index(b.recent, latest); s >= 0 && latest >= 0 {
		best = s
	} else {
		for s, load := range b.load {
			if load < b.load[best] {
				best = s
			}
		}
	}
	b.load[best] += cost.FLOPs + cost.Bytes
	b.recent[best] = pos
	return uint8(best)
}

// finish keeps what is fetched, and variables, to the end.
func (b *builder) finish() {
	last := int32(max(0, len(b.made.Events)-1))
	for _, v := range b.p.Fetches {
		root, _ := v.Resolve()
		id := b.host[b.p.ValueIndex(root)]
		b.made.Stays[id].To = last
		b.made.Fetches = append(b.made.Fetches, id)
	}
	for i := range b.made.Stays {
		s := &b.made.Stays[i]
		s.To = min(s.To, last)
		if s.Fixed {
			s.From, s.To = 0, last
		}
	}
}

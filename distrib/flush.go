package distrib

import "slices"

// waysOf is what a transport knows of the way to each node.
func waysOf(t Transport) map[NodeID]Link {
	ways := map[NodeID]Link{}
	for _, k := range t.Links() {
		ways[k.To] = k
	}
	return ways
}

// last reports whether a clock is that of a node's end, when all goes.
func last(now Clock) bool { return now == endOfTime-1 }

// flushOwner sends to an owner what a clock leaves, and the clock.
func (o *outbox) flushOwner(id NodeID, now Clock, ways map[NodeID]Link) {
	b := o.box(id, 0)
	all := !lazy(o.lane.cons) || last(now)
	items := b.take(func(it *item) bool {
		return it.Made <= now && (all || it.rest || o.lane.cons.Due(&it.Entry, now))
	})
	if !last(now) {
		items = b.split(items, now, ways[id])
	}
	told := min(now+1, b.oldest())
	o.dispatch(b, items, header{flags: endsClock, clock: told})
	b.told = told
}

// flushDrawn sends all to the nodes that are drawn for a clock, and to the others what is
// due, and the clock when they may wait for it. Where these go without, it is the clock.
func (o *outbox) flushDrawn(now Clock, ways map[NodeID]Link) {
	e := o.lane.e
	drawn := o.lane.plan.Topology.Dests(nil, e.self, o.lane.params[0].whole(), now)
	o.lane.seen.advance(e.self, now+1)
	for _, id := range e.members {
		if id == e.self {
			continue
		}
		b := o.box(id, 0)
		without := o.lane.lossy && !last(now) && !slices.Contains(drawn, id)
		all := !lazy(o.lane.cons) && slices.Contains(drawn, id) || last(now) || without
		items := b.take(func(it *item) bool {
			return it.Made <= now && (all || o.lane.cons.Due(&it.Entry, now))
		})
		if without {
			items = o.lose(items)
		} else if !last(now) {
			items = b.split(items, now, ways[id])
		}
		told := min(now+1, b.oldest())
		if all || len(items) > 0 || o.lane.cons.Due(&Entry{Made: b.told}, now) {
			b.marks = []mark{{e.self, told}}
			o.dispatch(b, items, header{})
			b.told = told
		}
	}
}

// lose drops what a node goes without.
func (o *outbox) lose(items []*item) []*item {
	for _, it := range items {
		o.lane.e.audit.Lost += int64(Bytes(it.U))
		it.p.ledger.drop(&o.lane.e.cfg, it.U)
		it.unremember()
	}
	return nil
}

// flushGraph lets everything go, of this node and on its way through, along fixed ways. It
// goes when there is room on the way: what comes until then is merged, so that a box never
// holds more than the parameters' size.
func (o *outbox) flushGraph(now Clock) {
	o.lane.seen.advance(o.lane.e.self, now+1)
	for _, h := range o.lane.routes.own {
		b := o.box(h.to, h.paths)
		b.mark(o.lane.e.self, now+1)
	}
	for _, b := range o.boxes {
		if !lazy(o.lane.cons) || last(now) || b.due(now) {
			b.wanted = true
		}
	}
}

// mark notes how far a node's updates are in a box.
func (b *box) mark(of NodeID, at Clock) {
	i, ok := slices.BinarySearchFunc(b.marks, of, func(m mark, id NodeID) int {
		return int(m.of) - int(id)
	})
	if ok {
		b.marks[i].at = max(b.marks[i].at, at)
		return
	}
	b.marks = slices.Insert(b.marks, i, mark{of, at})
}

// due reports whether somebody may wait for what is in a box of a graph.
func (b *box) due(now Clock) bool {
	if b.lane.e.barriers.meeting {
		return true
	}
	for _, it := range b.items {
		if !it.rest && b.lane.cons.Due(&it.Entry, now) {
			return true
		}
	}
	for _, m := range b.marks {
		from, known := b.announced[m.of]
		if !known || now == endOfTime || m.at >= endOfTime ||
			m.at > from && b.lane.cons.Due(&Entry{Made: from}, now) {
			return true
		}
	}
	return false
}

// release sends a box of a graph, with the clocks of all whose updates are in it.
func (b *box) release(now Clock) {
	b.wanted = false
	items := b.take(func(*item) bool { return true })
	if now < endOfTime-1 && !b.lane.e.barriers.meeting {
		items = b.split(items, now, waysOf(b.lane.e.t)[b.dest])
	}
	for _, m := range b.marks {
		b.announced[m.of] = max(b.announced[m.of], m.at)
	}
	if len(items) > 0 || len(b.marks) > 0 {
		b.lane.outbox.dispatch(b, items, header{paths: b.paths})
	}
}

// dispatch puts items into parcels no larger than a message, the last of which carries
// the clock, or the marks of the box.
func (o *outbox) dispatch(b *box, items []*item, end header) {
	apart := o.lane.e.cfg.heldBack()
	slices.SortStableFunc(items, func(x, y *item) int {
		if apart && x.Made != y.Made {
			return int(x.Made - y.Made)
		}
		if x.Ref.Param != y.Ref.Param {
			return int(x.Ref.Param) - int(y.Ref.Param)
		}
		return int(x.Ref.Row) - int(y.Ref.Row)
	})
	end.kind, end.lane = kindUpdates, o.lane.index
	end.version = o.lane.client.from(b.dest)
	plain := header{kind: kindUpdates, lane: o.lane.index, paths: end.paths, version: end.version}
	marks := b.marks
	b.marks = nil
	var part []*item
	size := 0
	for i, it := range items {
		n := it.U.WireSize() + headerSize
		if size > 0 && (size+n > o.lane.e.cfg.Message || apart && it.Made != items[i-1].Made) {
			o.lane.e.mail.ship(b.dest, &parcel{head: plain, items: part})
			part, size = nil, 0
		}
		part, size = append(part, it), size+n
	}
	o.lane.e.mail.ship(b.dest, &parcel{head: end, items: part, marks: marks})
}

// drain takes all that is pending for a parameter, by its number in the round: what is
// pushed and goes nowhere.
func (o *outbox) drain(ref Ref) Update {
	e := o.lane.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.lane.mode != local || ref.Param < 0 || int(ref.Param) >= len(o.lane.params) {
		return nil
	}
	p := o.lane.params[ref.Param]
	ref = p.whole()
	var sum Update
	for _, it := range o.box(e.self, 0).take(func(it *item) bool { return it.Ref.Param == p.id }) {
		p.ledger.drain(&e.cfg, it.U)
		whole := it.U
		if it.Ref != ref {
			d := make(Dense, int(ref.N)*p.cols)
			it.addTo(d, ref.Row, ref.N)
			whole = d
		}
		sum = Add(sum, whole)
	}
	return sum
}

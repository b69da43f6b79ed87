package distrib

import (
	"cmp"
	"slices"
	"time"
)

// early makes a parcel that is not due: when a push waits for memory, of all entries that
// there are, past every filter, and then one that asks for an acknowledgement; else of
// what the plan's pacer lets go.
func (s *sender) early(id NodeID) *parcel {
	if p := s.entries(id); p != nil {
		return p
	}
	if k := s.e.mail.links[id]; s.pressed && k.unacked > 0 && !k.begged {
		k.begged = true
		return &parcel{head: header{kind: kindUpdates, lane: k.sent[0].head.lane, flags: wantsAck,
			paths: k.sent[0].head.paths}}
	}
	return nil
}

// entries makes a parcel of entries that are not due.
func (s *sender) entries(id NodeID) *parcel {
	for _, l := range s.e.lanes {
		if l.mode == local {
			continue
		}
		for _, b := range l.outbox.to(id) {
			if len(b.items) == 0 {
				continue
			}
			if s.pressed {
				return b.squeeze()
			}
			if p := b.paced(); p != nil {
				return p
			}
		}
	}
	return nil
}

// squeeze takes a message's worth from a box, the oldest first.
func (b *box) squeeze() *parcel {
	size, e := 0, b.lane.e
	var of Clock
	items := b.take(func(it *item) bool {
		n := it.U.WireSize()
		if size > 0 && (size+n > e.cfg.Message || e.cfg.heldBack() && it.Made != of) {
			return false
		}
		size, of = size+n, it.Made
		return true
	})
	e.audit.Squeezed += int64(len(items))
	return b.voluntary(items)
}

// voluntary makes a parcel of items that go before their clock does.
func (b *box) voluntary(items []*item) *parcel {
	p := &parcel{items: items,
		head: header{kind: kindUpdates, lane: b.lane.index, paths: b.paths, flags: wantsAck,
			version: b.lane.client.from(b.dest)}}
	for _, it := range items {
		p.bytes += int64(Bytes(it.U))
	}
	b.lane.e.mail.out.queued += p.bytes
	return p
}

// paced takes what the plan's pacer lets go now, the best first.
func (b *box) paced() *parcel {
	l := b.lane
	if l.plan.Pacer == nil || b.oldest() == endOfTime {
		return nil
	}
	now := time.Now()
	budget, wait := l.plan.Pacer.Budget(b.dest, now)
	l.e.sender.soon(wait)
	if budget <= 0 {
		return nil
	}
	items := b.best(budget)
	if f, ok := l.plan.Pacer.(Followed); ok {
		for _, it := range items {
			f.Released(&it.Entry)
		}
	}
	if items = b.split(items, l.e.workers.clock, waysOf(l.e.t)[b.dest]); len(items) == 0 {
		return nil
	}
	return b.voluntary(items)
}

// candidates is how many times as many entries as may go are compared with each other.
const candidates = 5

// best takes the best entries that fit a budget, at least one, from the oldest that are
// a few times as many.
func (b *box) best(budget int) []*item {
	var pool []*item
	size := 0
	for _, it := range b.items {
		if it.rest || size > candidates*budget ||
			len(pool) > 0 && b.lane.e.cfg.heldBack() && it.Made != pool[0].Made {
			continue
		}
		pool, size = append(pool, it), size+FrameSize(Frame{U: it.U})
	}
	rank(b.lane.plan.Pacer, pool, func(it *item) *Entry { return &it.Entry }, b.lane.e.value)
	chosen, left := map[*item]bool{}, budget
	for _, it := range pool {
		if n := FrameSize(Frame{U: it.U}); n <= left || len(chosen) == 0 {
			chosen[it], left = true, left-n
		}
	}
	items := b.take(func(it *item) bool { return chosen[it] })
	slices.SortStableFunc(items, func(x, y *item) int {
		if x.Ref.Param != y.Ref.Param {
			return int(x.Ref.Param) - int(y.Ref.Param)
		}
		return int(x.Ref.Row) - int(y.Ref.Row)
	})
	return items
}

// rank sorts what may go early, the best first.
func rank[T any](p Pacer, list []T, of func(T) *Entry, value func(Ref) []float32) {
	s, ok := p.(Scored)
	if !ok {
		slices.SortStableFunc(list, func(x, y T) int {
			switch {
			case p.Better(of(x), of(y), value):
				return -1
			case p.Better(of(y), of(x), value):
				return 1
			}
			return 0
		})
		return
	}
	type scored struct {
		score float64
		t     T
	}
	all := make([]scored, len(list))
	for i, t := range list {
		all[i] = scored{s.Score(of(t), value), t}
	}
	slices.SortStableFunc(all, func(x, y scored) int { return cmp.Compare(y.score, x.score) })
	for i, x := range all {
		list[i] = x.t
	}
}

// soon makes the sending goroutine look again after some time at the latest.
func (s *sender) soon(d time.Duration) {
	if d > 0 && (s.again == 0 || d < s.again) {
		s.again = d
	}
}

// early makes a message of changed rows that the plan's pacer lets go before a clock
// ends, the best first.
func (rs *readers) early(sub *subscriber) *parcel {
	l := rs.server.lane
	if l.plan.Pacer == nil || !sub.standing || !sub.news ||
		l.tagged != nil && l.tagged.rule.Full() {
		return nil
	}
	budget, again := l.plan.Pacer.Budget(sub.node, time.Now())
	l.e.sender.soon(again)
	if budget <= 0 {
		return nil
	}
	pool := rs.changed(sub, candidates)
	if len(pool) == 0 {
		sub.news = false
		return nil
	}
	rank(l.plan.Pacer, pool, func(en *Entry) *Entry { return en }, rs.value)
	var chosen []*Entry
	for _, en := range pool {
		if n := FrameSize(Frame{U: en.U}); n <= budget || len(chosen) == 0 {
			chosen, budget = append(chosen, en), budget-n
		}
	}
	slices.SortFunc(chosen, func(a, b *Entry) int {
		if a.Ref.Param != b.Ref.Param {
			return int(a.Ref.Param) - int(b.Ref.Param)
		}
		return int(a.Ref.Row) - int(b.Ref.Row)
	})
	var frames []Frame
	for _, en := range chosen {
		frames = rs.goes(sub, frames, en)
	}
	return rs.rows(header{kind: kindRows, lane: l.index}, frames)
}

// goes takes a row for one that a node has been sent.
func (rs *readers) goes(sub *subscriber, frames []Frame, en *Entry) []Frame {
	p := rs.server.lane.e.params[en.Ref.Param]
	if f, ok := rs.server.lane.plan.Pacer.(Followed); ok {
		f.Released(en)
	}
	i := rs.server.index(p)
	rs.news[i].clear(int(p.slot[en.Ref.Row]), 1)
	sub.dirty[i].clear(int(en.Ref.Row))
	return rs.frame(sub, frames, p, en.Ref.Row, 1)
}

// changed is the first changed rows that a node wants, so many messages of them, each with
// how it has changed.
func (rs *readers) changed(sub *subscriber, messages int) []*Entry {
	var pool []*Entry
	size := 0
	for i, p := range rs.server.lane.params {
		for row := 0; row < p.rows && size < messages*rs.server.lane.e.cfg.Message; row++ {
			if row, _ = wanted(sub, i, row, p.rows); row < p.rows {
				pool = append(pool, &Entry{Ref: Ref{p.id, int32(row), 1}, Dest: sub.node,
					U: rs.news[i].get(int(p.slot[row]), 1)})
				size += p.framed(int32(row), 1) - headerSize
			}
		}
	}
	return pool
}

// value is rows of this node.
func (rs *readers) value(r Ref) []float32 {
	return rs.server.lane.e.params[r.Param].owned(r.Row, r.N)
}

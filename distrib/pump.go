package distrib

import (
	"errors"
	"slices"
	"time"
)

// post queues a parcel. Who is lost gets nothing, which is counted.
func (e *Engine) post(to NodeID, p *parcel) {
	k := e.links[to]
	if k == nil || e.lost[to] != nil {
		e.drop(to, p)
		return
	}
	switch p.head.kind.class() {
	case Updates:
		k.updates = append(k.updates, p)
	case ValuesOf:
		k.values = append(k.values, p)
	default:
		k.control = append(k.control, p)
	}
	e.nudge()
}

// drop counts what a lost node does not get.
func (e *Engine) drop(to NodeID, p *parcel) {
	e.out.queued -= p.bytes
	p.done(&e.audit)
	for _, it := range p.items {
		it.p.lane.unremember(it)
		it.p.ledger.drop(e, it.U)
	}
	if k := e.links[to]; k != nil && p.head.kind.class() == Updates {
		k.dropped++
	}
}

// pump is the goroutine that sends. It ends when the workers of all nodes have, or when
// the engine has failed.
func (e *Engine) pump() {
	defer close(e.done)
	for turn := 0; ; turn++ {
		to, p, again, over := e.choose(turn)
		switch {
		case p != nil:
			e.send(to, p)
		case over:
			return
		default:
			e.rest(again)
		}
	}
}

// rest waits for something to do.
func (e *Engine) rest(again time.Duration) {
	if again <= 0 {
		<-e.kick
		return
	}
	t := time.NewTimer(again)
	defer t.Stop()
	select {
	case <-e.kick:
	case <-t.C:
	}
}

// choose takes the next parcel that may leave, the nodes in turn; or says after what time
// to ask again, or that nothing will come any more.
func (e *Engine) choose(turn int) (to NodeID, p *parcel, again time.Duration, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.land()
	for _, l := range e.lanes {
		if l.server != nil && l.mode == flow && !e.still() {
			l.server.finalise()
		}
	}
	e.again = 0
	for i := range e.all {
		id := e.all[(turn+i)%len(e.all)]
		if p := e.nextFor(id); p != nil {
			e.number(id, p)
			return id, p, 0, false
		}
	}
	return 0, nil, e.again, e.err != nil || e.closing || e.ended()
}

// ended reports whether nobody will need this node any more.
func (e *Engine) ended() bool {
	for _, id := range e.members {
		if e.lost[id] == nil && !(e.gone[id] && e.hasAll(id)) {
			return false
		}
	}
	return e.clock == endOfTime && e.handedOn() && e.idle()
}

// handedOn reports whether the last sums of all owners have come, which this node may have
// to hand on.
func (e *Engine) handedOn() bool {
	for _, l := range e.lanes {
		for _, id := range l.owners {
			if l.mode == flow && e.lost[id] == nil && l.age.of(id) < endOfTime {
				return false
			}
		}
	}
	return true
}

// hasAll reports whether a node's last updates have come.
func (e *Engine) hasAll(id NodeID) bool {
	for _, l := range e.lanes {
		if l.server != nil && l.server.clocks.of(id) < endOfTime ||
			l.seen != nil && l.mode != local && l.seen.of(id) < endOfTime {
			return false
		}
	}
	return true
}

// idle reports whether everything has been sent and has landed.
func (e *Engine) idle() bool {
	for id, k := range e.links {
		if e.lost[id] == nil && len(k.values)+k.onWay[ValuesOf] > 0 {
			return false
		}
	}
	return e.delivered()
}

// delivered reports whether all updates of this node, and what is on its way through, have
// been sent and have landed.
func (e *Engine) delivered() bool {
	for id, k := range e.links {
		left := len(k.control) + len(k.updates) + k.onWay[Control] + k.onWay[Updates]
		if e.lost[id] == nil && left > 0 {
			return false
		}
	}
	for _, l := range e.lanes {
		for _, b := range l.boxes {
			if len(b.items)+len(b.marks) > 0 && l.mode != local && e.lost[b.dest] == nil {
				return false
			}
		}
	}
	return true
}

// nextFor takes the next parcel for a node: what is small and urgent first, then updates
// that are due, then rows, then what may go early.
func (e *Engine) nextFor(id NodeID) *parcel {
	k := e.links[id]
	if len(k.control) > 0 {
		return pop(&k.control)
	}
	if e.lost[id] != nil {
		return nil
	}
	if len(k.updates) > 0 && k.onWay[Updates] < e.cfg.Window {
		return pop(&k.updates)
	}
	if k.onWay[ValuesOf] < e.cfg.Window {
		if p := e.nextValues(id, k); p != nil {
			return p
		}
	}
	if k.onWay[Updates] < e.cfg.Window && len(k.updates) == 0 {
		if e.still() {
			return nil
		}
		if e.released(id); len(k.updates) > 0 {
			return pop(&k.updates)
		}
		return e.early(id)
	}
	return nil
}

// released lets a box of a graph go that is to go to a node.
func (e *Engine) released(id NodeID) {
	for _, l := range e.lanes {
		for _, b := range l.boxesTo(id) {
			if b.wanted && len(e.links[id].updates) == 0 {
				b.release(e.clock)
			}
		}
	}
}

func (e *Engine) nextValues(id NodeID, k *link) *parcel {
	if len(k.values) > 0 {
		return pop(&k.values)
	}
	if e.still() {
		return nil
	}
	for _, l := range e.lanes {
		if l.server != nil && l.mode == served {
			if p := l.server.nextRows(id); p != nil {
				return p
			}
		}
	}
	if k.owes {
		return &parcel{head: header{kind: kindAck}}
	}
	return nil
}

func pop(list *[]*parcel) *parcel {
	p := (*list)[0]
	(*list)[0] = nil
	*list = (*list)[1:]
	return p
}

// number gives a parcel its place in its stream, and notes its updates as sent.
func (e *Engine) number(to NodeID, p *parcel) {
	k, c := e.links[to], p.head.kind.class()
	e.count(to, p)
	k.next[c]++
	k.onWay[c]++
	p.head.seq = k.next[c]
	p.head.epoch = e.cfg.View.Epoch
	if p.head.kind != kindSums {
		p.head.root = e.self
	}
	if c == ValuesOf {
		k.owes = false
		var after []mark
		if p.head.ack, after = e.folded(to); p.head.kind != kindSums {
			p.marks = after
		}
	}
	if p.head.kind == kindUpdates {
		e.out.queued -= p.bytes
		e.out.unacked += p.bytes
		k.unacked += p.bytes
		k.sent = append(k.sent, p)
		for _, it := range p.items {
			it.gone, it.seq = true, p.head.seq
			it.p.ledger.send(e, it.U)
		}
	}
}

// count tells the plan's pacer of updates or rows that leave, be they due or early.
func (e *Engine) count(to NodeID, p *parcel) {
	if p.head.kind != kindUpdates && p.head.kind != kindRows {
		return
	}
	pacer := e.lanes[p.head.lane].plan.Pacer
	if pacer == nil {
		return
	}
	size := 0
	for _, it := range p.items {
		size += FrameSize(Frame{U: it.U})
	}
	for _, b := range p.body {
		size += len(b)
	}
	if p.paced = size > 0; p.paced {
		pacer.Sent(to, size, time.Now())
	}
}

// send encodes a parcel, whose updates nobody changes any more, and hands it over.
func (e *Engine) send(to NodeID, p *parcel) {
	m, err := e.message(p)
	if err != nil {
		e.mu.Lock()
		e.fail(err)
		e.mu.Unlock()
		return
	}
	class, epoch := m.Class, p.head.epoch
	m.Done = func(err error) {
		e.finished.add(landing{to, epoch, class, p, err})
		e.nudge()
	}
	e.t.Send(to, m)
}

func (e *Engine) message(p *parcel) (*Msg, error) {
	m := &Msg{Class: p.head.kind.class(), Body: p.body}
	p.head.marks = uint32(markLen * len(p.marks))
	if p.body != nil && len(p.marks) > 0 {
		m.Body = append([][]byte{appendMarks(nil, p.marks)}, p.body...)
	} else if len(p.items)+len(p.marks) > 0 {
		var frames []Frame
		size := 0
		for _, it := range p.items {
			f := Frame{it.Ref, it.Made, it.Tag, p.head.epoch, it.U}
			frames, size = append(frames, f), size+FrameSize(f)
		}
		b := make([]byte, 0, size+markLen*len(p.marks))
		b = appendMarks(b, p.marks)
		b, err := encode(b, frames)
		if err != nil {
			return nil, err
		}
		m.Body = [][]byte{b}
	}
	var first []byte
	if len(m.Body) > 0 {
		first = m.Body[0] // what has no checksum of its own is in it
	}
	m.Head = p.head.seal(first)
	return m, nil
}

// land takes note of what the transport has done with.
func (e *Engine) land() {
	done := e.finished.take()
	for _, d := range done {
		k := e.links[d.to]
		if f, ok := e.lanes[d.p.head.lane].plan.Pacer.(Followed); ok && d.p.paced {
			f.Acked(d.to)
		}
		d.p.done(&e.audit)
		if k == nil || d.epoch != e.cfg.View.Epoch {
			continue
		}
		k.onWay[d.class]--
		if errors.Is(d.err, ErrStale) {
			e.discarded(d.p)
		} else if d.err != nil {
			e.lose(d.to, d.err)
		}
		if d.p.head.kind == kindUpdates && !d.p.keeps() {
			e.forget(k, d.p)
		}
	}
	if len(done) > 0 && e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// keeps reports whether a parcel's updates are needed until they are acknowledged.
func (p *parcel) keeps() bool { return len(p.items) > 0 && p.items[0].p.lane.rmw }

// forget frees the memory of a parcel's updates.
func (e *Engine) forget(k *link, p *parcel) {
	i := slices.Index(k.sent, p)
	if i < 0 {
		return
	}
	k.sent = slices.Delete(k.sent, i, i+1)
	e.free(k, p)
}

func (e *Engine) free(k *link, p *parcel) {
	k.unacked -= p.bytes
	e.out.unacked -= p.bytes
	for _, it := range p.items {
		it.p.lane.unremember(it)
	}
}

// acked takes note that a node has folded messages of updates in: all up to one, and some
// after it.
func (e *Engine) acked(from NodeID, seq uint64, after []mark) {
	k := e.links[from]
	k.begged = false
	k.acked = max(k.acked, seq)
	for _, m := range after {
		k.sent = slices.DeleteFunc(k.sent, func(p *parcel) bool {
			if p.head.seq != uint64(m.at) {
				return false
			}
			e.free(k, p)
			return true
		})
	}
	for len(k.sent) > 0 && k.sent[0].head.seq <= seq {
		e.free(k, k.sent[0])
		k.sent = k.sent[1:]
	}
}

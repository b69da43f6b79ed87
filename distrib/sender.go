package distrib

import "time"

// sender chooses what leaves next, and has it leave. It is the one goroutine that does.
type sender struct {
	e       *Engine
	done    chan struct{} // closed when the goroutine has ended
	again   time.Duration // after which there may be something to send
	pressed bool          // a push waits for memory
}

// run is the goroutine that sends. It ends when the workers of all nodes have, or when
// the engine has failed.
func (s *sender) run() {
	defer close(s.done)
	for turn := 0; ; turn++ {
		to, p, again, over := s.choose(turn)
		switch {
		case p != nil:
			s.send(to, p)
		case over:
			return
		default:
			s.rest(again)
		}
	}
}

// rest waits for something to do.
func (s *sender) rest(again time.Duration) {
	if again <= 0 {
		<-s.e.kick
		return
	}
	t := time.NewTimer(again)
	defer t.Stop()
	select {
	case <-s.e.kick:
	case <-t.C:
	}
}

// choose takes the next parcel that may leave, the nodes in turn; or says after what time
// to ask again, or that nothing will come any more.
func (s *sender) choose(turn int) (to NodeID, p *parcel, again time.Duration, over bool) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.mail.land()
	for _, l := range s.e.lanes {
		if l.server != nil && l.mode == flow && !s.e.views.still() {
			l.server.sums.finalise()
		}
	}
	s.again = 0
	for i := range s.e.mail.all {
		id := s.e.mail.all[(turn+i)%len(s.e.mail.all)]
		if p := s.next(id); p != nil {
			s.number(id, p)
			return id, p, 0, false
		}
	}
	return 0, nil, s.again, s.e.err != nil || s.e.closing || s.ended()
}

// ended reports whether nobody will need this node any more.
func (s *sender) ended() bool {
	for _, id := range s.e.members {
		if s.e.mail.lost[id] == nil && !(s.e.mail.gone[id] && s.hasAll(id)) {
			return false
		}
	}
	return s.e.workers.clock == endOfTime && s.handedOn() && s.idle()
}

// handedOn reports whether the last sums of all owners have come, which this node may have
// to hand on.
func (s *sender) handedOn() bool {
	for _, l := range s.e.lanes {
		for _, id := range l.owners {
			if l.mode == flow && s.e.mail.lost[id] == nil && l.client.age.of(id) < endOfTime {
				return false
			}
		}
	}
	return true
}

// hasAll reports whether a node's last updates have come.
func (s *sender) hasAll(id NodeID) bool {
	for _, l := range s.e.lanes {
		if l.server != nil && l.server.clocks.of(id) < endOfTime ||
			l.seen != nil && l.mode != local && l.seen.of(id) < endOfTime {
			return false
		}
	}
	return true
}

// idle reports whether everything has been sent and has landed.
func (s *sender) idle() bool {
	for id, k := range s.e.mail.links {
		if s.e.mail.lost[id] == nil && len(k.values)+k.onWay[ValuesOf] > 0 {
			return false
		}
	}
	return s.delivered()
}

// delivered reports whether all updates of this node, and what is on its way through, have
// been sent and have landed.
func (s *sender) delivered() bool {
	for id, k := range s.e.mail.links {
		left := len(k.control) + len(k.updates) + k.onWay[Control] + k.onWay[Updates]
		if s.e.mail.lost[id] == nil && left > 0 {
			return false
		}
	}
	for _, l := range s.e.lanes {
		for _, b := range l.outbox.boxes {
			if len(b.items)+len(b.marks) > 0 && l.mode != local && s.e.mail.lost[b.dest] == nil {
				return false
			}
		}
	}
	return true
}

// next takes the next parcel for a node: what is small and urgent first, then updates
// that are due, then rows, then what may go early.
func (s *sender) next(id NodeID) *parcel {
	k := s.e.mail.links[id]
	if len(k.control) > 0 {
		return pop(&k.control)
	}
	if s.e.mail.lost[id] != nil {
		return nil
	}
	if len(k.updates) > 0 && k.onWay[Updates] < s.e.cfg.Window {
		return pop(&k.updates)
	}
	if k.onWay[ValuesOf] < s.e.cfg.Window {
		if p := s.rows(id, k); p != nil {
			return p
		}
	}
	if k.onWay[Updates] < s.e.cfg.Window && len(k.updates) == 0 {
		if s.e.views.still() {
			return nil
		}
		if s.released(id); len(k.updates) > 0 {
			return pop(&k.updates)
		}
		return s.early(id)
	}
	return nil
}

// released lets a box of a graph go that is to go to a node.
func (s *sender) released(id NodeID) {
	for _, l := range s.e.lanes {
		for _, b := range l.outbox.to(id) {
			if b.wanted && len(s.e.mail.links[id].updates) == 0 {
				b.release(s.e.workers.clock)
			}
		}
	}
}

func (s *sender) rows(id NodeID, k *link) *parcel {
	if len(k.values) > 0 {
		return pop(&k.values)
	}
	if s.e.views.still() {
		return nil
	}
	for _, l := range s.e.lanes {
		if l.server != nil && l.mode == served {
			if p := l.server.readers.next(id); p != nil {
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
func (s *sender) number(to NodeID, p *parcel) {
	k, c := s.e.mail.links[to], p.head.kind.class()
	s.count(to, p)
	k.next[c]++
	k.onWay[c]++
	p.head.seq = k.next[c]
	p.head.epoch = s.e.cfg.View.Epoch
	if p.head.kind != kindSums {
		p.head.root = s.e.self
	}
	if c == ValuesOf {
		k.owes = false
		var after []mark
		if p.head.ack, after = s.folded(to); p.head.kind != kindSums {
			p.marks = after
		}
	}
	if p.head.kind == kindUpdates {
		s.e.mail.out.queued -= p.bytes
		s.e.mail.out.unacked += p.bytes
		k.unacked += p.bytes
		k.sent = append(k.sent, p)
		for _, it := range p.items {
			it.gone, it.seq = true, p.head.seq
			it.p.ledger.send(&s.e.cfg, it.U)
		}
	}
}

// count tells the plan's pacer of updates or rows that leave, be they due or early.
func (s *sender) count(to NodeID, p *parcel) {
	if p.head.kind != kindUpdates && p.head.kind != kindRows {
		return
	}
	pacer := s.e.lanes[p.head.lane].plan.Pacer
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
	if size > 0 {
		p.paced = pacer
		pacer.Sent(to, size, time.Now())
	}
}

// send encodes a parcel, whose updates nobody changes any more, and hands it over.
func (s *sender) send(to NodeID, p *parcel) {
	m, err := p.message()
	if err != nil {
		s.e.mu.Lock()
		s.e.fail(err)
		s.e.mu.Unlock()
		return
	}
	class, epoch := m.Class, p.head.epoch
	m.Done = func(err error) {
		s.e.mail.finished.add(landing{to, epoch, class, p, err})
		s.e.nudge()
	}
	s.e.t.Send(to, m)
}

// keeps reports whether a parcel's updates are needed until they are acknowledged.
func (p *parcel) keeps() bool { return len(p.items) > 0 && p.items[0].p.lane.rmw }

// folded says which of a node's messages are folded in: all up to one, and some after it.
func (s *sender) folded(from NodeID) (upTo uint64, after []mark) {
	k := s.e.mail.links[from]
	upTo = k.last[Updates]
	if s.e.audit.Held == 0 {
		return upTo, nil
	}
	held := map[uint64]bool{}
	for _, l := range s.e.lanes {
		if l.server == nil {
			continue
		}
		for _, u := range l.server.held {
			if u.from == from {
				held[u.seq], upTo = true, min(upTo, u.seq-1)
			}
		}
	}
	for seq := upTo + 1; seq <= k.last[Updates]; seq++ {
		if !held[seq] {
			after = append(after, mark{at: Clock(seq)})
		}
	}
	return upTo, after
}

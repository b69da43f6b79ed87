package distrib

import (
	"slices"
)

// sums is the owner's side where sums of updates are sent to everybody: what has come
// since the last sum went out, and what a filter kept back of it.
type sums struct {
	lane    *lane
	acc     []store  // of each parameter of the lane, the rows that this node owns
	touched []bitset // rows of them
	done    Clock    // the last clock that was told to everybody
	most    int64    // bytes that all of it is, as messages, at most
	flying  int64    // of sums that went out and have not landed everywhere
}

func newSums(l *lane, at Clock) *sums {
	s := &sums{lane: l, done: at}
	for _, p := range l.params {
		s.acc = append(s.acc, p.newStore(len(p.folded)))
		s.touched = append(s.touched, newBitset(p.rows))
	}
	s.most = sumsOf(l, l.e.self)
	return s
}

// add adds an update to the sum.
func (s *sums) add(p *param, f Frame) {
	i := s.lane.server.index(p)
	s.acc[i].add(int(p.slot[f.Ref.Row]), int(f.Ref.N), f.U)
	s.touched[i].setRange(int(f.Ref.Row), int(f.Ref.N))
}

// finalise ends a sum when everybody has sent its updates of a clock, and sends it to all
// nodes, this one too. As long as sums before it wait to be sent, it goes on growing: there are
// no more of them under way than clocks that nodes may be apart.
func (s *sums) finalise() {
	least, e := s.lane.server.clocks.min(), s.lane.e
	if least <= s.done || !s.room() {
		return
	}
	to := children(s.lane, e.self)
	for _, id := range to {
		if k := e.mail.links[id]; k != nil && len(k.values) > e.cfg.Window {
			return
		}
	}
	s.end(least, to)
}

// room reports whether another sum may go out.
func (s *sums) room() bool {
	return s.flying <= (staleness(s.lane.cons)-1)*s.most || !inStep(s.lane.cons)
}

// sumsOf is how many bytes a sum of all rows of an owner is at most, as messages: each row may be
// a frame of its own, no larger than its numbers.
func sumsOf(l *lane, owner NodeID) (bytes int64) {
	for _, p := range l.params {
		for _, id := range p.owner {
			if id == owner {
				bytes += p.rowMost() + headerSize
			}
		}
	}
	return bytes
}

// end sends the sum as that of all clocks before one.
func (s *sums) end(at Clock, to []NodeID) {
	s.done = at
	s.send(header{kind: kindSums, lane: s.lane.index, root: s.lane.e.self, clock: at}, to)
}

// send cuts the sum into messages and leaves in it what the filter keeps.
func (s *sums) send(h header, to []NodeID) {
	e := s.lane.e
	ways := waysOf(e.t)
	var frames []Frame
	size := 0
	for i, p := range s.lane.params {
		for row := 0; row < p.rows; {
			from, end := s.touched[i].run(row, p.rows)
			if from == p.rows {
				break
			}
			end = min(end, from+p.fit(e.cfg.Message))
			end = s.together(p, from, end)
			if u := s.cut(i, p, from, end, h.clock, ways); u != nil {
				f := Frame{Ref{p.id, int32(from), int32(end - from)}, 0, 0, e.cfg.View.Epoch, u}
				if size > 0 && size+FrameSize(f) > e.cfg.Message {
					s.broadcast(h, frames, to)
					frames, size = nil, 0
				}
				frames, size = append(frames, f), size+FrameSize(f)
			}
			row = end
		}
	}
	h.flags |= endsClock
	s.broadcast(h, frames, to)
}

// flush sends all of the sum, past the filter, and tells of no new clock.
func (s *sums) flush(to []NodeID) {
	filter := s.lane.plan.DownF
	s.lane.plan.DownF = nil
	s.end(s.done, to)
	s.lane.plan.DownF = filter
}

// together ends a run of rows where it stops lying together in memory.
func (s *sums) together(p *param, from, end int) int {
	for i := from + 1; i < end; i++ {
		if p.slot[i] != p.slot[from]+int32(i-from) {
			return i
		}
	}
	return end
}

// cut takes rows out of the sum: what is sent is a copy.
func (s *sums) cut(i int, p *param, from, end int, now Clock, ways map[NodeID]Link) Update {
	at, n := int(p.slot[from]), end-from
	whole := s.acc[i].get(at, n)
	if d, ok := whole.(Dense); ok && p.kind == nil {
		whole = Dense(slices.Clone(d))
	}
	s.acc[i].clear(at, n)
	s.touched[i].clearRange(from, end-from)
	if s.lane.plan.DownF == nil || last(now-1) {
		return whole
	}
	en := Entry{Ref: Ref{p.id, int32(from), int32(end - from)}, Made: now - 1, U: whole}
	send, keep := s.lane.plan.DownF.Split(&en, now-1, slowest(ways))
	if send != nil && p.kind == nil && send.WireSize() > whole.WireSize() {
		send = Dense(AsDense(send))
	}
	if keep != nil {
		s.acc[i].add(at, n, keep)
		s.touched[i].setRange(from, end-from)
		s.lane.e.audit.Kept += int64(Bytes(keep))
	}
	return send
}

// slowest is the way that a filter should look at, where all get the same.
func slowest(ways map[NodeID]Link) Link {
	var worst Link
	for _, k := range ways {
		k.To = 0
		if k.Bps > 0 && (worst.Bps == 0 || k.Bps < worst.Bps) {
			worst.Bps = k.Bps
		}
		worst.Congested = worst.Congested || k.Congested
	}
	return worst
}

// broadcast sends the same bytes to some nodes.
func (s *sums) broadcast(h header, frames []Frame, to []NodeID) {
	size := 0
	for _, f := range frames {
		size += FrameSize(f)
	}
	b, err := encode(make([]byte, 0, size), frames)
	if err != nil {
		s.lane.e.fail(err)
		return
	}
	s.lane.e.mail.relay(h, [][]byte{b}, &shared{bytes: int64(len(b)), sum: s}, to)
}

// A Relaying topology says along which tree an owner's sums are streamed: every node
// hands a message on as soon as it has it.
type Relaying interface {
	// Children appends the nodes that self hands on to what root sends. A node is a child
	// of one other, or of the root, which is its own child too.
	Children(dst []NodeID, root, self NodeID) []NodeID
}

// children is where a message of sums goes next. Without a tree, its owner sends it to
// all nodes.
func children(l *lane, root NodeID) []NodeID {
	e := l.e
	t, ok := l.plan.Topology.(Relaying)
	if !ok {
		if root != e.self {
			return nil
		}
		to := slices.Clone(e.members)
		return insert(to, e.self)
	}
	to := t.Children(nil, root, e.self)
	slices.Sort(to)
	if root == e.self {
		to = insert(to, e.self)
	}
	return slices.Compact(to)
}

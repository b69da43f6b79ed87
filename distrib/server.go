package distrib

import (
	"fmt"
	"slices"
)

// server is the owner's side of a plan: the rows of this node, how far every worker's
// node is with its updates of them, and who wants to know.
type server struct {
	lane    *lane
	clocks  *vectorClock // of nodes with workers
	held    []heldUpdate
	saved   Clock   // up to where clocks to save at have been looked at
	latest  Clock   // the highest clock of an update
	sums    *sums   // where sums are sent
	readers readers // nodes that read the rows

	pushes Version // messages of updates that were taken
}

// heldUpdate is an update that must not be folded in yet.
type heldUpdate struct {
	from NodeID
	seq  uint64
	when when
	Frame
}

func newServer(l *lane, at Clock) *server {
	s := &server{lane: l, clocks: newVectorClock(l.e.members, at), saved: at}
	s.readers.server = s
	if l.mode == flow {
		s.sums = newSums(l, at)
	} else {
		s.readers.begin(at)
	}
	return s
}

// take folds a node's updates in, or holds them back, and its clock.
func (s *server) take(from NodeID, h header, frames []Frame) error {
	e := s.lane.e
	for _, f := range frames {
		if err := s.owns(f.Ref); err != nil {
			return err
		}
	}
	at := s.when(h)
	if s.stale(h, len(frames)) {
		s.discard(frames)
		frames = nil
	}
	for _, f := range frames {
		f.Ref.N = max(f.Ref.N, 1)
		e.params[f.Ref.Param].ledger.receive(&e.cfg, f.U)
		s.latest = max(s.latest, f.Clock)
		if s.holds(f.Clock) {
			s.held = append(s.held, heldUpdate{from, h.seq, at, f})
			e.audit.add(&e.audit.Held, int64(Bytes(f.U)))
			continue
		}
		s.fold(f, at)
	}
	s.ended(from, h)
	return nil
}

// ended takes note of the clock that a message of updates ends.
func (s *server) ended(from NodeID, h header) {
	if h.flags&endsClock == 0 {
		return
	}
	if s.clocks.advance(from, h.clock) {
		s.advanced()
	}
	if s.clocks.of(from) == endOfTime {
		s.readers.forget(from)
	} else if sub := s.readers.sub(from); sub != nil && sub.standing && s.lane.delay() > 0 {
		sub.urgent = true
	}
}

// heldBack reports whether owners may hold updates back. Then no message has updates of
// two clocks, so that each is folded in as a whole.
func (c *Config) heldBack() bool { return c.Ordered || c.Saves != nil }

// owns reports whether all of some rows are this node's.
func (s *server) owns(r Ref) error {
	p := s.lane.e.params[r.Param]
	if p.lane != s.lane || r.N == 0 {
		return fmt.Errorf("it has updates of %s by another plan, or of no rows", p.name)
	}
	for i := r.Row; i < r.Row+r.N; i++ {
		if p.owner[i] != s.lane.e.self {
			return fmt.Errorf("it has updates of row %d of %s, which node %d owns", i, p.name,
				p.owner[i])
		}
	}
	return nil
}

// holds reports whether updates of a clock must wait: until everybody has sent those of
// the clock, to be folded in in order; or until the rows of an earlier clock are saved.
func (s *server) holds(c Clock) bool {
	e, least := s.lane.e, s.clocks.min()
	if e.cfg.Ordered {
		return c >= least
	}
	if e.cfg.Saves == nil {
		return false
	}
	for k := least + 1; k <= c; k++ {
		if e.cfg.Saves(k) {
			return true
		}
	}
	return false
}

// advanced does what the least clock of all workers has made possible.
func (s *server) advanced() {
	s.save()
	s.release(func(c Clock) bool { return !s.holds(c) })
	s.readers.reached(s.clocks.min())
}

// release folds in what is held back of some clocks: by clock, then node, then in the order
// of coming.
func (s *server) release(of func(Clock) bool) {
	var free []heldUpdate
	s.held = slices.DeleteFunc(s.held, func(u heldUpdate) bool {
		if !of(u.Clock) {
			return false
		}
		free = append(free, u)
		return true
	})
	slices.SortStableFunc(free, func(a, b heldUpdate) int {
		if a.Clock != b.Clock {
			return int(a.Clock - b.Clock)
		}
		return int(a.from) - int(b.from)
	})
	e := s.lane.e
	for _, u := range free {
		e.audit.Held -= int64(Bytes(u.U))
		s.fold(u.Frame, u.when)
	}
}

// fold changes rows by an update.
func (s *server) fold(f Frame, by when) {
	l := s.lane
	p := l.e.params[f.Ref.Param]
	p.ledger.fold(&l.e.cfg, f.U)
	if l.mode == flow {
		s.sums.add(p, f)
		return
	}
	at, n := int(p.slot[f.Ref.Row]), int(f.Ref.N)
	if l.plan.Rule == nil || p.kind != nil || by.weighed {
		p.master.add(at, n, f.U)
	} else {
		w := p.owned(f.Ref.Row, f.Ref.N)
		l.plan.Rule.Apply(w, p.cols, &Entry{Ref: f.Ref, Dest: l.e.self, Made: f.Clock,
			Tag: f.Tag, U: f.U, At: by.at, Delay: by.delay})
	}
	for i := range f.Ref.N {
		p.folded[p.slot[f.Ref.Row]+i]++
	}
	s.readers.changes(p, f)
}

// index is a parameter's place among those of the lane.
func (s *server) index(p *param) int {
	i, _ := slices.BinarySearchFunc(s.lane.params, p.id, func(q *param, id ParamID) int {
		return int(q.id) - int(id)
	})
	return i
}

package distrib

import (
	"fmt"
	"slices"
)

// server is the owner's side of a plan: the rows of this node, how far every worker's
// node is with its updates of them, and who wants to know.
type server struct {
	lane   *lane
	clocks *vectorClock // of nodes with workers
	subs   []*subscriber
	waits  []getting // rows that are asked for as of a clock that is not there
	held   []heldUpdate
	saved  Clock // up to where clocks to save at have been looked at
	latest Clock // the highest clock of an update
	sums   *sums // where sums are sent
	// news is how rows of each parameter have changed since they last left early, for the
	// plan's pacer to compare.
	news []store

	pushes Version // messages of updates that were taken
}

// subscriber is a node that reads rows of this one.
type subscriber struct {
	node     NodeID
	wants    []bitset // rows of each parameter of the lane that it has asked for
	dirty    []bitset // that have changed since they were sent to it
	answers  []Ref    // rows that it waits for
	standing bool     // it is sent rows whenever they change
	news     bool     // rows may have changed since all that had were sent
	urgent   bool     // it has rows to get now
	sweep    bool     // its rows are on their way, as of clock
	clock    Clock
	version  Version // of the rows that it gets, when the first of them was read
	at       cursor
	told     Clock               // the last clock that it was told of
	given    map[rowOf][]Version // versions of rows that it has, where rules remember them
}

// cursor is how far a pass over rows is.
type cursor struct{ param, row int }

// getting is who waits for rows as of a clock.
type getting struct {
	from NodeID
	need Clock
	refs []Ref
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
	if l.mode == flow {
		s.sums = newSums(l, at)
		return s
	}
	for _, p := range l.params {
		if l.plan.Pacer != nil {
			s.news = append(s.news, p.newStore(len(p.folded)))
		}
	}
	for _, id := range l.e.members {
		sub := &subscriber{node: id, told: at, given: map[rowOf][]Version{}}
		for _, p := range l.params {
			sub.wants = append(sub.wants, newBitset(p.rows))
			sub.dirty = append(sub.dirty, newBitset(p.rows))
		}
		s.subs = append(s.subs, sub)
	}
	return s
}

func (s *server) sub(id NodeID) *subscriber {
	for _, sub := range s.subs {
		if sub.node == id {
			return sub
		}
	}
	return nil
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
		s.forget(from)
	} else if sub := s.sub(from); sub != nil && sub.standing && s.lane.delay() > 0 {
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
	least := s.clocks.min()
	s.waits = slices.DeleteFunc(s.waits, func(g getting) bool {
		if g.need > least {
			return false
		}
		s.answer(g.from, g.refs)
		return true
	})
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
	if s.news != nil {
		s.news[s.index(p)].add(at, n, f.U)
	}
	for i := range f.Ref.N {
		p.folded[p.slot[f.Ref.Row]+i]++
	}
	for _, sub := range s.subs {
		sub.dirty[s.index(p)].setRange(int(f.Ref.Row), int(f.Ref.N))
		sub.news = true
	}
}

// index is a parameter's place among those of the lane.
func (s *server) index(p *param) int {
	i, _ := slices.BinarySearchFunc(s.lane.params, p.id, func(q *param, id ParamID) int {
		return int(q.id) - int(id)
	})
	return i
}

// asked notes that a node wants rows.
func (s *server) asked(from NodeID, h header, refs []Ref) error {
	sub := s.sub(from)
	if sub == nil {
		return fmt.Errorf("node %d asks for rows and is no worker", from)
	}
	for _, r := range refs {
		if err := s.owns(r); err != nil {
			return err
		}
	}
	if h.flags&asksStanding != 0 {
		for _, r := range refs {
			i := s.index(s.lane.e.params[r.Param])
			sub.wants[i].setRange(int(r.Row), int(r.N))
			sub.dirty[i].setRange(int(r.Row), int(r.N))
		}
		sub.urgent, sub.standing = true, true
		return nil
	}
	if h.clock <= s.clocks.min() {
		s.answer(from, refs)
	} else {
		s.waits = append(s.waits, getting{from, h.clock, refs})
	}
	return nil
}

func (s *server) answer(to NodeID, refs []Ref) {
	if sub := s.sub(to); sub != nil {
		sub.answers = append(sub.answers, refs...)
	}
}

// nextRows makes the next message of rows for a node: what it waits for, then what has
// changed since it was told of a clock, the last with the clock on it.
func (s *server) nextRows(to NodeID) *parcel {
	sub := s.sub(to)
	if sub == nil || s.clocks.of(to) == endOfTime && to != s.lane.e.self {
		return nil
	}
	if len(sub.answers) > 0 {
		return s.answered(sub)
	}
	least := s.clocks.min()
	if !sub.sweep {
		news := least > sub.told && least < endOfTime && sub.standing
		if !news && !sub.urgent {
			return s.early(sub)
		}
		sub.sweep, sub.urgent, sub.at, sub.clock = true, false, cursor{}, min(least, endOfTime)
		sub.version = s.pushes
	}
	frames := s.collect(sub, s.lane.e.cfg.Message)
	h := header{kind: kindRows, lane: s.lane.index, clock: sub.clock, version: sub.version}
	if sub.at.param == len(s.lane.params) {
		h.flags |= endsClock
		sub.sweep, sub.told = false, sub.clock
	}
	return s.rows(h, frames)
}

// rows encodes frames of rows at once, since the rows may change.
func (s *server) rows(h header, frames []Frame) *parcel {
	size := 0
	for _, f := range frames {
		size += FrameSize(f)
	}
	b, err := encode(make([]byte, 0, size), frames)
	if err != nil {
		s.lane.e.fail(err)
	}
	return &parcel{head: h, body: [][]byte{b}}
}

// answered makes a message of rows that were asked for.
func (s *server) answered(sub *subscriber) *parcel {
	var frames []Frame
	size := 0
	for len(sub.answers) > 0 && size < s.lane.e.cfg.Message {
		r := &sub.answers[0]
		p := s.lane.e.params[r.Param]
		n := min(int(r.N), p.fit(s.lane.e.cfg.Message-size))
		frames = s.frame(sub, frames, p, r.Row, int32(n))
		size += p.framed(r.Row, n)
		r.Row, r.N = r.Row+int32(n), r.N-int32(n)
		if r.N == 0 {
			sub.answers = sub.answers[1:]
		}
	}
	slices.SortStableFunc(frames, func(a, b Frame) int {
		if a.Ref.Param != b.Ref.Param {
			return int(a.Ref.Param) - int(b.Ref.Param)
		}
		return int(a.Ref.Row) - int(b.Ref.Row)
	})
	return s.rows(header{kind: kindRows, lane: s.lane.index, clock: s.clocks.min(),
		version: s.pushes}, frames)
}

// collect takes the next changed rows of a pass, no more than a message.
func (s *server) collect(sub *subscriber, most int) []Frame {
	var frames []Frame
	size := 0
	for sub.at.param < len(s.lane.params) && size < most {
		i := sub.at.param
		p := s.lane.params[i]
		from, to := wanted(sub, i, sub.at.row, p.rows)
		if from == p.rows {
			sub.at = cursor{i + 1, 0}
			continue
		}
		to = min(to, from+p.fit(most-size))
		frames = s.frame(sub, frames, p, int32(from), int32(to-from))
		sub.dirty[i].clearRange(from, to-from)
		size += p.framed(int32(from), to-from)
		sub.at.row = to
	}
	return frames
}

// fit is how many rows one frame of so many bytes has, one at least.
func (p *param) fit(bytes int) int {
	if p.kind != nil {
		return 1
	}
	return max(1, bytes/(4*p.cols))
}

// framed is about how many bytes a frame of this node's rows is.
func (p *param) framed(row int32, n int) int {
	if p.kind != nil {
		return p.master.get(int(p.slot[row]), 1).WireSize() + headerSize
	}
	return n*p.cols*4 + headerSize
}

// wanted is the next run of rows that a node wants and that have changed.
func wanted(sub *subscriber, i, row, rows int) (from, to int) {
	for row < rows {
		from, to = sub.dirty[i].run(row, rows)
		if from = sub.wants[i].next(from, to); from < to {
			end := from
			for end < to && sub.wants[i].has(end) {
				end++
			}
			return from, end
		}
		row = to
	}
	return rows, rows
}

// frame appends rows as they are, in runs that lie together, by versions if updates are
// tagged with them.
func (s *server) frame(sub *subscriber, frames []Frame, p *param, row, n int32) []Frame {
	l := s.lane
	step := n
	if l.tagged != nil || p.kind != nil {
		step = 1
	}
	for at := row; at < row+n; at += step {
		r := Ref{p.id, at, step}
		tag := slices.Min(p.folded[p.slot[at] : p.slot[at]+step])
		if l.tagged != nil {
			tag = l.tagged.rule.Snapshot(r)
			row := rowOf{p.id, r.Row}
			sub.given[row] = append(sub.given[row], tag)
		}
		u := p.master.get(int(p.slot[at]), int(step))
		if l.plan.DownF != nil {
			u, _ = l.plan.DownF.Split(&Entry{Ref: r, U: u}, s.clocks.min(), Link{})
		}
		frames = append(frames, Frame{r, 0, tag, l.e.cfg.View.Epoch, u})
	}
	return frames
}

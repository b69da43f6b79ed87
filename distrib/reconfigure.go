package distrib

import (
	"context"
	"errors"
	"fmt"
)

// ErrLeft is what the workers of a node get that has left its view.
var ErrLeft = errors.New("distrib: this node has left")

// RowsLostError says that nodes are gone with rows that nobody else has: only a checkpoint
// does. Nothing has changed; the next step is to make new engines from one, see [Restore].
type RowsLostError struct {
	Nodes []NodeID
	Epoch int64 // that cannot begin
}

// Error is one line.
func (e *RowsLostError) Error() string {
	return fmt.Sprintf("epoch %d cannot begin: the rows of node %v are lost: restore a "+
		"checkpoint", e.Epoch, e.Nodes)
}

// move is a change of views that is going on.
type move struct {
	stay     []NodeID           // nodes of the old view that take part, ascending
	round    Clock              // of draining
	drained  map[NodeID][2]bool // whose streams of updates and rows have ended in this round
	clocks   map[NodeID]Clock   // of the nodes' workers, as they said
	closed   bool               // nothing of the old view leaves any more
	joins    bool               // this node is new, and has no old view
	ends     uint64             // nodes that have sent all rows of the new view
	replicas bool               // whole replicas are sent, since some may differ
}

// views changes the view of a node.
type views struct {
	e      *Engine
	moving *move // a new view is on its way; nil: none
	paused bool  // workers wait for it
}

// Reconfigure makes another view the present one. All nodes of the old view that live call
// it with the same view, of a later epoch, and so do those that leave; nodes that join
// are made with Config.Joins. Workers wait the while, wherever they are.
//
// First the old view is drained: all that is pending is sent, filters or not, and every
// node tells every other that nothing comes after it, as often as an update has hops.
// Then rows go to their new owners, with what rules keep of them, and replicas to those
// who join; messages of the new epoch wait until these have come. Who joins begins at the
// least clock of all, plus one.
//
// A lost node takes with it what it had not sent; what it had sent counts. If it owned
// rows that others do not hold exactly, nothing is changed and the error is a
// *[RowsLostError]. Other errors end the engine.
func (e *Engine) Reconfigure(ctx context.Context, v View) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.views.moving != nil && e.views.moving.joins {
		if err := e.views.joined(ctx); err != nil {
			return err
		}
	}
	if err := e.views.admissible(v); err != nil {
		return err
	}
	m := &move{clocks: map[NodeID]Clock{}}
	for _, id := range e.mail.all {
		if e.mail.lost[id] == nil {
			m.stay = append(m.stay, id)
		}
	}
	if err := e.views.recoverable(v, m); err != nil {
		return err
	}
	e.views.moving, e.views.paused = m, true
	e.wake()
	err := e.views.drain(ctx, m)
	if err == nil {
		err = e.views.switchTo(ctx, v, m)
	}
	e.views.moving, e.views.paused = nil, false
	if err != nil {
		e.fail(err)
	}
	if errors.Is(err, ErrLeft) {
		return nil
	}
	e.wake()
	return err
}

// Joined waits until this node, made with Config.Joins, has what it needs of the others,
// and returns the clock in which its workers begin.
func (e *Engine) Joined(ctx context.Context) (Clock, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.views.joined(ctx)
	return e.workers.clock, err
}

func (vs *views) admissible(v View) error {
	switch {
	case vs.e.err != nil:
		return vs.e.err
	case !vs.e.started:
		return errors.New("distrib: a view cannot change before parameters are attached")
	case v.Epoch <= vs.e.cfg.View.Epoch:
		return fmt.Errorf("distrib: epoch %d comes after epoch %d", v.Epoch, vs.e.cfg.View.Epoch)
	case vs.moving != nil:
		return errors.New("distrib: the view is changing already")
	case v.Self != vs.e.self:
		return fmt.Errorf("distrib: node %d becomes node %d", vs.e.self, v.Self)
	}
	return v.distinct()
}

// recoverable reports what is lost with the nodes that are.
func (vs *views) recoverable(v View, m *move) error {
	var gone []NodeID
	for _, id := range vs.e.mail.all {
		if vs.e.mail.lost[id] == nil {
			continue
		}
		if v.has(id) {
			return fmt.Errorf("distrib: node %d is in the view of epoch %d and is lost", id,
				v.Epoch)
		}
		for _, l := range vs.e.lanes {
			if l.mode == served && contains(l.owners, id) {
				gone = insert(gone, id)
			}
			m.replicas = m.replicas || l.mode != served
		}
	}
	if gone != nil {
		return &RowsLostError{gone, v.Epoch}
	}
	return nil
}

// hops is how many nodes an update of the old view may go through, and one more.
func (vs *views) hops() Clock {
	most := Clock(1)
	for _, l := range vs.e.lanes {
		switch l.mode {
		case graph:
			most = max(most, Clock(len(vs.e.members)))
		case flow:
			most = max(most, 2)
			if _, ok := l.plan.Topology.(Relaying); ok {
				most = max(most, Clock(len(vs.e.mail.all))+1)
			}
		}
	}
	return most
}

// drain sends all that the old view still has to send and waits for what others have.
func (vs *views) drain(ctx context.Context, m *move) error {
	for m.round = 1; m.round <= vs.hops(); m.round++ {
		m.drained = map[NodeID][2]bool{}
		vs.pushOut()
		for _, id := range m.stay {
			for _, k := range []kind{kindDrained, kindEnded} {
				vs.e.mail.post(id, &parcel{head: header{kind: k, clock: m.round},
					marks: []mark{{vs.e.self, vs.e.workers.clock}}})
			}
		}
		err := vs.e.wait(ctx, waiting{
			ready: func() bool { return len(m.pending()) == 0 }, clock: vs.e.workers.clock,
			what: func() string { return "the end of an epoch" }, who: m.pending, moves: true,
		})
		if err != nil {
			return err
		}
	}
	err := vs.e.wait(ctx, waiting{ready: vs.e.sender.idle, clock: vs.e.workers.clock,
		moves: true, who: vs.e.mail.slow,
		what: func() string { return "the last messages of an epoch" }})
	if err != nil {
		return err
	}
	m.closed = true
	for _, l := range vs.e.lanes {
		if l.server != nil {
			l.server.release(func(Clock) bool { return true })
		}
	}
	return nil
}

// pushOut dispatches every pending update, and what owners have added up.
func (vs *views) pushOut() {
	for _, l := range vs.e.lanes {
		if l.mode == local {
			continue
		}
		for _, b := range l.outbox.boxes {
			b.wanted = false
			items := b.take(func(*item) bool { return true })
			if len(items)+len(b.marks) > 0 {
				l.outbox.dispatch(b, items, header{paths: b.paths})
			}
		}
		if l.server != nil {
			l.server.release(func(Clock) bool { return true })
		}
		if l.server != nil && l.mode == flow {
			l.server.sums.flush(children(l, vs.e.self))
		}
	}
}

// pending is who has not ended the round.
func (m *move) pending() []NodeID {
	var ids []NodeID
	for _, id := range m.stay {
		if m.drained[id] != [2]bool{true, true} {
			ids = append(ids, id)
		}
	}
	return ids
}

// takeDrained notes that a stream of a node has ended a round.
func (vs *views) takeDrained(from NodeID, h header, marks []mark) {
	m := vs.moving
	d := m.drained[from]
	d[h.kind-kindDrained] = true
	m.drained[from] = d
	for _, k := range marks {
		m.clocks[k.of] = k.at
	}
}

// switchTo enters the new view, sends what others must have of this node, and waits for
// what this node must have.
func (vs *views) switchTo(ctx context.Context, v View, m *move) error {
	base := endOfTime
	for _, id := range m.stay {
		base = min(base, m.clocks[id])
	}
	if base == endOfTime {
		return errors.New("distrib: the workers of all nodes have ended")
	}
	old := vs.e.mail.all
	outgoing, err := vs.relayout(v, m, base)
	if err != nil {
		return err
	}
	if vs.e.mail.gone[vs.e.self] {
		for _, id := range vs.e.mail.all {
			vs.e.mail.post(id, &parcel{head: header{kind: kindBye}})
		}
	}
	vs.e.wake() // messages of the new epoch may come in
	for _, id := range vs.e.mail.all {
		for _, s := range outgoing[id] {
			vs.e.mail.post(id, s)
		}
		end := header{kind: kindMoved, flags: endsRows, clock: base, ack: uint64(len(m.stay))}
		vs.e.mail.post(id, &parcel{head: end, marks: vs.clockMarks(m, base)})
	}
	if !v.has(vs.e.self) {
		err := vs.e.wait(ctx, waiting{ready: vs.e.sender.delivered, clock: base,
			what: func() string { return "the last rows" }, who: vs.e.mail.slow, moves: true})
		return errors.Join(ErrLeft, err)
	}
	vs.e.cfg.Log(fmt.Sprintf("node %d: epoch %d with node %v after node %v, from clock %d",
		vs.e.self, v.Epoch, vs.e.mail.all, old, base))
	return vs.e.wait(ctx, waiting{ready: func() bool { return m.ends == uint64(len(m.stay)) },
		clock: base, what: func() string { return "rows of the new epoch" },
		who: func() []NodeID { return m.stay }, moves: true})
}

// clockMarks are the clocks of all members as the new view begins.
func (vs *views) clockMarks(m *move, base Clock) []mark {
	var marks []mark
	for _, id := range vs.e.members {
		at, ok := m.clocks[id]
		if !ok {
			at = base + 1
		}
		marks = append(marks, mark{id, at})
	}
	return marks
}

// neededFor is the nodes without which a wait cannot end.
func (vs *views) neededFor(w waiting) []NodeID {
	switch {
	case vs.moving == nil || vs.moving.joins:
		return vs.e.needed()
	case w.moves:
		return vs.moving.stay
	}
	return nil
}

package distrib

import (
	"context"
	"fmt"
	"slices"
)

// worker is one of a node's workers: a clock, its own copy of the parameters, and which
// of their rows have changed in the replica since.
type worker struct {
	e     *Engine
	index int
	clock Clock
	ps    []*Param
	stale []bitset
	ended bool
	// from is what the values that it computes from hold, by lane and owner: how many messages
	// of updates when it first read in its clock. fresh says that it has not read in it yet.
	from  []map[NodeID]Version
	fresh bool
}

// workers are those of a node.
type workers struct {
	e     *Engine
	list  []*worker
	clock Clock // the least of theirs
}

// Attach declares the parameters.
func (w *worker) Attach(ps ...*Param) error {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.ps != nil {
		return fmt.Errorf("distrib: worker %d attaches twice", w.index)
	}
	if err := e.attach(ps); err != nil {
		return err
	}
	for _, p := range ps {
		p.fill()
	}
	w.ps = slices.Clone(ps)
	w.allStale()
	return nil
}

// allStale notes that the worker has read nothing yet.
func (w *worker) allStale() {
	for _, p := range w.e.params {
		s := newBitset(p.rows)
		s.setRange(0, p.rows)
		w.stale = append(w.stale, s)
	}
}

// ready reports why a worker may not be used.
func (w *worker) ready() error {
	switch {
	case w.ps == nil:
		return fmt.Errorf("distrib: worker %d has attached no parameters", w.index)
	case w.ended:
		return errClosed
	}
	return w.e.err
}

// Push hands an update over.
func (w *worker) Push(ctx context.Context, ref Ref, u Update) error {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := w.ready(); err != nil {
		return err
	}
	if len(e.mail.lost) > 0 {
		if err := e.mail.lostError(e.needed()); err != nil {
			return err
		}
	}
	p, ref, err := e.resolve(ref)
	if err != nil {
		return err
	}
	if err := p.check(u, ref.N); err != nil {
		return fmt.Errorf("distrib: parameter %s: %w", p.name, err)
	}
	if err := w.room(ctx, p, p.cost(u)*int64(p.lane.outbox.copies())); err != nil {
		return err
	}
	p.lane.outbox.push(w, p, ref, u)
	e.nudge()
	return nil
}

// room waits until so many bytes fit into the outbox.
func (w *worker) room(ctx context.Context, p *param, bytes int64) error {
	e := w.e
	out := &e.mail.out
	if bytes > out.bound || p.lane.mode == local && out.total()+bytes > out.bound {
		return &BoundError{bytes, out.bound, p.name}
	}
	fits := func() bool { return !e.views.paused && out.total()+bytes <= out.bound }
	if fits() {
		return nil
	}
	e.sender.pressed = true
	e.audit.Blocked++
	e.nudge()
	err := e.wait(ctx, waiting{
		ready: fits, clock: w.clock,
		what: func() string { return "room in the outbox for " + p.name },
		who:  e.mail.slow,
	})
	e.sender.pressed = false
	return err
}

// addToReplica adds an update to what this node's workers read.
func (ws *workers) addToReplica(p *param, ref Ref, u Update) {
	p.replica.add(int(ref.Row), int(ref.N), u)
	ws.touch(p, ref)
}

// fold adds a node's update to a replica, and has the journal know.
func (ws *workers) fold(from NodeID, at Clock, p *param, ref Ref, u Update) {
	if j := ws.e.record.open(); j != nil {
		j.Applied(from, at, ref, u)
	}
	ws.addToReplica(p, ref, u)
}

// touch notes that rows of the replica have changed.
func (ws *workers) touch(p *param, ref Ref) {
	for _, w := range ws.list {
		if w.ps != nil {
			w.stale[p.id].setRange(int(ref.Row), int(ref.N))
		}
	}
}

// copy brings a worker's own copy of rows up to the replica.
func (w *worker) copy(p *param, ref Ref) {
	if p.lane.mode == local {
		w.alone(p, ref)
		return
	}
	stale, end := w.stale[p.id], int(ref.Row+ref.N)
	for i := int(ref.Row); i < end; {
		from, to := stale.run(i, end)
		p.replica.pull(w.ps[p.id], from, to)
		if p.lane.tagged != nil {
			p.lane.tagged.taken(w.index, p, int32(from), int32(to))
		}
		i = to
	}
	stale.clearRange(int(ref.Row), int(ref.N))
}

// alone is copy for workers on their own: what the node has pushed since the last barrier waits for
// the next one, and counts until then.
func (w *worker) alone(p *param, ref Ref) {
	from, to := int(ref.Row)*p.cols, int(ref.Row+ref.N)*p.cols
	dst := w.ps[p.id].Data[from:to]
	copy(dst, p.rowsOf(ref))
	for _, it := range p.lane.outbox.box(p.lane.e.self, 0).items {
		if it.p == p && it.Ref.Row < ref.Row+ref.N && ref.Row < it.Ref.Row+it.Ref.N {
			it.addTo(dst, ref.Row, ref.N)
		}
	}
	w.stale[p.id].clearRange(int(ref.Row), int(ref.N))
}

// Tick ends the worker's clock. When all workers of the node have ended it, what is due
// leaves, and what is to be done at a barrier is done.
func (w *worker) Tick(ctx context.Context) (Clock, error) {
	e := w.e
	if j := e.cfg.Journal; j != nil {
		j.Room()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := w.ready(); err != nil {
		return w.clock, err
	}
	if len(e.mail.lost) > 0 {
		if err := e.mail.lostError(e.needed()); err != nil {
			return w.clock, err
		}
	}
	if e.views.paused {
		err := e.wait(ctx, waiting{ready: func() bool { return !e.views.paused }, clock: w.clock,
			what: func() string { return "a new view" }, who: func() []NodeID { return nil }})
		if err != nil {
			return w.clock, err
		}
	}
	w.clock++
	w.fresh = true
	err := e.workers.ticked(ctx)
	if at := w.clock; err == nil && e.barriers.done < at && e.barriers.meets(at) {
		err = e.wait(ctx, waiting{ready: func() bool { return e.barriers.done >= at }, clock: at,
			what: func() string { return "the barrier" }, who: func() []NodeID { return nil }})
	}
	return w.clock, err
}

// ticked ends clocks of the node that all its workers have ended.
func (ws *workers) ticked(ctx context.Context) error {
	least := endOfTime
	for _, w := range ws.list {
		if !w.ended {
			least = min(least, w.clock)
		}
	}
	for ws.clock < least && least < endOfTime {
		ws.flush(ws.clock)
		ws.clock++
		if err := ws.e.barriers.reach(ctx); err != nil {
			return err
		}
	}
	ws.e.record.offer()
	ws.e.wake()
	return nil
}

// Close sends what is pending, and ends. The node goes on to serve its rows until the
// workers of all nodes have ended; nobody waits for clocks of this one any more.
func (w *worker) Close() error {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.ended {
		return nil
	}
	w.ended = true
	if !e.started || e.err != nil {
		return e.err
	}
	for _, o := range e.workers.list {
		if !o.ended {
			return e.workers.ticked(context.Background())
		}
	}
	return e.workers.end()
}

// end sends all that the node's workers have left, and waits until it has gone.
func (ws *workers) end() error {
	ws.clock = endOfTime - 1
	ws.flush(ws.clock)
	ws.clock = endOfTime
	ws.e.mail.gone[ws.e.self] = true
	for _, id := range ws.e.mail.all {
		if id != ws.e.self {
			ws.e.mail.post(id, &parcel{head: header{kind: kindBye}})
		}
	}
	ws.e.wake()
	err := ws.e.wait(context.Background(), waiting{
		ready: func() bool {
			return ws.e.sender.delivered() || ws.e.mail.lostError(ws.e.needed()) != nil
		},
		clock: endOfTime, what: func() string { return "the last updates" },
		who: ws.e.mail.slow,
	})
	if err == nil {
		err = ws.e.mail.lostError(ws.e.mail.unsent())
	}
	return err
}

// flush ends clock now of the node: what must leave is put into parcels, with the clock
// on the last one for each destination.
func (ws *workers) flush(now Clock) {
	ways := waysOf(ws.e.t)
	for _, l := range ws.e.lanes {
		switch l.mode {
		case served, flow:
			for _, id := range l.owners {
				l.outbox.flushOwner(id, now, ways)
				if l.tagged != nil && !last(now) {
					l.outbox.giveBack(id)
				}
			}
		case carry:
			l.outbox.flushDrawn(now, ways)
		case graph:
			l.outbox.flushGraph(now)
		}
	}
}

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
	if err := w.room(ctx, p, p.cost(u)*int64(p.lane.copies())); err != nil {
		return err
	}
	p.lane.push(w, p, ref, u)
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

// copies is into how many boxes an update goes, at most.
func (l *lane) copies() int {
	switch l.mode {
	case graph:
		return len(l.routes.own)
	case carry:
		return len(l.e.members) - 1
	}
	return 1
}

// push puts an update where it must go.
func (l *lane) push(w *worker, p *param, ref Ref, u Update) {
	e := l.e
	p.ledger.push(&e.cfg, u, l.copies())
	switch l.mode {
	case served, flow:
		for _, r := range p.runs(ref) {
			l.pushRows(w, p, ref, r, u)
		}
		if l.rmw {
			e.workers.addToReplica(p, ref, u)
		}
		return
	case local:
		l.box(e.self, 0).add(p, Entry{Ref: ref, Dest: e.self, Made: w.clock, U: u})
		return
	case graph:
		for _, h := range l.routes.own {
			l.box(h.to, h.paths).add(p, Entry{Ref: ref, Dest: h.to, Made: w.clock, U: u})
		}
	case carry:
		for _, id := range e.members {
			if id != e.self {
				l.box(id, 0).add(p, Entry{Ref: ref, Dest: id, Made: w.clock, U: u})
			}
		}
	}
	e.workers.fold(e.self, w.clock, p, ref, u)
}

// pushRows is for rows of one owner. Where rows go by priority, or by what they were
// computed from, each goes on its own.
func (l *lane) pushRows(w *worker, p *param, ref Ref, r run, u Update) {
	step := r.n
	if l.plan.Pacer != nil || l.tagged != nil {
		step = 1
	}
	for row := r.row; row < r.row+r.n; row += step {
		part := u
		if step != ref.N {
			part = Slice(u, p.cols, int(row-ref.Row), int(step))
		}
		if part == nil {
			continue
		}
		en := Entry{Ref: Ref{p.id, row, step}, Dest: r.owner, Made: w.clock, U: part}
		if l.tagged != nil {
			en.Tag = l.tagged.of(w.index, p, row)
		}
		l.box(r.owner, 0).add(p, en)
	}
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

// readable reports whether a worker may read rows, and asks for those that are missing.
func (l *lane) readable(w *worker, p *param, ref Ref, need Clock) bool {
	if l.e.views.paused {
		return false
	}
	switch l.mode {
	case served:
		return l.fresh(p, ref, need)
	case flow:
		return l.reached(p, ref, need)
	case local:
		return true
	}
	return l.cons.MayRead(w.clock, l.seen.of, l.e.members)
}

// reached reports whether the owners of rows have told of a clock.
func (l *lane) reached(p *param, ref Ref, need Clock) bool {
	if l.age.min() >= need {
		return true
	}
	for _, id := range p.owner[ref.Row : ref.Row+ref.N] {
		if l.age.of(id) < need {
			return false
		}
	}
	return true
}

// awaited is who keeps rows from being read.
func (l *lane) awaited(p *param, ref Ref, need Clock) []NodeID {
	if l.mode == graph || l.mode == carry {
		return l.seen.behind(nil, need)
	}
	var ids []NodeID
	for i := ref.Row; i < ref.Row+ref.N; i++ {
		if !contains(ids, p.owner[i]) && (p.ages != nil || l.age.of(p.owner[i]) < need ||
			p.reads != nil && p.reads[i] != live) {
			ids = insert(ids, p.owner[i])
		}
	}
	return ids
}

// probe asks the owners of rows who keeps them waiting.
func (l *lane) probe(p *param, ref Ref, need Clock) {
	if l.mode != served && l.mode != flow {
		return
	}
	for _, id := range l.awaited(p, ref, need) {
		l.e.mail.post(id, &parcel{head: header{kind: kindWho, lane: l.index, clock: need}})
	}
}

// tellBehind answers a probe. An owner that itself keeps the rows back names nobody.
func (l *lane) tellBehind(to NodeID, h header) error {
	if l.server == nil {
		return badFrame("node %d is asked about rows that it does not own", l.e.self)
	}
	var marks []mark
	for _, id := range l.server.clocks.behind(nil, h.clock) {
		marks = append(marks, mark{id, l.server.clocks.of(id)})
	}
	l.e.mail.post(to, &parcel{head: header{kind: kindBehind, lane: l.index}, marks: marks})
	return nil
}

// blamed is who keeps rows from being read: workers that their owners have named, or else
// the owners.
func (l *lane) blamed(p *param, ref Ref, need Clock) []NodeID {
	owners := l.awaited(p, ref, need)
	var ids []NodeID
	for _, id := range owners {
		for _, m := range l.behind[id] {
			if m.at < need {
				ids = insert(ids, m.of)
			}
		}
	}
	if ids == nil {
		return owners
	}
	return ids
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
	for _, it := range p.lane.box(p.lane.e.self, 0).items {
		if it.p == p && it.Ref.Row < ref.Row+ref.N && ref.Row < it.Ref.Row+it.Ref.N {
			it.addTo(dst, ref.Row, ref.N)
		}
	}
	w.stale[p.id].clearRange(int(ref.Row), int(ref.N))
}

// version is of the oldest of some rows.
func (l *lane) version(p *param, ref Ref) Version {
	switch l.mode {
	case served:
		return slices.Min(p.versions[ref.Row : ref.Row+ref.N])
	case flow:
		least := endOfTime
		for _, id := range p.owner[ref.Row : ref.Row+ref.N] {
			least = min(least, l.age.of(id))
		}
		return Version(least)
	case local:
		return Version(l.e.workers.clock)
	}
	return Version(l.seen.min())
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
				l.flushOwner(id, now, ways)
				if l.tagged != nil && !last(now) {
					l.giveBack(id)
				}
			}
		case carry:
			l.flushDrawn(now, ways)
		case graph:
			l.flushGraph(now)
		}
	}
}

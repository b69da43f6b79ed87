package distrib

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
)

// Engine is a node of a view at work: its workers, the rows that it owns, and one
// goroutine that sends. Nothing else sends, so the order of messages is the order in which
// they were decided on. What comes in is folded into state under one lock, by the
// transport's goroutines, which never wait for anything but that lock.
type Engine struct {
	monitor // the one lock
	tables
	cfg  Config
	self NodeID
	t    Transport

	mail     mail
	sender   sender
	workers  workers
	views    views
	barriers barriers
	record   record
	eras     eras

	members []NodeID // workers of the view, ascending
	closing bool
	started bool
	order   uint64
	saving  sync.WaitGroup
	audit   Audit
	hash    uint64 // of the parameters
}

// New makes a node. It does nothing before parameters are attached; what other nodes
// send before that waits in the transport.
func New(c Config) (*Engine, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: c, self: c.View.Self, t: c.Transport}
	e.monitor = monitor{cfg: &e.cfg, kick: make(chan struct{}, 1), hopeless: e.hopeless}
	e.mail = mail{m: &e.monitor, cfg: &e.cfg, audit: &e.audit, lost: map[NodeID]error{},
		gone: map[NodeID]bool{}}
	e.sender = sender{e: e, done: make(chan struct{})}
	e.workers = workers{e: e, clock: c.Start}
	e.views, e.barriers, e.record = views{e: e}, barriers{e: e}, record{e: e}
	e.eras = eras{saves: c.Saves, scanned: c.Start}
	e.enter(c.View)
	for i := range c.Workers {
		w := &worker{e: e, index: i, clock: c.Start, fresh: true}
		e.workers.list = append(e.workers.list, w)
	}
	if len(e.workers.list) == 0 {
		e.workers.clock = endOfTime
	}
	if c.Joins {
		e.views.moving, e.views.paused = &move{joins: true, clocks: map[NodeID]Clock{}}, true
	}
	return e, nil
}

// enter takes a view as the present one.
func (e *Engine) enter(v View) {
	e.cfg.View = v
	e.members = v.members(RoleWorker)
	e.mail.all = nil
	for _, n := range v.Nodes {
		e.mail.all = insert(e.mail.all, n.ID)
	}
	e.mail.links = map[NodeID]*link{}
	for _, id := range e.mail.all {
		e.mail.links[id] = newLink()
	}
}

// Worker is the i-th worker of this node, for one goroutine's use.
func (e *Engine) Worker(i int) Synchronizer { return e.workers.list[i] }

// Workers is how many there are.
func (e *Engine) Workers() int { return len(e.workers.list) }

// Attach declares the parameters on a node without workers, with the values that the
// others begin with.
func (e *Engine) Attach(ps ...*Param) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attach(ps)
}

// attach prepares everything for the first who declares the parameters, and compares for
// the others.
func (e *Engine) attach(ps []*Param) error {
	if err := checkParams(ps); err != nil {
		return err
	}
	if e.started {
		if e.hash != hashOf(ps) {
			return errors.New("distrib: workers of a node attach different parameters")
		}
		return nil
	}
	if e.closing {
		return errClosed
	}
	if err := e.layOut(ps); err != nil {
		return err
	}
	if err := e.loadState(e.cfg.Restored, e.self); err != nil {
		return err
	}
	if err := e.record.check(); err != nil {
		return err
	}
	e.chooseOutbox()
	e.record.offer()
	e.hash, e.started = hashOf(ps), true
	for _, id := range e.mail.all {
		if id != e.self {
			e.mail.post(id, &parcel{head: header{kind: kindHello, clock: e.cfg.Start, ack: e.hash}})
		}
	}
	go e.sender.run()
	e.t.Serve(handler{e})
	return nil
}

// layOut makes lanes and the state of every parameter.
func (e *Engine) layOut(ps []*Param) error {
	plans := map[*Plan]*lane{}
	for i, p := range ps {
		l := plans[p.Sync]
		if l == nil {
			plan := e.cfg.Plan
			if p.Sync != nil {
				plan = *p.Sync
			}
			if plan.Topology == nil {
				plan.Topology = &Shards{}
			}
			if err := plan.Bind(e.cfg.View, ps); err != nil {
				return err
			}
			var err error
			if l, err = newLane(e, len(e.lanes), plan); err != nil {
				return err
			}
			plans[p.Sync] = l
			e.lanes = append(e.lanes, l)
		}
		if err := e.add(ParamID(i), p, l); err != nil {
			return err
		}
	}
	for _, l := range e.lanes {
		if l.client.base = e.cfg.Start; e.cfg.Joins {
			l.client.base = -1
		}
		if err := l.start(e.cfg.Start); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) add(id ParamID, p *Param, l *lane) error {
	if err := l.admits(p); err != nil {
		return err
	}
	q := &param{id: id, name: p.Name, rows: p.Rows, cols: p.Cols, kind: p.Kind, lane: l}
	e.params = append(e.params, q)
	l.params = append(l.params, q)
	if l.mode == served || l.mode == flow {
		if err := l.place(q, p); err != nil {
			return err
		}
	}
	if len(e.workers.list) == 0 && l.mode == served {
		return nil
	}
	q.replica = q.newStore(p.Rows)
	q.replica.begin(0, p, 0, p.Rows)
	if l.mode == served {
		q.reads, q.lacking = make([]read, q.rows), q.rows
		q.versions = make([]Version, q.rows)
		if e.cfg.OnDemand {
			q.ages = make([]Clock, q.rows)
		}
	}
	return nil
}

func checkParams(ps []*Param) error {
	if len(ps) == 0 {
		return errors.New("distrib: no parameters are attached")
	}
	names := map[string]bool{}
	for _, p := range ps {
		switch {
		case p.Rows <= 0 || p.Cols <= 0 || p.Rows > 1<<31-1 || p.Cols > 1<<31-1:
			return fmt.Errorf("distrib: parameter %s has %d x %d elements", p.Name, p.Rows, p.Cols)
		case p.Kind == nil && len(p.Data) != p.Rows*p.Cols:
			return fmt.Errorf("distrib: parameter %s of %d x %d has %d values", p.Name, p.Rows,
				p.Cols, len(p.Data))
		case names[p.Name]:
			return fmt.Errorf("distrib: two parameters are called %s", p.Name)
		}
		if p.Kind != nil {
			if err := p.checkCells(); err != nil {
				return err
			}
		}
		names[p.Name] = true
	}
	return nil
}

// hashOf is the same on all nodes that declare the same parameters.
func hashOf(ps []*Param) uint64 {
	h := fnv.New64a()
	for _, p := range ps {
		fmt.Fprintf(h, "%q %d %d %v\n", p.Name, p.Rows, p.Cols, p.Sync == nil)
		if p.Kind != nil {
			fmt.Fprintf(h, "kind %q\n", p.Kind.Name())
		}
	}
	return h.Sum64()
}

var errClosed = errors.New("distrib: closed")

// Done is closed when the node has nothing to do any more: the workers of all nodes have
// ended, or it was closed.
func (e *Engine) Done() <-chan struct{} { return e.sender.done }

// Close ends the node at once, whatever others still want of its rows, and waits for what
// is being saved.
func (e *Engine) Close() error {
	e.mu.Lock()
	started := e.started
	e.closing = true
	if e.err == nil {
		e.err = errClosed
	}
	e.wake()
	e.mu.Unlock()
	if started {
		<-e.sender.done
	}
	e.saving.Wait()
	return nil
}

package distrib

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"
)

// Engine is a node of a view at work: its workers, the rows that it owns, and one
// goroutine that sends. Nothing else sends, so the order of messages is the order in which
// they were decided on. What comes in is folded into state under one lock, by the
// transport's goroutines, which never wait for anything but that lock.
type Engine struct {
	cfg  Config
	self NodeID
	t    Transport
	done chan struct{} // closed when the sending goroutine has ended

	finished landings      // of messages; has a lock of its own
	kick     chan struct{} // wakes the sending goroutine

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when something has happened; nil: none waits
	members []NodeID      // workers of the view, ascending
	all     []NodeID      // nodes of the view, ascending
	workers []*worker
	params  []*param
	lanes   []*lane
	clock   Clock // the least of this node's workers
	links   map[NodeID]*link
	out     usage
	lost    map[NodeID]error
	gone    map[NodeID]bool // nodes whose workers have ended
	err     error           // what ended the engine
	closing bool
	started bool
	paused  bool // a new view is on its way
	pressed bool // a push waits for memory
	order   uint64
	eras    []Clock // at which rows are saved, up to scanned
	scanned Clock
	again   time.Duration // after which there may be something to send
	saving  sync.WaitGroup
	barrier Clock // up to which everything that is done at barriers is done
	meeting bool  // everybody is to have all updates: none waits on its way
	moving  *move // a new view is on its way
	apart   bool  // a barrier's work goes on: updates of others wait
	audit   Audit
	hash    uint64 // of the parameters
	rebase  bool   // the journal is to be told what replicas are before it is told more
}

// New makes a node. It does nothing before parameters are attached; what other nodes
// send before that waits in the transport.
func New(c Config) (*Engine, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: c, self: c.View.Self, t: c.Transport, clock: c.Start,
		done: make(chan struct{}), kick: make(chan struct{}, 1),
		scanned: c.Start, lost: map[NodeID]error{}, gone: map[NodeID]bool{}}
	e.enter(c.View)
	for i := range c.Workers {
		e.workers = append(e.workers, &worker{e: e, index: i, clock: c.Start, fresh: true})
	}
	if len(e.workers) == 0 {
		e.clock = endOfTime
	}
	if c.Joins {
		e.moving, e.paused = &move{joins: true, clocks: map[NodeID]Clock{}}, true
	}
	return e, nil
}

// enter takes a view as the present one.
func (e *Engine) enter(v View) {
	e.cfg.View = v
	e.members = v.members(RoleWorker)
	e.all = nil
	for _, n := range v.Nodes {
		e.all = insert(e.all, n.ID)
	}
	e.links = map[NodeID]*link{}
	for _, id := range e.all {
		e.links[id] = newLink()
	}
}

// Worker is the i-th worker of this node, for one goroutine's use.
func (e *Engine) Worker(i int) Synchronizer { return e.workers[i] }

// Workers is how many there are.
func (e *Engine) Workers() int { return len(e.workers) }

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
	if err := e.loadState(e.cfg.Restored); err != nil {
		return err
	}
	if err := e.journaled(); err != nil {
		return err
	}
	e.chooseOutbox()
	e.logged()
	e.hash, e.started = hashOf(ps), true
	for _, id := range e.all {
		if id != e.self {
			e.post(id, &parcel{head: header{kind: kindHello, clock: e.cfg.Start, ack: e.hash}})
		}
	}
	go e.pump()
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
			if l, err = e.newLane(len(e.lanes), plan); err != nil {
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
		if l.base = e.cfg.Start; e.cfg.Joins {
			l.base = -1
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
	if len(e.workers) == 0 && l.mode == served {
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

// start makes the clocks of a lane, at a clock that all members are in or past.
func (l *lane) start(at Clock) error {
	var err error
	l.told = map[NodeID]Version{}
	for _, w := range l.e.workers {
		w.from = nil // what owners have counted, they count anew
	}
	switch l.mode {
	case served, flow:
		l.age = newVectorClock(l.owners, at)
		if contains(l.owners, l.e.self) {
			l.server = newServer(l, at)
		}
		if s, ok := l.plan.Rule.(Snapshots); ok && l.mode == served {
			l.tagged = newTags(s, len(l.e.workers))
		}
	default:
		l.seen = newVectorClock(l.e.members, at)
		if l.mode == graph {
			l.routes, err = newRoutes(l.plan.Topology, l.e.members, l.e.self)
		}
	}
	return err
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

// fail ends the engine with an error that everybody who waits gets.
func (e *Engine) fail(err error) {
	if e.err == nil {
		e.err = err
		e.cfg.Log(err.Error())
	}
	e.wake()
}

// wake lets everybody who waits look again, and the sending goroutine too.
func (e *Engine) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
	e.nudge()
}

func (e *Engine) nudge() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// Done is closed when the node has nothing to do any more: the workers of all nodes have
// ended, or it was closed.
func (e *Engine) Done() <-chan struct{} { return e.done }

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
		<-e.done
	}
	e.saving.Wait()
	return nil
}

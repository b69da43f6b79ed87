package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/fabric/daemon"
	"github.com/gomem/gomem/distrib/wrap"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// Options of a [Member].
type Options struct {
	// Stall is how long one waits for others before Log is told, 0: 10 s; and Timeout when a
	// wait ends with an error, 0: 10 min, since one who evaluates or saves keeps the others
	// waiting. Who is gone is noticed at once.
	Stall, Timeout time.Duration
	Log            func(string) // nil: nobody
	// Logger is told of groups and of what breaks them, of stalls and of who is expelled; nil:
	// nobody.
	Logger *slog.Logger
	// Alive ends, with a cause, when the job goes on without this worker; nil: never.
	Alive context.Context
	// Asked ends when this process is asked to end: then it waits neither for workers that do not
	// answer, nor for long for others to form a group; nil: never.
	Asked context.Context
	// Mesh, if it has axes, is how workers lie who exchange along them, by rank: the last
	// axis varies fastest. It is for workers that do not come and go.
	Mesh collective.Mesh
	// Peers is where all workers of the mesh meet, whose devices reach each other's memory; nil:
	// theirs do not.
	Peers *Peers
	// Logging has what becomes of the worker's variables logged: of a scheme that [Scheme.Logs], by
	// workers that do not come and go.
	Logging Logging
	// Elect chooses who schedules, of a scheme whose updates are scheduled; nil: the first that is
	// there.
	Elect daemon.Elector
	// Elastic has the run go on when workers come and go; nil: it ends with the first.
	Elastic *Elastic
}

// Member is a process that trains as one worker of a job.
type Member struct {
	scheme  Scheme
	options Options
	meter   *wrap.Meter
	graph   *graph.Graph // that it trains; nil before Parallel
	fenced  func()       // stops to look whether the job goes on without this worker
	views   *views       // of a job whose workers come and go; nil otherwise
	join    joining      // of a member that is to come; nil otherwise
	bases   int64        // bytes of what variables were
	bound   int64        // bytes that exchanging may take; 0: not known yet
	stalls  atomic.Int64
	resent  atomic.Int64 // updates, to who took rows over
	before  *part        // the last one whose rows others may take over; nil: none
	rows    atomic.Int64 // bytes of what says which rows are sent

	part atomic.Pointer[part]

	calm    func() bool   // stops to look whether it is asked to end
	hurries chan struct{} // closed when it is
	hurried chan struct{} // closed when nobody hurries any more
	closing chan struct{} // closed by Close
}

// part is what a member has for one view.
type part struct {
	view  distrib.View
	below distrib.Transport
	desk  *Desk
	mux   *collective.Mux
	group *collective.Group

	exchanger *collective.Exchanger // of a scheme that exchanges within steps
	lines     map[string]*line      // of such a scheme: by axis of the mesh; "" is all
	mesh      *collective.Axes      // nil: the workers lie in none
	engine    *distrib.Engine       // of one with a plan
	daemon    *daemon.Daemon        // of one whose updates are scheduled; nil: they are not
	journal   *journal              // of its replicas; nil: none is kept

	formed atomic.Bool // it trains
}

// at is the member's part in the present view; nil of one that is still to come.
func (m *Member) at() *part { return m.part.Load() }

// Join makes a member of a view, over a transport, which is the member's from here on.
func Join(v distrib.View, t distrib.Transport, s Scheme, o Options) (*Member, error) {
	m, err := member(s, o)
	if err == nil {
		err = s.replicable(len(v.Nodes), o.Elastic)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return m, m.begin(v, t)
}

// member is one without a part in a view.
func member(s Scheme, o Options) (*Member, error) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if s.forced() && !o.Elastic.fixed() {
		return nil, fmt.Errorf("scheme %s is for workers that do not come and go, not for %d to "+
			"%d of them", s.Name, o.Elastic.Least, o.Elastic.Most)
	}
	if len(o.Mesh.Names) > 0 && (s.Plan != nil || !o.Elastic.fixed()) {
		return nil, fmt.Errorf("a mesh of workers is for schemes that exchange within steps, and "+
			"for workers that do not come and go: scheme %s", s.Name)
	}
	if o.Logging.Dir != "" && (!s.Logs() || o.Elastic != nil) {
		return nil, fmt.Errorf("a log of updates is for schemes whose workers fold them in "+
			"themselves, and for workers that do not come and go: not scheme %s", s.Name)
	}
	return &Member{scheme: s, options: o, meter: &wrap.Meter{}, hurries: make(chan struct{}),
		hurried: make(chan struct{}), closing: make(chan struct{})}, nil
}

// begin takes part in the member's first view.
func (m *Member) begin(v distrib.View, t distrib.Transport) error {
	if err := m.enter(v, t); err != nil {
		return err
	}
	if m.options.Alive != nil {
		m.fenced = m.fence(v.Self)
	}
	if m.options.Elastic != nil {
		m.views = m.watch()
	}
	if asked := m.options.Asked; asked != nil && m.calm == nil { // not when it comes back
		m.calm = context.AfterFunc(asked, m.hurry)
	}
	return nil
}

// fence ends what waits for others once the job goes on without this worker. The function that it
// returns stops to look, and then nothing is ended any more.
func (m *Member) fence(self distrib.NodeID) (stop func()) {
	o, ended := m.options, make(chan struct{})
	off := context.AfterFunc(o.Alive, func() {
		defer close(ended)
		m.at().desk.fail(o.ousted(self))
	})
	return func() {
		if !off() {
			<-ended
		}
	}
}

// unwatch looks no more at what becomes of the job.
func (m *Member) unwatch() {
	if m.fenced != nil {
		m.fenced()
	}
	if m.views != nil {
		m.views.end()
	}
	m.fenced, m.views = nil, nil
}

// enter takes part in a view.
func (m *Member) enter(v distrib.View, t distrib.Transport) error {
	p := &part{view: v, below: t}
	p.formed.Store(m.options.Elastic == nil)
	ids, o := p.nodes(), m.options
	var err error
	p.desk, err = NewDesk(m.meter.Wrap(t), ids, DeskOptions{Stall: o.Stall, Timeout: m.patience(),
		Log: m.stalled})
	if err != nil {
		return errors.Join(err, t.Close())
	}
	p.mux, err = collective.NewMux(p.desk.Transport(), collective.Options{Epoch: v.Epoch,
		Stall: o.Stall, Timeout: o.Timeout, Log: m.stalled})
	if err != nil {
		return errors.Join(err, t.Close())
	}
	if p.group, err = p.mux.Group(ids...); err != nil {
		return errors.Join(err, p.mux.Close())
	}
	if m.scheme.Plan == nil && !m.scheme.scheduled {
		if err = p.line(o.Mesh, ids); err != nil {
			return errors.Join(err, p.unline(), p.mux.Close())
		}
	}
	m.part.Store(p)
	o.Logger.Info("group", "epoch", v.Epoch, "workers", ids)
	return nil
}

// stalled is for a report of a wait that goes on.
func (m *Member) stalled(line string) {
	m.stalls.Add(1)
	m.options.Logger.Info("stall", "what", line)
	m.options.Log(line)
}

// Stalls is how often it was reported that this worker waits for others.
func (m *Member) Stalls() int64 { return m.stalls.Load() }

// Epoch is that of the view that this worker is in; 0 before the first.
func (m *Member) Epoch() int64 {
	if at := m.at(); at != nil {
		return at.view.Epoch
	}
	return 0
}

// patience is how long a desk waits for workers that are connected: for ever, unless they
// come and go, where one that hangs may not keep the others.
func (m *Member) patience() time.Duration {
	if m.options.Elastic == nil {
		return 0
	}
	return m.options.Timeout
}

// start makes an engine over a transport.
func (m *Member) start(p *part, c distrib.Config, t distrib.Transport) (err error) {
	if m.scheme.fabric() {
		p.daemon = daemon.Wrap(t, m.scheduled(p, m.bases))
		t = p.daemon
	}
	c.Transport = t
	p.engine, err = distrib.New(c)
	return err
}

// engine is how a part's engine keeps variables in step, over a transport that is still to come.
func (m *Member) engine(p *part, vars []graph.Value) distrib.Config {
	var outbox int64 // the engine's own choice, but for workers that push into it for long
	if m.scheme.alone() {
		for _, v := range vars {
			outbox += int64(m.scheme.lag()+1) * v.Type().Bytes()
		}
	}
	c := distrib.Config{View: p.view,
		Plan: *m.scheme.Plan, Workers: 1, Group: p.group, Audited: true, Outbox: outbox,
		Ordered: m.scheme.inStep(),
		Log:     m.options.Log, Stalled: m.stalled,
		Stall: m.options.Stall, Timeout: m.options.Timeout}
	if m.scheme.fabric() {
		c.Message = wholeUpdate
		ids := p.nodes()
		slices.Sort(ids)
		c.Keeps = daemon.Keeps(ids, p.view.Self, m.scheme.options.Replicas)
	}
	if p.journal != nil {
		c.Journal = p.journal
	}
	return c
}

// Rank is this worker's number. One that is still to come has the last one, so it is not the
// first.
func (m *Member) Rank() int {
	if at := m.at(); at != nil {
		return at.desk.Rank()
	}
	return m.Size() - 1
}

// Succeeds reports whether all workers before this one are gone without a word, so that it is
// the first of those that are left. It waits a moment for what becomes of them.
func (m *Member) Succeeds() bool {
	at := m.at()
	if at == nil || at.desk.Rank() == 0 {
		return false
	}
	for rank := range at.desk.Rank() {
		if !at.desk.Lost(rank) {
			return false
		}
	}
	return true
}

// Size is how many workers there are; to one that is still to come, how many there may be.
func (m *Member) Size() int {
	if at := m.at(); at != nil {
		return len(at.view.Nodes)
	}
	return m.options.Elastic.Most
}

// About says in words how the workers keep in step.
func (m *Member) About() string { return m.scheme.about }

// Factoring says which gradients the workers exchange by factors; nil: none, as where they
// come and go, since a graph has the number of workers whose factors it multiplies.
func (m *Member) Factoring() nn.Factoring {
	if !m.options.Elastic.fixed() {
		return nil
	}
	return m.scheme.Factoring(m.Size())
}

// Given says which variables' changes go by factors between steps; nil: none.
func (m *Member) Given() nn.Factoring { return m.scheme.Given() }

// Gathers says whether plans are for a network that is a [gomem.Gatherer].
func (m *Member) Gathers() bool { return m.scheme.Plan == nil && m.options.Elastic != nil }

// Parallel is a run's part in the workers', for a model's graph.
func (m *Member) Parallel(g *graph.Graph) (*train.Parallel, error) {
	m.graph = g
	var err error
	if m.bound, err = m.Bytes(g); err != nil {
		return nil, err
	}
	if m.at() == nil {
		return m.coming(), nil
	}
	return m.parallel()
}

// parallel is a run's part in the present view.
func (m *Member) parallel() (*train.Parallel, error) {
	at := m.at()
	p := &train.Parallel{Rank: m.Rank(), Workers: m.Size(), Peers: at.desk,
		Scheme:    m.scheme.settings(),
		Exchanged: m.Exchanged}
	if e := m.options.Elastic; e != nil {
		p.Elastic = m
		if e.Saved != nil {
			p.Fence = m
		}
	}
	if m.scheme.Plan == nil {
		return p, nil
	}
	vars, err := Shared(m.graph, train.Learnt(m.graph))
	m.bases = 0
	for _, v := range vars {
		m.bases += v.Type().Bytes()
	}
	if err == nil {
		at.journal, err = m.open()
	}
	if at.journal != nil {
		p.Journal = at.journal
	}
	if err == nil {
		err = m.start(at, m.engine(at, vars), at.mux.Transport())
	}
	if err != nil {
		return nil, err
	}
	p.Between = &between{part: at, member: m, elastic: m.options.Elastic != nil,
		sync: at.engine.Worker(0), vars: vars, share: m.scheme.share(m.Size()), lag: m.scheme.lag(),
		alone: m.scheme.alone()}
	return p, nil
}

// Synchronizer is that of a scheme with a plan, for tasks that bring parameters of their
// own; what they save, saving says, which may be nil. It is nil if the task is scheduled.
func (m *Member) Synchronizer(saving func(*distrib.Config)) (distrib.Synchronizer, error) {
	if m.scheme.scheduled {
		return nil, nil
	}
	at := m.at()
	c := m.engine(at, nil)
	if saving != nil {
		saving(&c)
	}
	if err := m.start(at, c, at.mux.Transport()); err != nil {
		return nil, err
	}
	return at.engine.Worker(0), nil
}

// Finish ends the synchronizer's part once all workers have done theirs, of which err came.
func (m *Member) Finish(ctx context.Context, err error) error {
	at := m.at()
	b := &between{part: at, member: m, elastic: m.options.Elastic != nil}
	if at.engine != nil {
		b.sync = at.engine.Worker(0)
	}
	if err != nil {
		return b.why(err)
	}
	if err := at.desk.Tell(ctx, nil); err != nil {
		return err
	}
	if _, err := at.desk.Hear(ctx); err != nil || b.sync == nil {
		return err
	}
	return b.End(ctx)
}

// Exchanged is what this worker has exchanged so far. Slowest and Fastest are relative to
// this one's steps.
func (m *Member) Exchanged() train.Exchanged {
	x, at := train.Exchanged{Bound: m.bound}, m.at()
	if at == nil {
		return x
	}
	if at.engine != nil {
		x.Slowest, x.Fastest = at.desk.Apart()
		x.Staleness = at.desk.Stalest()
		a := at.engine.Audit()
		x.Saved, x.Full, x.Late = a.Kept+a.Lost, a.Blocked, a.Stale
		if at.daemon != nil {
			s := at.daemon.Stats()
			x.Summed, x.Lacked, x.Resent = s.Summed, int64(s.Lacked), m.resent.Load()
			x.Memory += s.Most + s.Sparest
		}
		_, peak := at.engine.Memory()
		x.Memory += m.bases + peak.Total()
		if x.Bound == 0 { // parameters came with a task
			parts, copies := m.scheme.held(0)
			x.Bound = at.engine.Bound().Total() + parts + copies
		}
	}
	if at.journal != nil {
		x.Memory += at.journal.Stats().Peak
	}
	if m.scheme.scheduled {
		s := at.group.Stats()
		x.Memory += s.Scratch + s.PeakHeld
	}
	x.Memory += m.rows.Load()
	for _, l := range at.lines {
		s := l.exchanger.Stats()
		x.Memory += s.Scratch + s.PeakHeld
	}
	for c := range distrib.Classes {
		x.Sent += m.meter.Sent(distrib.Class(c)).Bytes
		x.Received += m.meter.Received(distrib.Class(c)).Bytes
	}
	return x
}

// Peak is the most host memory that exchanging has taken so far, beside the plan's: a
// [gomem.Meter].
func (m *Member) Peak() int64 { return m.Exchanged().Memory }

// Close ends the member's part: the others hear why, unless they have heard already. It
// returns err, or what closing came to.
func (m *Member) Close(err error) error {
	m.unwatch()
	close(m.closing)
	if m.calm != nil && !m.calm() {
		<-m.hurried
	}
	at := m.at()
	if at == nil { // it has not come
		return err
	}
	closing := at.close(err)
	if closing != nil {
		closing = fmt.Errorf("the connection to other workers: %w", closing)
	}
	return cmp.Or(err, closing)
}

// close ends a part, and tells the others why.
func (p *part) close(why error) error {
	p.desk.Leave(why)
	var closing error
	switch {
	case p.exchanger != nil:
		closing = p.unline()
	case p.engine != nil:
		closing = p.engine.Close()
		if p.daemon != nil {
			closing = errors.Join(closing, p.daemon.Close())
		} else {
			closing = errors.Join(closing, p.mux.Transport().Close())
		}
		p.journal.close()
	}
	return errors.Join(closing, p.group.Close(), p.mux.Close())
}

package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/wrap"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/train"
)

// Options of a [Member].
type Options struct {
	// Stall is how long one waits for others before Log is told, 0: 10 s; and Timeout when a
	// wait ends with an error, 0: 10 min, since one who evaluates or saves keeps the others
	// waiting. Who is gone is noticed at once.
	Stall, Timeout time.Duration
	Log            func(string) // nil: nobody
	// Alive ends, with a cause, when the job goes on without this worker; nil: never.
	Alive context.Context
}

// Member is a process that trains as one worker of a job.
type Member struct {
	scheme  Scheme
	view    distrib.View
	options Options
	meter   *wrap.Meter
	desk    *Desk
	mux     *collective.Mux
	group   *collective.Group
	fenced  func() bool // stops to look whether the job goes on without this worker

	exchanger *collective.Exchanger // of a scheme that exchanges within steps
	engine    *distrib.Engine       // of one with a plan
	bases     int64                 // bytes of what variables were
	bound     int64                 // bytes that exchanging may take; 0: not known yet
}

// Join makes a member of a view, over a transport, which is the member's from here on.
func Join(v distrib.View, t distrib.Transport, s Scheme, o Options) (*Member, error) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Minute)
	m := &Member{scheme: s, view: v, options: o, meter: &wrap.Meter{}}
	var ids []distrib.NodeID
	for _, n := range v.Nodes {
		ids = append(ids, n.ID)
	}
	var err error
	m.desk, err = NewDesk(m.meter.Wrap(t), ids, DeskOptions{Stall: o.Stall, Log: o.Log})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if o.Alive != nil {
		m.fenced = context.AfterFunc(o.Alive, func() { m.desk.fail(context.Cause(o.Alive)) })
	}
	m.mux, err = collective.NewMux(m.desk.Transport(), collective.Options{Epoch: v.Epoch,
		Stall: o.Stall, Timeout: o.Timeout, Log: o.Log})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if m.group, err = m.mux.Group(ids...); err != nil {
		return nil, errors.Join(err, m.mux.Close())
	}
	if s.Plan != nil {
		return m, nil
	}
	m.exchanger, err = collective.NewExchanger(m.group, collective.ExchangerOptions{})
	if err != nil {
		return nil, errors.Join(err, m.mux.Close())
	}
	return m, nil
}

// start makes an engine for variables.
func (m *Member) start(vars []graph.Value, t distrib.Transport) (err error) {
	var outbox int64 // the engine's own choice, but for workers that push into it for long
	if m.scheme.alone() {
		for _, v := range vars {
			outbox += int64(m.scheme.lag()+1) * v.Type().Bytes()
		}
	}
	m.engine, err = distrib.New(distrib.Config{View: m.view, Transport: t,
		Plan: *m.scheme.Plan, Workers: 1, Group: m.group, Audited: true, Outbox: outbox,
		Log: m.options.Log, Stall: m.options.Stall, Timeout: m.options.Timeout})
	return err
}

// Rank is this worker's number, and Size how many there are.
func (m *Member) Rank() int { return m.desk.Rank() }

// Size is how many workers there are.
func (m *Member) Size() int { return len(m.view.Nodes) }

// About says in words how the workers keep in step.
func (m *Member) About() string { return m.scheme.about }

// Network carries the exchanges of steps; nil if the scheme has none.
func (m *Member) Network() gomem.Network {
	if m.exchanger == nil {
		return nil
	}
	return &network{m.desk, m.exchanger, m.scheme.Via}
}

// Parallel is a run's part in the workers', for a model's graph.
func (m *Member) Parallel(g *graph.Graph) (*train.Parallel, error) {
	p := &train.Parallel{Rank: m.Rank(), Workers: m.Size(), Peers: m.desk,
		Exchanged: m.Exchanged}
	var err error
	if m.bound, err = m.Bytes(g); err != nil || m.scheme.Plan == nil {
		return p, err
	}
	vars, err := Shared(g, train.Learnt(g))
	for _, v := range vars {
		m.bases += v.Type().Bytes()
	}
	if err == nil {
		err = m.start(vars, m.mux.Transport())
	}
	if err != nil {
		return nil, err
	}
	p.Between = &between{member: m, sync: m.engine.Worker(0), vars: vars,
		share: m.scheme.share(m.Size()), lag: m.scheme.lag(), alone: m.scheme.alone()}
	return p, nil
}

// Synchronizer is that of a scheme with a plan, for tasks that bring parameters of their
// own.
func (m *Member) Synchronizer() (distrib.Synchronizer, error) {
	if err := m.start(nil, m.mux.Transport()); err != nil {
		return nil, err
	}
	return m.engine.Worker(0), nil
}

// Finish ends the synchronizer's part once all workers have done theirs, of which err came.
func (m *Member) Finish(ctx context.Context, err error) error {
	b := &between{member: m, sync: m.engine.Worker(0)}
	if err != nil {
		return b.why(err)
	}
	if err := m.desk.Tell(ctx, nil); err != nil {
		return err
	}
	if _, err := m.desk.Hear(ctx); err != nil {
		return err
	}
	return b.End(ctx)
}

// Exchanged is what this worker has exchanged so far. Slowest and Fastest are relative to
// this one's steps.
func (m *Member) Exchanged() train.Exchanged {
	x := train.Exchanged{Bound: m.bound}
	if m.engine != nil {
		x.Slowest, x.Fastest = m.desk.Apart()
		x.Staleness = m.desk.Stalest()
		a := m.engine.Audit()
		x.Saved, x.Full = a.Kept, a.Blocked
		_, peak := m.engine.Memory()
		x.Memory = m.bases + peak.Total()
	}
	if m.exchanger != nil {
		s := m.exchanger.Stats()
		x.Memory = s.Scratch + s.PeakHeld
	}
	for c := range distrib.Classes {
		x.Sent += m.meter.Sent(distrib.Class(c)).Bytes
		x.Received += m.meter.Received(distrib.Class(c)).Bytes
	}
	return x
}

// Close ends the member's part: the others hear why, unless they have heard already. It
// returns err, or what closing came to.
func (m *Member) Close(err error) error {
	if m.fenced != nil {
		m.fenced()
	}
	m.desk.Leave(err)
	var closing error
	switch {
	case m.exchanger != nil:
		closing = m.exchanger.Close()
	case m.engine != nil:
		closing = m.engine.Close()
	}
	closing = errors.Join(closing, m.group.Close(), m.mux.Close())
	if closing != nil {
		closing = fmt.Errorf("the connection to other workers: %w", closing)
	}
	return cmp.Or(err, closing)
}

package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/train"
)

// Elastic is how a job's workers come and go.
type Elastic struct {
	Least, Most int // workers that go on, and that there may be
	// Views are those after the one that was joined, in order, as of [distrib.Coordinator].
	Views <-chan distrib.View
	// Open begins a view; the transport of the one before has been closed.
	Open func(v distrib.View) (distrib.Transport, error)
	// Renew asks for a view after the present one, also of the same nodes.
	Renew func(ctx context.Context) error
	// Expel asks for a view without one of the workers; nil: nobody is expelled.
	Expel func(ctx context.Context, node distrib.NodeID) error
	// Again joins anew after Alive has ended, within a time, of which Own is told, whoever shows
	// the run; nil: who is out ends.
	Again  func(ctx context.Context) (Place, error)
	Within time.Duration
	Own    func(text string)
	// Wait is how long fewer than Least wait for others to come; 0: not at all.
	Wait time.Duration
	// Quiet is how long a view may take to come after a worker was lost, before one is asked
	// for, and three times that the longest that is waited; 0: 3 s more than a lease, since who is
	// in etcd's view stays there for that.
	Quiet time.Duration
	Lease time.Duration // of a worker, for that; 0: 5 s
	// Job is a random id of the job, and Saved as of [train.Fence]; nil: whoever saves is trusted
	// to be of the newest view.
	Job   func() string
	Saved func(ctx context.Context, step int, path string) (time.Time, int64, error)
	// Vital is what worker 0 has in it without which no view comes, "" if any worker may be
	// lost; and Remedy what to do about that.
	Vital, Remedy string
}

// VitalError says that worker 0 is lost to this one, and what nobody goes on without.
type VitalError struct {
	Vital, Remedy string // as of [Elastic]
	Err           error  // as it is seen here
}

// Error is one line, and says what to do.
func (e *VitalError) Error() string {
	return fmt.Sprintf("worker 0, and %s in it, were out of reach for too long, and nobody goes "+
		"on without: %s", e.Vital, e.Remedy)
}

// Unwrap is what is seen of it here.
func (e *VitalError) Unwrap() error { return e.Err }

// OutError says that this worker takes part no more, though it has not ended.
type OutError struct {
	Number int
	Err    error  // why
	Back   error  // why it could not come back, if it has tried to
	Remedy string // what to do, if it has not
}

// Error is one line, and says what to do or what was tried.
func (e *OutError) Error() string {
	if e.Back != nil {
		return fmt.Sprintf("%v; worker %d was out, and could not come back: %v", e.Err, e.Number,
			e.Back)
	}
	return fmt.Sprintf("worker %d is out: %v: %s", e.Number, e.Err, e.Remedy)
}

// Unwrap is why.
func (e *OutError) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Err, e.Back}, func(err error) bool { return err == nil })
}

// ousted is the end of a worker that the job goes on without.
func (o Options) ousted(self distrib.NodeID) error {
	remedy := "begin again from a checkpoint with --resume"
	if !o.Elastic.fixed() {
		remedy = "one that is started in its place joins those who go on"
	}
	return &OutError{Number: int(self), Err: context.Cause(o.Alive), Remedy: remedy}
}

// vital is an error between workers, or that this one is out; or what both come of, once it is.
func (m *Member) vital(err error) error {
	e, alive := m.options.Elastic, m.options.Alive
	if e.Vital == "" || m.at().view.Self == 0 || alive == nil || alive.Err() == nil ||
		!NoOwnFault(err) && !errors.Is(err, context.Cause(alive)) {
		return err
	}
	return &VitalError{e.Vital, e.Remedy, err}
}

// fixed reports whether there are as many workers all the time.
func (e *Elastic) fixed() bool { return e == nil || e.Least == e.Most }

// brokenError is what went wrong between workers, and is no worker's own fault as far as is
// known here.
type brokenError struct{ error }

// Unwrap is what went wrong.
func (e *brokenError) Unwrap() error { return e.error }

// asBroken marks what goes wrong between workers that come and go. A wait that was given
// up is no reason to begin another one.
func asBroken(err error, elastic bool) error {
	if _, stalled := errors.AsType[*distrib.StallError](err); err == nil || stalled || !elastic {
		return err
	}
	return &brokenError{err}
}

// errMoved is why a group is given up that is being formed.
var errMoved = errors.New("there are other workers already")

// views are the views of a job as they come.
type views struct {
	stop  chan struct{}
	ended chan struct{}

	mu     sync.Mutex
	last   distrib.View  // the newest
	formed int64         // the epoch whose group has begun to train
	change chan struct{} // closed when there is another
}

// watch follows the views of the job.
func (m *Member) watch() *views {
	w := &views{stop: make(chan struct{}), ended: make(chan struct{}), last: m.at().view,
		change: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for {
			select {
			case v, ok := <-m.options.Elastic.Views:
				if !ok {
					return
				}
				w.take(v)
				m.compare(w)
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

// end stops to follow.
func (w *views) end() {
	close(w.stop)
	<-w.ended
}

// take notes a view that this node is in.
func (w *views) take(v distrib.View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.Self < 0 || v.Epoch <= w.last.Epoch {
		return // who is out is told by Alive
	}
	w.last = v
	close(w.change)
	w.change = make(chan struct{})
}

// now is the newest view, the epoch that trains, and what is closed when there is another.
func (w *views) now() (v distrib.View, formed int64, change <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.formed, w.change
}

// farewell is how long the word of a worker that leaves may be behind the view without it.
const farewell = time.Second

// errWithout is what becomes of a worker that is in no view any more.
var errWithout = errors.New("the others go on without it")

// without ends what waits for workers that a view does not have, and the connections to them.
func (p *part) without(v distrib.View) {
	for _, n := range p.view.Nodes {
		if !slices.ContainsFunc(v.Nodes, func(o distrib.Node) bool { return o.ID == n.ID }) {
			p.desk.Down(n.ID, errWithout)
			p.drop(n.ID, errWithout)
		}
	}
}

// drop gives up the connections to a worker that is known to be gone.
func (p *part) drop(id distrib.NodeID, why error) { distrib.Drop(p.below, id, why) }

// nonsense gives up a worker that has sent what cannot be used, if that is what an error says.
func (p *part) nonsense(err error) {
	if bad, ok := errors.AsType[*distrib.NonsenseError](err); ok {
		p.desk.Down(bad.Node, bad)
		p.drop(bad.Node, bad)
	}
}

// expel has the others go on without the worker that has broken the group, if that is one which
// sent what cannot be used: it would do so again in the next one. Where that cannot be asked for,
// a view is waited for.
func (m *Member) expel(ctx context.Context, why error) {
	bad, ok := errors.AsType[*distrib.NonsenseError](why)
	if !ok {
		bad = m.at().desk.Nonsense()
	}
	if e := m.options.Elastic; bad != nil && e.Expel != nil {
		m.options.Logger.Info("expels", "node", bad.Node, "why", bad)
		if err := e.Expel(ctx, bad.Node); err != nil {
			m.options.Log(fmt.Sprintf("worker %d is not expelled: %v", bad.Node, err))
		}
	}
}

// compare ends the present group if somebody of it is in no view any more, whom its
// connections may show to be there still; and one that has not begun to train if any view
// has come after it.
func (m *Member) compare(w *views) {
	at := m.at()
	v, formed, _ := w.now()
	if v.Epoch <= at.view.Epoch {
		return
	}
	time.AfterFunc(farewell, func() {
		if m.at() == at {
			at.without(v)
		}
	})
	if formed < at.view.Epoch {
		at.desk.fail(&brokenError{errMoved})
	}
}

var (
	_ train.Elastic = (*Member)(nil)
	_ train.Fence   = (*Member)(nil)
)

// Term is the job's id, and the epoch of the present group.
func (m *Member) Term() (job string, epoch int64) {
	return m.options.Elastic.Job(), m.at().view.Epoch
}

// Saved asks whether this worker is in the newest view: see [train.Fence].
func (m *Member) Saved(ctx context.Context, step int, path string) (time.Time, int64, error) {
	return m.options.Elastic.Saved(ctx, step, path)
}

// Least is how few workers go on.
func (m *Member) Least() int { return m.options.Elastic.Least }

// Numbers are those that the workers were started with, by rank.
func (m *Member) Numbers() []int {
	var out []int
	for _, n := range m.at().view.Nodes {
		out = append(out, int(n.ID))
	}
	return out
}

// Formed says that the group trains: from here on, who comes waits for the end of a step.
func (m *Member) Formed() {
	m.views.mu.Lock()
	m.views.formed = m.at().view.Epoch
	m.views.mu.Unlock()
	m.at().formed.Store(true)
	m.compare(m.views)
}

// Changed reports whether there are other workers than in the present group.
func (m *Member) Changed() bool {
	v, _, _ := m.views.now()
	return v.Epoch > m.at().view.Epoch
}

// Regroup ends the present group and takes part in the next. why is what broke it, nil if
// all its workers have agreed to; if that is this worker's own failure, it is returned, and
// nothing has changed.
func (m *Member) Regroup(ctx context.Context, why error) (*train.Parallel, error) {
	if err := m.regroup(ctx, why); err != nil {
		return nil, err
	}
	return m.parallel()
}

// regroup takes part in the next view.
func (m *Member) regroup(ctx context.Context, why error) error {
	if !m.survives(why) {
		return m.vital(why)
	}
	at := m.at()
	if why != nil {
		m.options.Logger.Info("broken", "epoch", at.view.Epoch, "why", why)
	}
	if v, _, _ := m.views.now(); why != nil && v.Epoch > at.view.Epoch {
		at.without(v) // who is in it no more has nothing to say that matters now
	}
	_ = at.close(why) // the connections may be what broke
	if at.daemon != nil && at.formed.Load() && m.scheme.options.Replicas > 0 {
		m.before = at
	}
	// policies have a state, which is of the engine that is gone
	scheme, err := m.scheme.anew()
	if err != nil {
		return err
	}
	m.scheme = scheme
	v, err := m.next(ctx, at.view.Epoch, why)
	if err != nil {
		return err
	}
	t, err := m.options.Elastic.Open(v)
	if err != nil {
		return err
	}
	if err := m.enter(v, t); err != nil {
		return err
	}
	m.compare(m.views) // what has come meanwhile had no part to be compared with
	return nil
}

// survives reports whether an error leaves this worker able to go on with others.
func (m *Member) survives(why error) bool {
	if m.options.Alive != nil && m.options.Alive.Err() != nil {
		return false
	}
	return why == nil || NoOwnFault(why)
}

// NoOwnFault reports whether something went wrong between workers, and is not the fault of the one
// who sees it.
func NoOwnFault(why error) bool {
	_, left := errors.AsType[*LeftError](why)
	_, broken := errors.AsType[*brokenError](why)
	return left || broken
}

// next waits for a view after an epoch. Who is lost is in the present one until its lease
// ends; if it is still there then, or if all are there and a connection broke, a view is
// asked for.
func (m *Member) next(ctx context.Context, epoch int64, why error) (distrib.View, error) {
	e := m.options.Elastic
	quiet := cmp.Or(e.Quiet, cmp.Or(e.Lease, 5*time.Second)+3*time.Second)
	ask := time.NewTimer(quiet)
	defer ask.Stop()
	end := time.NewTimer(3 * quiet)
	defer end.Stop()
	alive := m.options.Alive
	if alive == nil {
		alive = context.Background()
	}
	m.expel(ctx, why)
	hurries, late := m.hurries, (<-chan time.Time)(nil)
	for {
		v, _, change := m.views.now()
		if v.Epoch > epoch {
			return v, nil
		}
		select {
		case <-change:
		case <-hurries:
			hurries, late = nil, time.After(groupWithin)
		case <-late:
			return v, cmp.Or(why, error(&brokenError{errAsked}))
		case <-alive.Done():
			return v, m.vital(m.options.ousted(m.at().view.Self))
		case <-ask.C:
			if err := e.Renew(ctx); err != nil {
				return v, because(why, err)
			}
		case <-end.C:
			return v, because(why, fmt.Errorf("no view came after that of epoch %d for %v", epoch,
				3*quiet))
		}
	}
}

// because is an error with what came of it.
func because(why, then error) error {
	if why == nil {
		return then
	}
	return fmt.Errorf("%w; and then: %w", why, then)
}

// More waits until there are enough workers again, or other ones at least.
func (m *Member) More(ctx context.Context) error {
	at, e := m.at(), m.options.Elastic
	lacking := fmt.Errorf("%d workers are left, --min is %d", len(at.view.Nodes), e.Least)
	if len(at.view.Nodes) == 1 {
		lacking = fmt.Errorf("1 worker is left, --min is %d", e.Least)
	}
	if e.Wait == 0 {
		return lacking
	}
	m.options.Log(fmt.Sprintf("%v: waiting for others to come, for %v at most", lacking, e.Wait))
	end := time.NewTimer(e.Wait)
	defer end.Stop()
	for {
		v, _, change := m.views.now()
		if v.Epoch > at.view.Epoch {
			return nil
		}
		select {
		case <-change:
		case <-at.desk.ctx.Done():
			return at.desk.failed()
		case <-ctx.Done():
			return because(lacking, context.Cause(ctx))
		case <-end.C:
			return fmt.Errorf("%w: nobody has come for %v", lacking, e.Wait)
		}
	}
}

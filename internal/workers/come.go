package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/train"
)

// Place is what a process has that has joined others at work.
type Place struct {
	View      distrib.View
	Transport distrib.Transport   // of the view; the member's from here on
	Alive     context.Context     // as of [Options]
	Views     <-chan distrib.View // as of [Elastic]
}

// joining joins a job. It returns when this process is in a view.
type joining func(ctx context.Context) (Place, error)

// Coming makes a member of a job whose workers are at work already. From when it is in a view
// the others wait for it, so it joins when it has its data, its plan and its session. Alive
// and Views of the options are those of the place that it gets.
func Coming(s Scheme, o Options, join func(ctx context.Context) (Place, error)) (*Member, error) {
	if o.Elastic == nil {
		return nil, errors.New("a worker comes to others that do not come and go")
	}
	m, err := member(s, o)
	if err != nil {
		return nil, err
	}
	m.join = join
	return m, nil
}

// Return has this worker, which is out, take part again as one that comes to others at work. why
// is what it was found out by, which is returned if it is not out, or cannot come back.
func (m *Member) Return(ctx context.Context, why error) (*train.Parallel, error) {
	e, at := m.options.Elastic, m.at()
	if e.Again == nil || !m.out(ctx, why) {
		return nil, why
	}
	number := at.view.Self
	e.Own(fmt.Sprintf("worker %d was cut off, and is out: it tries to come back, for %v",
		number, e.Within))
	_ = at.close(why)
	m.before = nil // the others have its rows
	ctx, cancel := context.WithTimeoutCause(ctx, e.Within, fmt.Errorf("it waited for %v", e.Within))
	defer cancel()
	p, err := e.Again(ctx)
	if _, vital := errors.AsType[*VitalError](why); vital && err != nil {
		return nil, why
	}
	if err != nil {
		if out, ok := errors.AsType[*OutError](why); ok {
			why = out.Err
		}
		return nil, &OutError{Number: int(number), Err: why, Back: err}
	}
	m.unwatch()
	if m.scheme, err = ParseScheme(m.scheme.Name, m.scheme.options); err != nil {
		return nil, errors.Join(err, p.Transport.Close())
	}
	if err := m.settle(p); err != nil {
		return nil, err
	}
	e.Own(fmt.Sprintf("worker %d is back, as one that has just come", number))
	return m.parallel()
}

// out reports whether the others go on without this worker, and would have it again. Who saves may
// find out before it is told.
func (m *Member) out(ctx context.Context, why error) bool {
	alive := m.options.Alive
	if alive == nil {
		return false
	}
	if _, replaced := errors.AsType[*train.ErrReplaced](why); replaced {
		soon := time.NewTimer(farewell)
		defer soon.Stop()
		select {
		case <-alive.Done():
		case <-ctx.Done():
		case <-soon.C:
		}
	}
	return alive.Err() != nil && !errors.Is(context.Cause(alive), distrib.ErrExpelled)
}

// settle begins a part in the place that this worker has got.
func (m *Member) settle(p Place) error {
	e := *m.options.Elastic
	e.Views = p.Views
	m.options.Alive, m.options.Elastic = p.Alive, &e
	return m.begin(p.View, p.Transport)
}

// coming is the part in a run of one that is still to come.
func (m *Member) coming() *train.Parallel {
	return &train.Parallel{Rank: m.Rank(), Workers: m.Size(), Elastic: m, Exchanged: m.Exchanged,
		Scheme: m.scheme.settings(),
		Enter: func(ctx context.Context) (*train.Parallel, error) {
			p, err := m.join(ctx)
			if err != nil {
				return nil, err
			}
			if err := m.settle(p); err != nil {
				return nil, err
			}
			return m.parallel()
		}}
}

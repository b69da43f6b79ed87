package workers

import (
	"context"
	"errors"

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

// coming is the part in a run of one that is still to come.
func (m *Member) coming() *train.Parallel {
	return &train.Parallel{Rank: m.Rank(), Workers: m.Size(), Elastic: m, Exchanged: m.Exchanged,
		Scheme: m.scheme.settings(),
		Enter: func(ctx context.Context) (*train.Parallel, error) {
			p, err := m.join(ctx)
			if err != nil {
				return nil, err
			}
			e := *m.options.Elastic
			e.Views = p.Views
			m.options.Alive, m.options.Elastic = p.Alive, &e
			if err := m.begin(p.View, p.Transport); err != nil {
				return nil, err
			}
			return m.parallel()
		}}
}

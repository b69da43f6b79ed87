package workers

import (
	"context"

	"github.com/gomem/gomem/distrib/fabric/daemon"
)

// wholeUpdate is the most bytes of an update that is scheduled as one.
const wholeUpdate = 1 << 28

// scheduled is how a part's updates are scheduled.
func (m *Member) scheduled(p *part) daemon.Options {
	o := daemon.Options{Aggregators: m.scheme.aggregators(), Log: m.options.Log}
	if m.options.Elect != nil {
		o.Elect = &elected{m.options.Elect, m, p}
	}
	for _, n := range p.view.Nodes {
		o.Nodes = append(o.Nodes, n.ID)
	}
	return o
}

// elected has the log know who schedules.
type elected struct {
	daemon.Elector
	m *Member
	p *part
}

// Lead waits until this worker schedules.
func (e *elected) Lead(ctx context.Context, role string) (context.Context, error) {
	term, err := e.Elector.Lead(ctx, role)
	if err == nil {
		e.m.options.Logger.Info("schedules", "epoch", e.p.view.Epoch)
	}
	return term, err
}

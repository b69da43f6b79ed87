package planner

import (
	"context"
	"fmt"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
)

// Series makes plans of one graph for budgets that grow. What it planned for a smaller
// budget keeps to a larger one, so no plan of a series is slower than one before it, by
// the machine's prices; but for vanilla's where it is taken wherever it fits
// (see [Options.Concurrent]). The zero value is an empty series.
//
// A search alone does not promise that: it is a heuristic, and a budget more is another
// place to start from.
type Series struct {
	last   lower.Need
	best   *Planned // the fastest so far
	inside Options  // that it was planned with, but for its budgets
}

// Plan is [Plan], or the plan that the series has for a smaller budget, if its steps take
// less. The error says so if a budget shrinks, or another option changes.
func (s *Series) Plan(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Planned,
	error) {
	if err := s.follows(g, o); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	p, err := Plan(ctx, g, o, targets...)
	if err != nil {
		return nil, err
	}
	if s.best == nil || total(p.Results) <= total(s.best.Results) {
		s.best = p
	}
	if p.vanilla() && !o.Concurrent() {
		return p, nil
	}
	return s.best, nil
}

// follows reports what must not change in a series, and remembers the budgets.
func (s *Series) follows(g *graph.Graph, o Options) error {
	o.EnsureDefaults()
	now := o.Budgets()
	o = o.Unlimited()
	if s.best != nil {
		if s.best.Model != g || s.inside != o {
			return fmt.Errorf("a series of plans is of one graph with one set of options: "+
				"%s, but it began with %s", o, s.inside)
		}
		for id, bytes := range now {
			if bytes < s.last[id] {
				return fmt.Errorf("a series of plans is for budgets that grow: %d bytes of %s "+
					"follow %d", bytes, space.ID(id), s.last[id])
			}
		}
	}
	s.last, s.inside = now, o
	return nil
}

// vanilla reports whether the plans are those that copy nothing but feeds and fetches
// since all fits.
func (p *Planned) vanilla() bool { return p.Results[0].Options.Policy == Vanilla }

// total is how long a step of every target takes.
func total(results []*Result) time.Duration {
	var sum time.Duration
	for _, r := range results {
		sum += r.Step
	}
	return sum
}

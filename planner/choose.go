package planner

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/planner/candidates"
	"github.com/gomem/gomem/planner/machine"
)

// wanted is which variants are wanted after one.
type wanted int

const (
	none    wanted = iota
	last           // the one that comes last
	folded         // those of other constants if their operations take notably less time
	quicker        // the next if its operations take notably less time, and the last
	next
)

// choice is how far the choice among variants is: the best of them so far, and those that it does
// not rule out.
type choice struct {
	best    *outcome
	others  []*outcome           // without plans: refused, or only for the search's rivals
	refused []*candidates.Search // of those, what was refused
	want    wanted
}

// passes reports whether a variant is not worth to be made, of which the last comes last.
func (c choice) passes(v variant, isLast bool) bool {
	switch c.want {
	case none:
		return true
	case last:
		return !isLast
	case folded:
		return !v.ofConstants()
	}
	return false
}

// after is the choice when a variant has been looked at. A look at one costs a search, so one whose
// operations alone take as long as the best plans is left out.
func (c choice) after(ctx context.Context, v variant, o Options) (choice, error) {
	p, err := v.graph()
	if p == nil || err != nil {
		return c, err
	}
	ctx = candidates.OfGraph(ctx, v.name)
	for _, x := range p.constants {
		candidates.Note(ctx, "%s", x)
	}
	least := p.leastTime(o)
	if c.want != next && v.rewrites() && least+least/20 >= c.best.leastTime(o) {
		candidates.Note(ctx, "its operations take %dns, hardly less than those of the %s graph",
			least.Nanoseconds(), c.best.rewritten)
		if v.isCut() {
			c.want = last // what is cut further takes no less
		}
		return c, nil
	}
	if c.best != nil && least >= candidates.StepTime(c.best.plans) {
		candidates.Note(ctx, "its operations alone take %dns, no less than the plans of the %s "+
			"graph", least.Nanoseconds(), c.best.rewritten)
		return c, nil
	}
	if c.want != next && !v.rewrites() {
		return c.forRivals(ctx, p, o)
	}
	x, err := p.outcome(ctx, o)
	if err != nil {
		return c, err
	}
	if x.plans == nil {
		c.refused, c.others = append(c.refused, x.search), append(c.others, x)
		return c, nil
	}
	c.best = c.best.or(x)
	if c.want != folded {
		c.want = x.wants(o)
	}
	return c, nil
}

// forRivals is the choice with the model's own graph, which is not looked at but for rivals: it is
// the last, and not worth that if nothing was fused.
func (c choice) forRivals(ctx context.Context, p *Planned, o Options) (choice, error) {
	c.want = none
	if p.operations() == c.best.operations() {
		return c, nil
	}
	s, err := candidates.New(ctx, p.Graph, o, p.Targets)
	if err != nil {
		return c, err
	}
	s.After = c.best.search
	c.others = append(c.others, &outcome{p, s, nil})
	return c, nil
}

// settled is the choice with its plans written: the best, unless rivals of the search are faster
// with another variant, and with as much memory as is granted.
func (c choice) settled(o Options) (*Planned, error) {
	others := c.others
	if o.Draft {
		others = nil
	}
	best, err := c.best.orRivals(others)
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	if best, err = best.covered(append(others, c.best)); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	best.Results, err = best.search.Complete(best.plans)
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	best.by = o.Unlimited()
	return best.Planned, nil
}

// outcome is what the search came to that had one variant: the plans of its targets, or nil if some
// target has none. They are drawn only, since those of one variant are written.
type outcome struct {
	*Planned
	search *candidates.Search
	plans  []*candidates.Drawn
}

// outcome looks for the plans of a variant.
func (p *Planned) outcome(ctx context.Context, o Options) (*outcome, error) {
	s, err := candidates.New(ctx, p.Graph, o, p.Targets)
	if err != nil {
		return nil, err
	}
	plans, err := s.Find()
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	return &outcome{p, s, plans}, nil
}

// or is the better of two outcomes, of which the first may be nil.
func (a *outcome) or(b *outcome) *outcome {
	if a == nil {
		return b
	}
	c := candidates.NewContest[*outcome](a.prices())
	for _, x := range []*outcome{a, b} {
		c.Add(candidates.WeightOf(x.plans...), x)
	}
	return c.Best()
}

// prices are what the plans are made by.
func (a *outcome) prices() machine.Model {
	o := a.search.Options
	return Prices(o.Machine, o.Model, a.Graph, a.Targets...)
}

// wants is which variants are worth a look beside this one.
func (a *outcome) wants(o Options) wanted {
	switch {
	case !o.Policy.Searches() || o.Draft:
		return none
	case a.vanilla():
		return folded // nothing that is cut is faster
	case a.stalls(o):
		return next
	case o.NoFusion:
		return none // it is the last
	case !(variant{name: a.rewritten}).isCut():
		return quicker
	}
	return last
}

// orRivals is the fastest of an outcome and of what rivals of the search come to with the graphs of
// others: with one that was refused, and with one that was not looked at, which are those that a
// rival has if it is refused this one.
func (a *outcome) orRivals(others []*outcome) (*outcome, error) {
	if !a.search.Options.Policy.Searches() || a.vanilla() {
		return a, nil
	}
	for _, x := range others {
		if x.search.Floor() > x.search.Options.DeviceBytes {
			continue
		}
		c := candidates.Among(a.prices(), a.plans)
		if err := x.search.Tuned(c, false); err != nil {
			return nil, err
		}
		if plans := c.Best(); plans[0] != a.plans[0] {
			a = &outcome{x.Planned, x.search, plans}
		}
	}
	return a, nil
}

// covered is an outcome whose peaks are granted, by its own graph's candidates or those of others.
func (a *outcome) covered(others []*outcome) (*outcome, error) {
	all := append([]*outcome{a}, others...)
	var granting []*candidates.Search
	for _, x := range all {
		granting = append(granting, x.search)
	}
	plans, err := a.search.Covered(a.plans, granting)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if plans != nil {
			break
		}
		a = x
		if plans, err = x.search.Exact(); err != nil {
			return nil, err
		}
	}
	return &outcome{a.Planned, a.search, plans}, nil
}

// vanilla reports whether the plans are vanilla's.
func (a *outcome) vanilla() bool { return a.plans[0].Policy() == Vanilla }

// stalls reports whether steps take notably longer than they do at least: by a fiftieth, since
// what is saved is saved at every step, and a look at the graphs that are cut is taken once. Parts
// of operations need less, and what is updated on the host is there sooner.
func (a *outcome) stalls(o Options) bool {
	least := a.leastTime(o)
	return candidates.StepTime(a.plans) > least+least/50
}

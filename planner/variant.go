package planner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/search"
)

// search looks for the plans of targets that share their variables.
type variant struct {
	ctx     context.Context
	graph   *graph.Graph
	options Options
	targets []Target
	jobs    []*job         // by target
	order   []graph.NodeID // leaves, by which should go to the disk first
	after   *variant       // of the graph that rivals are refused before they have this one
	known   []*Result      // by target, what has been planned; nil if nothing has
	housing *housing       // where variables are at the levels of the ladder's housed candidates
}

// found is a plan that fits, but for its text: of those that lose it is never written.
type found struct {
	candidate
	title    string
	sketch   *lower.Sketch
	program  *program.Program
	timings  []program.Timing // of the passes that decided
	decision *search.Decision // the planner's, if it was that
	order    string           // and the order that it took
	time     time.Duration    // of a step, by the machine's prices
}

// newSearch checks what is to be planned and works out the ladders.
func newVariant(ctx context.Context, g *graph.Graph, o Options, targets []Target) (*variant,
	error) {
	s, err := checked(ctx, g, o, targets)
	if err != nil {
		return nil, err
	}
	return s.by(s.options)
}

// checked is a search that has no ladders, and finds nothing, for what can be planned.
func checked(ctx context.Context, g *graph.Graph, o Options, targets []Target) (*variant, error) {
	s, err := valid(ctx, g, o, targets)
	if err == nil {
		if err = CheckTargets(g, targets...); err != nil {
			err = fmt.Errorf("planner: %w", err)
		}
	}
	return s, err
}

// valid is a search as checked makes it, of a graph and targets that have been checked.
func valid(ctx context.Context, g *graph.Graph, o Options, targets []Target) (*variant, error) {
	if ctx == nil {
		return nil, errors.New("planner: the context is nil")
	}
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	o.EnsureDefaults()
	return &variant{ctx: ctx, graph: g, options: o, targets: targets}, nil
}

// by is a search for the same by other options, with ladders.
func (s *variant) by(o Options) (*variant, error) {
	s = s.laddered(o)
	for i, j := range s.jobs {
		start := time.Now()
		base := at(o, Tuning{Lookahead: o.Lookahead})
		if err := j.decide(s.ctx, base); err != nil {
			return nil, fmt.Errorf("compile %s: %w", s.targets[i].Name, err)
		}
		j.base = j.decisions
		j.ladder = o.Policy.rules().ladder(base, j.program)
		j.floor = touched(j.program)
		j.took = time.Since(start)
	}
	s.leaves()
	return s, nil
}

// laddered is a search for the same by other options, in which nothing is decided. Only a
// steady policy's ladders are there.
func (s *variant) laddered(o Options) *variant {
	s = &variant{ctx: s.ctx, graph: s.graph, options: o, targets: s.targets, known: s.known}
	prices := lower.NewPrices(Prices(o.Machine, o.Model, s.graph, s.targets...), s.graph)
	for i, t := range s.targets {
		j := &job{graph: s.graph, target: t.Computed(), prices: prices,
			loads: map[candidate]lower.Need{},
			needs: map[candidate]lower.Need{}, answers: map[inquiry]lower.Need{},
			outlooks: map[candidate]outlook{}}
		if s.known != nil {
			j.decisions = s.known[i].decisions()
		}
		if r := o.Policy.rules(); r.steady {
			j.ladder = r.ladder(at(o, Tuning{Lookahead: o.Lookahead}), nil)
		}
		s.jobs = append(s.jobs, j)
	}
	s.housing = &housing{jobs: s.jobs}
	for _, j := range s.jobs {
		j.housing = s.housing
	}
	return s
}

// results are the verified plans, or nil if some target has none.
func (s *variant) results() ([]*Result, error) {
	plans, err := s.find()
	if plans == nil || err != nil {
		return nil, err
	}
	if plans, err = s.coveredOrExact(plans); err != nil {
		return nil, err
	}
	return s.complete(plans)
}

// find is the plans, by target, or nil if some target has none. A disk is used if they do
// not fit without.
func (s *variant) find() ([]*found, error) {
	if s.floor() > s.options.DeviceBytes {
		return nil, nil
	}
	all, err := s.unspilled()
	for level := 1; level < s.levels() && all == nil && err == nil; level++ {
		all, err = s.spill(level)
	}
	return all, err
}

// unspilled are the plans that have nothing on a disk. The first of the candidates that all
// targets go together is taken if it fits, unless it is worth a search where the host computes
// beside the device; what comes after it is for a policy that searches one candidate among others.
func (s *variant) unspilled() ([]*found, error) {
	searches := s.options.Policy.rules().searches
	weighs := searches && !s.options.Draft && s.options.Concurrent()
	var best []*found
	for i := range s.jobs[0].ladder.together {
		all, err := s.plans(func(j *job) (*found, error) {
			return j.try(s.ctx, j.ladder.together[i], never)
		})
		if err != nil || all != nil && (i == 0 && !weighs || !searches) {
			return all, err
		}
		best = faster(best, all)
	}
	if !searches {
		return s.straight(0)
	}
	granted := best != nil || s.granted()
	if !granted {
		var err error
		if best, err = s.conceded(); best == nil || err != nil {
			return best, err
		}
	}
	planned, err := s.planned()
	if err != nil {
		return nil, err
	}
	best = faster(best, planned)
	if best != nil && s.options.Draft {
		return best, nil
	}
	if best == nil {
		if best, err = s.conceded(); best == nil || err != nil {
			return best, err
		}
	}
	return s.tuned(best, granted)
}

// conceded is the plans that the ladder comes to without a disk, or nil: those of candidates that
// targets go alone, or else with some of the variables on the device.
func (s *variant) conceded() ([]*found, error) {
	plans, err := s.straight(0)
	if plans != nil || err != nil {
		return plans, err
	}
	for _, c := range s.choices(ladder.straight) {
		n, err := s.atLeast(c)
		if err != nil {
			return nil, err
		}
		if c.housed == 0 || !n.Within(budgets(s.options)) {
			continue
		}
		plans, err := s.plans(func(j *job) (*found, error) {
			return j.first(s.ctx, c.candidates(j.ladder))
		})
		if err != nil {
			return nil, err
		}
		if plans != nil {
			return s.timed(plans)
		}
	}
	return nil, nil
}

// planned is what there is beside the ladder: what the planner finds, unless a rival comes as near
// to the least that a step takes as is of interest.
func (s *variant) planned() ([]*found, error) {
	if !s.options.Draft {
		if plans, err := s.ideal(); plans != nil || err != nil {
			return plans, err
		}
	}
	return s.fastest()
}

// straight is the plans that the ladder comes to at a level of use of a disk.
func (s *variant) straight(level int) ([]*found, error) {
	plans, err := s.plans(func(j *job) (*found, error) {
		return j.find(s.ctx, j.ladder.at(level))
	})
	if plans == nil || err != nil {
		return nil, err
	}
	return s.timed(plans)
}

// granted reports whether it is known that the budgets are not refused, from what the
// likeliest candidate of every target needs.
func (s *variant) granted() bool {
	for _, j := range s.jobs {
		n, err := j.need(s.ctx, j.ladder.last[len(j.ladder.last)-1])
		if err != nil || !n.Within(budgets(s.options)) {
			return false
		}
	}
	return true
}

// work is how long the operations of all targets take on the device, on all streams at once,
// and a 50th more.
func (s *variant) work() time.Duration {
	var sum time.Duration
	for _, j := range s.jobs {
		sum += j.work()
	}
	sum /= time.Duration(s.options.Streams)
	return sum + sum/50
}

// work is how long a target's operations take on the device.
func (j *job) work() time.Duration {
	var sum time.Duration
	for _, id := range j.program.Order {
		sum += j.prices.Node(space.Device, id)
	}
	return sum
}

// faster is those plans of two that take less time, if both are plans. What is
// granted does not depend on what is fast: only the ladder's candidates decide about a
// refusal, so that the minimum is exact.
func faster(a, b []*found) []*found {
	if a == nil || b != nil && together(b) < together(a) {
		return b
	}
	return a
}

// together is how long a step of every target takes.
func together(plans []*found) time.Duration {
	var sum time.Duration
	for _, f := range plans {
		sum += f.time
	}
	return sum
}

// total is how long a step of every target takes.
func total(results []*Result) time.Duration {
	var sum time.Duration
	for _, r := range results {
		sum += r.Step
	}
	return sum
}

// plans makes the plans of all targets in one manner, or nil.
func (s *variant) plans(find func(*job) (*found, error)) ([]*found, error) {
	var plans []*found
	for _, j := range s.jobs {
		start := time.Now()
		f, err := find(j)
		j.took += time.Since(start)
		if f == nil || err != nil {
			return nil, err
		}
		plans = append(plans, f)
	}
	return plans, nil
}

// complete makes the results of plans, by target.
func (s *variant) complete(plans []*found) ([]*Result, error) {
	var results []*Result
	for i, j := range s.jobs {
		r, err := j.result(plans[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.target.Name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// result writes a plan down and verifies it.
func (j *job) result(f *found) (*Result, error) {
	start := time.Now()
	p := f.sketch.Plan(f.program, f.title, budgets(f.options))
	lower.AddWaits(p)
	if err := plan.Verify(p, j.graph, j.target.Fetches, j.target.Updates); err != nil {
		return nil, err
	}
	j.took += time.Since(start)
	return &Result{Plan: p, Program: f.program, Timings: f.timings, Took: j.took,
		Options: f.options, Tuning: f.Tuning, Order: f.order, Step: f.time,
		Model: j.prices.Model}, nil
}

// passes is the pass list of a candidate, in order. precedence documents why.
func passes(w candidate) []program.Pass {
	o := w.options
	if w.Segments > 0 {
		return []program.Pass{program.DeadCode(), order.Creation()}
	}
	cut := partition.Pass
	if w.Bounded {
		cut = partition.Bounded
	}
	return append([]program.Pass{
		program.DeadCode(),
		cut(o.Strategy, o.Partition),
		placement.Pass(!o.NoPlacement),
	}, o.Policy.rules().swaps(w)...)
}

// precedence says which pass must come before which, and why. A test checks the list
// against it; it changes nothing.
var precedence = []struct{ before, after, why string }{
	{"deadcode", "partition", "a dead operation would take up a place in a partition"},
	{"partition", "swap", "idleness is measured in partitions between uses"},
	{"deadcode", "placement", "a dead reader would keep part of an update on the device"},
	{"placement", "swap", "a use on the host is not a use of the device's copy"},
}

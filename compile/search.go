package compile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/auto"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/machine"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/schedule"
	"github.com/gomem/gomem/space"
	"github.com/gomem/gomem/spill"
)

// search looks for the plans of targets that share their variables.
type search struct {
	ctx     context.Context
	graph   *graph.Graph
	options Options
	targets []Target
	jobs    []*job         // by target
	order   []graph.NodeID // leaves, by which should go to the disk first
}

// job is the search for the plan of one target.
type job struct {
	graph   *graph.Graph
	target  Target
	model   machine.Model
	ladder  ladder
	decided way           // of the latest program; what decisions do not depend on is zero
	program *pass.Program // the latest
	timings []pass.Timing // of its passes
	took    time.Duration
	needs   map[way]need   // what the ways tried so far come to
	leaves  [][]bool       // by level of use of a disk: what is bound there
	disk    *spill.Options // how the planner's schedules use a disk; nil: not at all
}

// need is what a plan takes, by space, in bytes.
type need [spill.Disk + 1]int64

// needOf is what a plan takes.
func needOf(p *plan.Plan) need {
	var n need
	for i, s := range p.Spaces {
		n[i] = s.Bytes
	}
	return n
}

// found is a plan that fits.
type found struct {
	way
	plan     *plan.Plan
	program  *pass.Program
	timings  []pass.Timing  // of the passes that decided
	decision *auto.Decision // the planner's, if it was that
	order    string         // and the order that it took
	waits    bool           // the plan has its waits, and its time is known
	time     time.Duration  // of a step, by the machine's prices
}

// newSearch checks what is to be planned and works out the ladders.
func newSearch(ctx context.Context, g *graph.Graph, o Options, targets []Target) (*search, error) {
	if ctx == nil {
		return nil, errors.New("compile: the context is nil")
	}
	err := o.Validate()
	if err == nil {
		err = CheckTargets(g, targets...)
	}
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	o.EnsureDefaults()
	s := &search{ctx: ctx, graph: g, options: o, targets: targets}
	prices := Prices(o.Machine, o.Model, g, targets...)
	for _, t := range targets {
		start := time.Now()
		j := &job{graph: g, target: t.Computed(), model: prices, needs: map[way]need{}}
		base := at(o, Rung{Lookahead: o.Lookahead})
		if err := j.decide(ctx, base); err != nil {
			return nil, fmt.Errorf("compile %s: %w", t.Name, err)
		}
		j.ladder = o.Policy.rules().ladder(base, j.program)
		j.took = time.Since(start)
		s.jobs = append(s.jobs, j)
	}
	s.leaves()
	return s, nil
}

// results are the verified plans, or nil if some target has none. A disk is used if
// they do not fit without.
func (s *search) results() ([]*Result, error) {
	all, err := s.unspilled()
	for level := 1; level < s.levels() && all == nil && err == nil; level++ {
		all, err = s.spill(level)
	}
	return all, err
}

// unspilled are the results that have nothing on a disk. The first of the
// ways that all targets go together is taken if it fits; what comes after it is for a
// policy that searches one candidate among others.
func (s *search) unspilled() ([]*Result, error) {
	searches := s.options.Policy.rules().searches && s.options.Streams == 1
	var best []*Result
	for i := range s.jobs[0].ladder.together {
		all, err := s.plan(func(j *job) (*found, error) {
			return j.try(s.ctx, j.ladder.together[i])
		})
		if err != nil || all != nil && (i == 0 || !searches) {
			return all, err
		}
		best = faster(best, all)
	}
	searched := searches && (best != nil || s.granted())
	if searched {
		found, err := s.fastest()
		if err != nil {
			return nil, err
		}
		if best = faster(best, found); best != nil && total(best) <= s.work() {
			return s.tuned(best) // no plan that copies is notably faster
		}
	}
	ladders, err := s.plan(func(j *job) (*found, error) { return j.find(s.ctx, j.ladder) })
	best = faster(best, ladders)
	if !searches || best == nil || err != nil {
		return best, err
	}
	if !searched {
		found, err := s.fastest()
		if err != nil {
			return nil, err
		}
		best = faster(best, found)
	}
	return s.tuned(best)
}

// granted reports whether it is known that the budgets are not refused, from what the
// likeliest way of every target needs.
func (s *search) granted() bool {
	for _, j := range s.jobs {
		n, err := j.need(s.ctx, j.ladder.last[len(j.ladder.last)-1])
		if err != nil || !n.within(budgets(s.options)) {
			return false
		}
	}
	return true
}

// work is how long the operations of all targets take on the device, and a 50th more.
func (s *search) work() time.Duration {
	var sum time.Duration
	for _, j := range s.jobs {
		sum += j.work()
	}
	return sum + sum/50
}

// work is how long a target's operations take on the device.
func (j *job) work() time.Duration {
	var sum time.Duration
	for _, id := range j.program.Order {
		sum += j.model.Time(j.graph.Node(id), space.Device)
	}
	return sum
}

// faster is those plans of two that take less time, if both are plans. What is
// granted does not depend on what is fast: only the ladder's ways decide about a
// refusal, so that the minimum is exact.
func faster(a, b []*Result) []*Result {
	if a == nil || b != nil && total(b) < total(a) {
		return b
	}
	return a
}

// total is how long a step of every target takes.
func total(results []*Result) time.Duration {
	var sum time.Duration
	for _, r := range results {
		sum += r.Step
	}
	return sum
}

// plan makes the results of all targets in one manner, or nil.
func (s *search) plan(find func(*job) (*found, error)) ([]*Result, error) {
	plans, err := s.plans(find)
	if plans == nil || err != nil {
		return nil, err
	}
	return s.complete(plans)
}

// plans makes the plans of all targets in one manner, or nil.
func (s *search) plans(find func(*job) (*found, error)) ([]*found, error) {
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
func (s *search) complete(plans []*found) ([]*Result, error) {
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

// result completes a plan and verifies it.
func (j *job) result(f *found) (*Result, error) {
	start := time.Now()
	f.finish(j)
	if err := plan.Verify(f.plan, j.graph, j.target.Fetches, j.target.Updates); err != nil {
		return nil, err
	}
	j.took += time.Since(start)
	return &Result{Plan: f.plan, Program: f.program, Timings: f.timings, Took: j.took,
		Options: f.options, Rung: f.Rung, Order: f.order, Step: f.time, Model: j.model}, nil
}

// find is the most relaxed plan by the ways that a target may go alone, or nil.
func (j *job) find(ctx context.Context, l ladder) (*found, error) {
	var best *found
	_, err := halving(len(l.chain), func(i int) (bool, error) {
		f, err := j.try(ctx, l.chain[i])
		if f != nil {
			best = f
		}
		return f != nil, err
	})
	if err != nil {
		return nil, err
	}
	if best == nil {
		return j.first(ctx, l.last)
	}
	longer, err := j.first(ctx, ahead(best.way))
	if longer == nil && err == nil {
		longer = best
	}
	return longer, err
}

// first is the plan of the first of some ways that fits, or nil.
func (j *job) first(ctx context.Context, ways []way) (*found, error) {
	for _, w := range ways {
		if f, err := j.try(ctx, w); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}

// try makes the plan of a way. It is nil if it does not fit.
func (j *job) try(ctx context.Context, w way) (*found, error) {
	if n, known := j.needs[w]; known && !n.within(budgets(w.options)) {
		return nil, nil
	}
	p, program, err := j.lower(ctx, w)
	if err != nil || !j.needs[w].within(budgets(w.options)) {
		return nil, err
	}
	return &found{way: w, plan: p, program: program, timings: j.timings}, nil
}

// within reports whether all budgets suffice.
func (n need) within(budgets need) bool {
	for s, bytes := range n {
		if bytes > budgets[s] {
			return false
		}
	}
	return true
}

// lower makes the plan of a way, without waits, and remembers what it takes.
func (j *job) lower(ctx context.Context, w way) (*plan.Plan, *pass.Program, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if err := j.decide(ctx, w); err != nil {
		return nil, nil, err
	}
	program := *j.program // which other rungs fill in other ways
	last := []pass.Pass{w.schedule()}
	if w.Spill > 0 {
		last = append(last, spill.Pass(spill.Options{Leaves: j.leaves[w.Spill]}))
	}
	p, err := emit(ctx, &program, w, last)
	if err != nil {
		return nil, nil, err
	}
	j.needs[w] = needOf(p)
	return p, &program, nil
}

// schedule is the pass that writes down what has been decided.
func (w way) schedule() pass.Pass {
	return schedule.Pass(schedule.Options{Partition: w.options.Partition,
		Streams: w.options.Streams, Prefetch: w.Prefetch, Lookahead: w.Lookahead,
		Unshared: w.Unshared})
}

// emit makes the plan of a program that has been decided about, without waits, by the
// last passes.
func emit(ctx context.Context, p *pass.Program, w way, last []pass.Pass) (*plan.Plan, error) {
	if _, err := pass.Run(ctx, p, last); err != nil {
		return nil, err
	}
	return lower(p, title(w.options, w.Rung), w.options, 0), nil
}

// need is what the plan of a way takes.
func (j *job) need(ctx context.Context, w way) (need, error) {
	if n, known := j.needs[w]; known {
		return n, nil
	}
	_, _, err := j.lower(ctx, w)
	return j.needs[w], err
}

// decide runs the passes of a way, unless the latest program is of the same
// decisions: prefetch and sharing are matters of lowering.
func (j *job) decide(ctx context.Context, w way) error {
	w.Prefetch, w.Unshared, w.Spill = 0, false, 0
	if j.program != nil && j.decided == w {
		return nil
	}
	p := pass.New(j.graph, j.target.Fetches, j.target.Updates)
	timings, err := pass.Run(ctx, p, passes(w))
	if err != nil {
		return err
	}
	j.decided, j.program, j.timings = w, p, timings
	return nil
}

// passes is the pass list of a way, in order. precedence documents why.
func passes(w way) []pass.Pass {
	o := w.options
	return append([]pass.Pass{
		pass.DeadCode(),
		partition.Pass(o.Strategy, o.Partition),
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

package compile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem/auto"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/order"
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
	after   *search        // of the graph that rivals are refused before they have this one
}

// job is the search for the plan of one target.
type job struct {
	graph   *graph.Graph
	target  Target
	prices  *prices
	ladder  ladder
	floor   int64         // what any plan needs of the device: what one operation touches
	decided way           // of the latest program; what decisions do not depend on is zero
	program *pass.Program // the latest
	timings []pass.Timing // of its passes
	took    time.Duration
	loads   map[way]need // what the ways tried so far take at least
	needs   map[way]need // and what they come to, of those that were packed
	// what ways need of the device at least, their prefetch being how far it reaches
	outlooks map[way]int64
	leaves   [][]bool       // by level of use of a disk: what is bound there
	disk     *spill.Options // how the planner's schedules use a disk; nil: not at all
}

// need is what a plan takes, by space, in bytes.
type need [spill.Disk + 1]int64

// found is a plan that fits, but for its text: of those that lose it is never written.
type found struct {
	way
	title    string
	sketch   *sketch
	program  *pass.Program
	timings  []pass.Timing  // of the passes that decided
	decision *auto.Decision // the planner's, if it was that
	order    string         // and the order that it took
	time     time.Duration  // of a step, by the machine's prices
}

// newSearch checks what is to be planned and works out the ladders.
func newSearch(ctx context.Context, g *graph.Graph, o Options, targets []Target) (*search, error) {
	s, err := checked(ctx, g, o, targets)
	if err != nil {
		return nil, err
	}
	return s.by(s.options)
}

// checked is a search that has no ladders, and finds nothing, for what can be planned.
func checked(ctx context.Context, g *graph.Graph, o Options, targets []Target) (*search, error) {
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
	return &search{ctx: ctx, graph: g, options: o, targets: targets}, nil
}

// by is a search for the same by other options, with ladders.
func (s *search) by(o Options) (*search, error) {
	s = &search{ctx: s.ctx, graph: s.graph, options: o, targets: s.targets}
	prices := newPrices(Prices(o.Machine, o.Model, s.graph, s.targets...), s.graph)
	for _, t := range s.targets {
		start := time.Now()
		j := &job{graph: s.graph, target: t.Computed(), prices: prices, loads: map[way]need{},
			needs: map[way]need{}, outlooks: map[way]int64{}}
		base := at(o, Rung{Lookahead: o.Lookahead})
		if err := j.decide(s.ctx, base); err != nil {
			return nil, fmt.Errorf("compile %s: %w", t.Name, err)
		}
		j.ladder = o.Policy.rules().ladder(base, j.program)
		j.floor = touched(j.program)
		j.took = time.Since(start)
		s.jobs = append(s.jobs, j)
	}
	s.leaves()
	return s, nil
}

// results are the verified plans, or nil if some target has none.
func (s *search) results() ([]*Result, error) {
	plans, err := s.find()
	if plans == nil || err != nil {
		return nil, err
	}
	return s.complete(plans)
}

// find is the plans, by target, or nil if some target has none. A disk is used if they do
// not fit without.
func (s *search) find() ([]*found, error) {
	if s.floor() > s.options.DeviceBytes {
		return nil, nil
	}
	all, err := s.unspilled()
	for level := 1; level < s.levels() && all == nil && err == nil; level++ {
		all, err = s.spill(level)
	}
	return all, err
}

// unspilled are the plans that have nothing on a disk. The first of the ways that all
// targets go together is taken if it fits; what comes after it is for a policy that
// searches one candidate among others.
func (s *search) unspilled() ([]*found, error) {
	searches := s.options.Policy.rules().searches && s.options.Streams == 1
	var best []*found
	for i := range s.jobs[0].ladder.together {
		all, err := s.plans(func(j *job) (*found, error) {
			return j.try(s.ctx, j.ladder.together[i], never)
		})
		if err != nil || all != nil && (i == 0 || !searches) {
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
		if best, err = s.straight(0); best == nil || err != nil {
			return best, err
		}
	}
	planned, err := s.fastest()
	if err != nil {
		return nil, err
	}
	best = faster(best, planned)
	if best == nil {
		if best, err = s.straight(0); best == nil || err != nil {
			return best, err
		}
	}
	return s.tuned(best, granted)
}

// straight is the plans that the ladder comes to at a level of use of a disk.
func (s *search) straight(level int) ([]*found, error) {
	return s.plans(func(j *job) (*found, error) { return j.find(s.ctx, j.ladder.at(level)) })
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
		sum += j.prices.nodes[space.Device][id]
	}
	return sum
}

// faster is those plans of two that take less time, if both are plans. What is
// granted does not depend on what is fast: only the ladder's ways decide about a
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

// result writes a plan down and verifies it.
func (j *job) result(f *found) (*Result, error) {
	start := time.Now()
	p := f.sketch.lower(f.program, f.title, f.options)
	addWaits(p)
	if err := plan.Verify(p, j.graph, j.target.Fetches, j.target.Updates); err != nil {
		return nil, err
	}
	j.took += time.Since(start)
	return &Result{Plan: p, Program: f.program, Timings: f.timings, Took: j.took,
		Options: f.options, Rung: f.Rung, Order: f.order, Step: f.time, Model: j.prices.Model}, nil
}

// find is the most relaxed plan by the ways that a target may go alone, or nil.
func (j *job) find(ctx context.Context, l ladder) (*found, error) {
	var best *found
	_, err := halving(len(l.chain), func(i int) (bool, error) {
		f, err := j.try(ctx, l.chain[i], never)
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
		if f, err := j.try(ctx, w, never); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}

// never is more than any step takes.
const never = time.Duration(math.MaxInt64)

// try is the plan of a way. It is nil if it does not fit, or if a step takes no less than
// a limit. Most ways are out of the question by their load, or by how long their streams
// work, before they have addresses.
func (j *job) try(ctx context.Context, w way, limit time.Duration) (*found, error) {
	budgets := budgets(w.options)
	if n, known := j.needs[w]; known && !n.within(budgets) {
		return nil, nil
	}
	if n, known := j.loads[w]; known && !n.within(budgets) {
		return nil, nil
	}
	f, err := j.draw(ctx, w)
	if err != nil {
		return nil, err
	}
	return j.judge(f, limit), nil
}

// judge gives what was drawn addresses and a time; it is nil if it does not fit, or if a
// step takes no less than a limit.
func (j *job) judge(f *found, limit time.Duration) *found {
	budgets := budgets(f.options)
	if !f.sketch.load.within(budgets) || limit < never && f.sketch.time(j.prices) >= limit {
		return nil
	}
	j.pack(f)
	if !f.sketch.need.within(budgets) {
		return nil
	}
	if f.time = f.sketch.time(j.prices); f.time >= limit {
		return nil
	}
	return f
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

// draw is the sketch of a way, not packed, and remembers what it takes at least.
func (j *job) draw(ctx context.Context, w way) (*found, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := j.decide(ctx, w); err != nil {
		return nil, err
	}
	program := *j.program // which other rungs fill in other ways
	last := []pass.Pass{j.schedule(w)}
	if w.Spill > 0 {
		last = append(last, spill.Pass(spill.Options{Leaves: j.leaves[w.Spill]}))
	}
	k, err := sketched(ctx, &program, last)
	if err != nil {
		return nil, err
	}
	j.loads[w] = k.load
	return &found{way: w, title: title(w.options, w.Rung), sketch: k, program: &program,
		timings: j.timings}, nil
}

// pack gives what was drawn addresses, which do not depend on the budgets, and remembers
// what it needs.
func (j *job) pack(f *found) {
	f.sketch.pack(need{}, 0)
	j.needs[f.way] = f.sketch.need
}

// lower makes the plan of a way, without waits.
func (j *job) lower(ctx context.Context, w way) (*plan.Plan, *pass.Program, error) {
	f, err := j.draw(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	j.pack(f)
	return f.sketch.lower(f.program, f.title, w.options), f.program, nil
}

// schedule is the pass that writes down what has been decided.
func (j *job) schedule(w way) pass.Pass {
	if w.Segments > 0 {
		return pass.Pass{Name: "segments", Run: func(p *pass.Program) error {
			problem := auto.New(p, j.prices)
			p.Schedule = problem.Schedule(problem.Segmented(w.Segments))
			return nil
		}}
	}
	return schedule.Pass(schedule.Options{Partition: w.options.Partition,
		Streams: w.options.Streams, Prefetch: w.Prefetch, Lookahead: w.Lookahead,
		Unshared: w.Unshared})
}

// sketched is the sketch of a program that has been decided about, by the last passes.
func sketched(ctx context.Context, p *pass.Program, last []pass.Pass) (*sketch, error) {
	last = append(last, sharing(p.Graph)...)
	if _, err := pass.Run(ctx, p, last); err != nil {
		return nil, err
	}
	return newSketch(p.Schedule), nil
}

// sharing is the pass for variables that workers share, if there may be some.
func sharing(g *graph.Graph) []pass.Pass {
	if g.Exchanges() {
		return []pass.Pass{schedule.Share()}
	}
	return nil
}

// load is what the plan of a way takes at least.
func (j *job) load(ctx context.Context, w way) (need, error) {
	if n, known := j.loads[w]; known {
		return n, nil
	}
	_, err := j.draw(ctx, w)
	return j.loads[w], err
}

// need is what the plan of a way takes.
func (j *job) need(ctx context.Context, w way) (need, error) {
	if n, known := j.needs[w]; known {
		return n, nil
	}
	f, err := j.draw(ctx, w)
	if err != nil {
		return need{}, err
	}
	j.pack(f)
	return f.sketch.need, nil
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
	if w.Segments > 0 {
		return []pass.Pass{pass.DeadCode(), order.Creation()}
	}
	cut := partition.Pass
	if w.Bounded {
		cut = partition.Bounded
	}
	return append([]pass.Pass{
		pass.DeadCode(),
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

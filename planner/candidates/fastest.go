package candidates

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/search"
	"github.com/gomem/gomem/planner/spill"
)

// problem is a target's program in one order, as the planner sees it.
type problem struct {
	*search.Problem
	program *program.Program
	order   string
	peak    int64 // of keeping everything
	timings []program.Timing
}

// solver is the planner: it finds plans by searching what is decided of each array.
type solver struct {
	sketches *sketches
	log      scribe
	disk     *spill.Options // how its schedules use a disk; nil: not at all
}

// largeGraph is the number of operations from which on one order is all there is
// time for.
const largeGraph = 20_000

// problems are a target's, one for every order that is worth a search: that of
// creation, and the one with the lowest peak if that is lower by more than a part
// in 32. All orders are made at once.
func (s *solver) problems(ctx context.Context, o Options) ([]*problem, error) {
	orders := order.Portfolio()
	if len(s.sketches.program.Order) > largeGraph || o.Draft {
		orders = orders[:1]
	}
	all, errs := make([]*problem, len(orders)), make([]error, len(orders))
	var passes sync.WaitGroup
	for i, by := range orders {
		passes.Go(func() { all[i], errs[i] = s.sketches.ordered(ctx, by) })
	}
	passes.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	first := all[0]
	lowest := slices.MinFunc(all, func(a, b *problem) int { return cmp.Compare(a.peak, b.peak) })
	list := []*problem{first}
	if lowest.peak < first.peak-first.peak/32 {
		list = append(list, lowest)
	}
	for _, x := range list {
		x.Problem = search.New(x.program, s.sketches.prices)
	}
	return list, nil
}

// ordered is a target's program in an order, which nothing has been solved of yet.
func (k *sketches) ordered(ctx context.Context, by program.Pass) (*problem, error) {
	p := k.undecided()
	timings, err := program.Run(ctx, p, []program.Pass{program.DeadCode(), by})
	if err != nil {
		return nil, err
	}
	return &problem{program: p, order: by.Name, peak: order.Peak(p), timings: timings}, nil
}

// fastest is the plans that the planner finds, or nil if it finds none for some
// target. The target that takes the longest decides which variables are on the
// device; if another does not fit with that, all are on the host.
func (s *Search) fastest() ([]*Drawn, error) {
	problems := make([][]*problem, len(s.each))
	for i, j := range s.each {
		var err error
		if problems[i], err = j.solver.problems(s.ctx, s.Options); err != nil {
			return nil, err
		}
	}
	longest := s.longest()
	for _, homes := range [][]bool{s.homes(), make([]bool, s.Graph.Len())} {
		all, err := s.agreeing(problems, longest, homes)
		if all != nil || err != nil {
			return all, err
		}
	}
	return nil, nil
}

// homes say where variables must be: nil if that is the planner's to choose.
func (s *Search) homes() []bool {
	if !s.Options.NoPlacement {
		return nil
	}
	homes := make([]bool, s.Graph.Len())
	for i := range homes {
		homes[i] = true
	}
	return homes
}

// longest is the target whose operations take the longest.
func (s *Search) longest() int {
	best, most := 0, time.Duration(-1)
	for i, j := range s.each {
		if work := j.work(); work > most {
			best, most = i, work
		}
	}
	return best
}

// agreeing is the plans of all targets with variables where one of them decides.
func (s *Search) agreeing(problems [][]*problem, first int, homes []bool) ([]*Drawn, error) {
	plans := make([]*Drawn, len(s.each))
	for k := range s.each {
		i := (first + k) % len(s.each)
		start := time.Now()
		f, err := s.each[i].solver.solve(s.ctx, problems[i], s.Options, homes)
		s.each[i].took += time.Since(start)
		if f == nil || err != nil {
			return nil, err
		}
		plans[i] = f
		if homes == nil {
			homes = f.decision.Resident()
		}
	}
	return plans, nil
}

// solve is the fastest plan that is found for a target, or nil. All orders are searched at
// once, with variables moved one by one and without; those that promise hardly more than what is
// packed already are not packed.
func (s *solver) solve(ctx context.Context, problems []*problem, o Options,
	homes []bool) (*Drawn, error) {
	decisions, err := s.decisions(ctx, problems, o, homes)
	if err != nil {
		return nil, err
	}
	c := NewContest[*Drawn](s.sketches.prices)
	for i, d := range decisions {
		x := problems[i%len(problems)]
		named := &Drawn{title: x.title(o, s.sketches.prices), rehomed: i >= len(problems)}
		if d != nil && unpromising(c, d) {
			s.log.slow(named.name(), d.Time(), c.Limit())
			continue
		}
		f, err := s.packed(ctx, x, d, o, homes)
		if err != nil {
			return nil, err
		}
		if f == nil {
			s.log.note(Entry{Candidate: named.name(), Fate: unsolved(d)})
			continue
		}
		f.rehomed = named.rehomed
		s.log.drawn(f, fits)
		c.Add(WeightOf(f), f)
	}
	return c.Best(), nil
}

// decisions are what is found for problems in turn; and after that, unless only a draft is wanted,
// what is found with variables moved one by one.
func (s *solver) decisions(ctx context.Context, problems []*problem, o Options,
	homes []bool) ([]*search.Decision, error) {
	n, by := len(problems), searching(o, homes)
	decisions, errs := make([]*search.Decision, 2*n), make([]error, n)
	var searches sync.WaitGroup
	for i, x := range problems {
		searches.Go(func() {
			if o.Draft {
				decisions[i], errs[i] = x.Solve(ctx, s.room(o), by)
				return
			}
			decisions[i], decisions[n+i], errs[i] = x.SolveTwice(ctx, s.room(o), by)
		})
	}
	searches.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if o.Draft {
		decisions = decisions[:n]
	}
	return decisions, nil
}

// title says how a plan of a problem is made.
func (x *problem) title(o Options, prices *lower.Prices) string {
	return fmt.Sprintf("policy=%s %s machine=%s", o.Policy, x.order, prices.Name())
}

// unsolved is the fate of a search without a plan.
func unsolved(d *search.Decision) string {
	if d == nil {
		return "no decision keeps to the budgets"
	}
	return "packing finds no addresses within the budgets"
}

// unpromising reports whether a decision is not worth to be packed beside what is.
func unpromising(c *Contest[*Drawn], d *search.Decision) bool {
	if !c.Any() {
		return false
	}
	best := c.Best()
	hardly := d.Time() >= best.time-best.time/promise
	if !c.shared {
		return hardly
	}
	return d.Time() >= c.Limit() || hardly && d.Moved() >= best.decision.Moved()
}

// promise is by what part of a step another order must be faster to be packed.
const promise = 500

// room is what the planner may take: of the host anything, if a disk takes over what it
// has no room for.
func (s *solver) room(o Options) search.Budget {
	if s.disk != nil {
		o.HostBytes = math.MaxInt64
	}
	return search.Budget{Device: o.DeviceBytes, Host: o.HostBytes}
}

// searching is what the planner may do.
func searching(o Options, homes []bool) search.Options {
	if o.Draft {
		o.Effort = 1
	}
	return search.Options{Effort: o.Effort, Resident: homes, NoSwap: o.NoSwap,
		NoRecompute: o.NoRecompute}
}

// scheduled is the plan of a decision, whether or not it keeps to the budgets. If there
// is a disk, it takes over what is beyond so many bytes of the host.
func (s *solver) scheduled(ctx context.Context, x *problem, d *search.Decision, o Options,
	host int64) (*Drawn, error) {
	filled := *x.program
	fill := program.Pass{Name: "auto", Run: func(p *program.Program) error {
		p.Schedule = x.Schedule(d)
		return nil
	}}
	passes := []program.Pass{fill}
	if s.disk != nil {
		use := *s.disk
		use.HostBytes = host
		passes = append(passes, spill.Pass(use))
	}
	passes = append(passes, sharing(filled.Graph, o)...)
	timings, err := program.Run(ctx, &filled, passes)
	if err != nil {
		return nil, err
	}
	k := lower.Of(&filled)
	k.Pack(o.Budgets(), o.packing())
	return &Drawn{Candidate: at(o, Tuning{}), program: &filled, sketch: k, decision: d,
		order:   x.order,
		title:   x.title(o, s.sketches.prices),
		timings: append(x.timings[:len(x.timings):len(x.timings)], timings...)}, nil
}

package candidates

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/outlook"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/search"
)

// Search looks for the plans of all targets of one graph, which share its variables.
type Search struct {
	ctx     context.Context
	Graph   *graph.Graph
	Options Options
	Targets []Target
	After   *Search         // of the graph that rivals are refused before they have this one
	each    []*targetSearch // by target
	order   []graph.NodeID  // leaves, by which should go to the disk first
	known   []*Result       // by target, what has been planned; nil if nothing has
	housing *housing        // where variables are at the levels of the ladder's housed candidates
	log     scribe
}

// Drawn is a plan but for its text: the sketch of a candidate, with addresses or without. Of those
// that lose the plan is never written.
type Drawn struct {
	Candidate
	title    string
	sketch   *lower.Sketch
	program  *program.Program
	timings  []program.Timing // of the passes that decided
	decision *search.Decision // the planner's, if it was that
	order    string           // and the order that it took
	rehomed  bool             // and whether it moved variables one by one
	time     time.Duration    // of a step, by the machine's prices
}

// name is what the log calls it.
func (f *Drawn) name() string {
	if f.rehomed {
		return f.title + " rehomed"
	}
	return f.title
}

// New is a search that finds plans: it checks what is to be planned, and works out which
// candidates there are. The errors are those of Options.Validate and CheckTargets, and of a nil
// context.
func New(ctx context.Context, g *graph.Graph, o Options, targets []Target) (*Search, error) {
	return Again(ctx, g, o, targets, nil)
}

// Again is New of what has been planned by the same options but for the budgets, of which
// nothing is checked or decided again. The results are by target; nil if nothing is known.
func Again(ctx context.Context, g *graph.Graph, o Options, targets []Target,
	known []*Result) (*Search, error) {
	s, err := Begin(ctx, g, o, targets, known)
	if err != nil {
		return nil, err
	}
	return s.by(s.Options)
}

// Begin is Again but for the candidates: such a search finds nothing, and only answers what is
// asked by other options.
func Begin(ctx context.Context, g *graph.Graph, o Options, targets []Target,
	known []*Result) (*Search, error) {
	if ctx == nil {
		return nil, errors.New("planner: the context is nil")
	}
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	if known == nil {
		if err := CheckTargets(g, targets...); err != nil {
			return nil, fmt.Errorf("planner: %w", err)
		}
	}
	o.EnsureDefaults()
	return &Search{ctx: ctx, Graph: g, Options: o, Targets: targets, known: known,
		log: scribeOf(ctx)}, nil
}

// Policy is the policy of a plan: under Auto it may be another's.
func (f *Drawn) Policy() Policy { return f.options.Policy }

// by is a search for the same by other options, with ladders.
func (s *Search) by(o Options) (*Search, error) {
	s = s.laddered(o)
	for i, j := range s.each {
		start := time.Now()
		base := at(o, Tuning{Lookahead: o.Lookahead})
		if err := j.sketches.decide(s.ctx, base); err != nil {
			return nil, fmt.Errorf("compile %s: %w", s.Targets[i].Name, err)
		}
		j.sketches.base = j.sketches.decisions
		j.ladder = o.Policy.rules().ladder(base, j.sketches.program)
		j.floor = touched(j.sketches.program)
		j.took = time.Since(start)
	}
	s.leaves()
	return s, nil
}

// laddered is a search for the same by other options, in which nothing is decided. Only a
// steady policy's ladders are there.
func (s *Search) laddered(o Options) *Search {
	s = &Search{ctx: s.ctx, Graph: s.Graph, Options: o, Targets: s.Targets, known: s.known,
		log: s.log}
	prices := lower.NewPrices(Prices(o.Machine, o.Model, s.Graph, s.Targets...), s.Graph)
	for i, t := range s.Targets {
		log := s.log.of(t.Name)
		k := &sketches{graph: s.Graph, target: t.Computed(), prices: prices,
			loads: map[Candidate]lower.Need{}, needs: map[Candidate]lower.Need{}}
		j := &targetSearch{sketches: k, solver: solver{sketches: k, log: log}, log: log,
			answers: map[asked]lower.Need{}, outlooks: map[Candidate]outlook.Outlook{}}
		if s.known != nil {
			j.sketches.decisions = s.known[i].decisions()
		}
		if r := o.Policy.rules(); r.steady {
			j.ladder = r.ladder(at(o, Tuning{Lookahead: o.Lookahead}), nil)
		}
		s.each = append(s.each, j)
	}
	s.housing = &housing{each: s.each}
	for _, j := range s.each {
		j.sketches.housing = s.housing
	}
	return s
}

// Results are the verified plans, or nil if some target has none.
func (s *Search) Results() ([]*Result, error) {
	plans, err := s.Find()
	if plans == nil || err != nil {
		return nil, err
	}
	if plans, err = s.coveredOrExact(plans); err != nil {
		return nil, err
	}
	return s.Complete(plans)
}

// Find is the plans, by target, or nil if some target has none. A disk is used if they do
// not fit without.
func (s *Search) Find() ([]*Drawn, error) {
	if s.refused() {
		return nil, nil
	}
	all, err := s.unspilled()
	for level := 1; level < s.levels() && all == nil && err == nil; level++ {
		all, err = s.spill(level)
	}
	return all, err
}

// refused reports whether some operation alone touches more than the device has.
func (s *Search) refused() bool {
	floor, have := s.Floor(), s.Options.DeviceBytes
	if floor > have {
		s.log.note(Entry{Need: lower.Need{space.Device: floor}, Fate: fmt.Sprintf(
			"one operation alone is over the budget by %d bytes of device", floor-have)})
	}
	return floor > have
}

// unspilled are the plans that have nothing on a disk. The first of the candidates that all
// targets go together is taken if it fits, unless it is worth a search where the host computes
// beside the device; what comes after it is for a policy that searches one candidate among others.
func (s *Search) unspilled() ([]*Drawn, error) {
	searches := s.Options.Policy.rules().searches
	weighs := searches && !s.Options.Draft && s.Options.Concurrent()
	c := Among(s.each[0].sketches.prices)
	for i := range s.each[0].ladder.together {
		all, err := s.plans(func(j *targetSearch) (*Drawn, error) {
			return j.try(s.ctx, j.ladder.together[i], Never)
		})
		if err != nil || all != nil && (i == 0 && !weighs || !searches) {
			return all, err
		}
		c.enter(all)
	}
	if !searches {
		return s.straight(0)
	}
	granted := c.Any() || s.granted()
	if !granted {
		plans, err := s.conceded()
		if plans == nil || err != nil {
			return plans, err
		}
		c.enter(plans)
	}
	planned, err := s.planned()
	if err != nil {
		return nil, err
	}
	c.enter(planned)
	if c.Any() && s.Options.Draft {
		return c.Best(), nil
	}
	if !c.Any() {
		plans, err := s.conceded()
		if plans == nil || err != nil {
			return plans, err
		}
		c.enter(plans)
	}
	if err := s.Tuned(c, granted); err != nil {
		return nil, err
	}
	return c.Best(), nil
}

// conceded is the plans that the ladder comes to without a disk, or nil: those of candidates that
// targets go alone, or else with some of the variables on the device.
func (s *Search) conceded() ([]*Drawn, error) {
	plans, err := s.straight(0)
	if plans != nil || err != nil {
		return plans, err
	}
	for _, c := range s.groups(ladder.straight) {
		n, err := s.AtLeast(c)
		if err != nil {
			return nil, err
		}
		if c.housed == 0 {
			continue
		}
		if !n.Within(s.Options.Budgets()) {
			s.dropped(c, n)
			continue
		}
		plans, err := s.plans(func(j *targetSearch) (*Drawn, error) {
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

// dropped writes down that a group takes too much by what is known without a schedule.
func (s *Search) dropped(c Group, n lower.Need) {
	for _, j := range s.each {
		for _, w := range c.candidates(j.ladder) {
			j.log.over(w, n, false)
		}
	}
}

// planned is what there is beside the ladder: what the planner finds, unless a rival comes as near
// to the least that a step takes as is of interest.
func (s *Search) planned() ([]*Drawn, error) {
	if !s.Options.Draft {
		plans, err := s.ideal()
		if err != nil {
			return nil, err
		}
		if plans != nil {
			s.log.note(Entry{Fate: "nothing is searched: a rival is as fast as any plan"})
			return plans, nil
		}
	}
	return s.fastest()
}

// straight is the plans that the ladder comes to at a level of use of a disk.
func (s *Search) straight(level int) ([]*Drawn, error) {
	plans, err := s.plans(func(j *targetSearch) (*Drawn, error) {
		return j.find(s.ctx, j.ladder.at(level))
	})
	if plans == nil || err != nil {
		return nil, err
	}
	return s.timed(plans)
}

// granted reports whether it is known that the budgets are not refused, from what the
// likeliest candidate of every target needs.
func (s *Search) granted() bool {
	for _, j := range s.each {
		n, err := j.sketches.need(s.ctx, j.ladder.last[len(j.ladder.last)-1])
		if err != nil || !n.Within(s.Options.Budgets()) {
			return false
		}
	}
	return true
}

// work is how long the operations of all targets take on the device, on all streams at once,
// and a 50th more.
func (s *Search) work() time.Duration {
	var sum time.Duration
	for _, j := range s.each {
		sum += j.work()
	}
	sum /= time.Duration(s.Options.Streams)
	return sum + sum/50
}

// StepTime is how long a step of every target takes.
func StepTime(plans []*Drawn) time.Duration {
	var sum time.Duration
	for _, f := range plans {
		sum += f.time
	}
	return sum
}

// plans makes the plans of all targets in one manner, or nil.
func (s *Search) plans(find func(*targetSearch) (*Drawn, error)) ([]*Drawn, error) {
	var plans []*Drawn
	for _, j := range s.each {
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

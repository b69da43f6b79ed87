package candidates

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
)

// fewOperations is how many operations a target has at most of which all partition sizes
// are tried.
const fewOperations = 100

// rivals are the candidates of the thesis' policy that a planner's plans must not be slower than:
// by all strategies, with partitions of the options' size and of those with which a user
// could tune it, or of any size, if there are few operations. Those of one list decide alike
// and differ in when copies run.
func (s *Search) rivals() [][]Candidate {
	sizes := []int{200, 20, 5}
	if !slices.Contains(sizes, s.Options.Partition) {
		sizes = append(sizes, s.Options.Partition)
	}
	most := 0
	for _, j := range s.each {
		most = max(most, len(j.sketches.program.Order))
	}
	if most <= fewOperations {
		sizes = nil
		for n := most; n > 0; n-- {
			sizes = append(sizes, n)
		}
	}
	var lists [][]Candidate
	for _, size := range sizes {
		for _, by := range partition.Strategies() {
			o := s.Options
			o.Strategy, o.Partition = by, size
			candidates := tunings(o)
			if size == most { // larger ones differ in prefetch alone
				for d := most; d > 0; d-- {
					candidates = append([]Candidate{at(o, Tuning{Lookahead: o.Lookahead,
						Prefetch: d})}, candidates...)
				}
			}
			lists = append(lists, candidates)
		}
	}
	return lists
}

// grappler is the plan of TensorFlow's policy that fits, if it is quicker than a limit.
// The less its rule is told, the less its plans need, and the more they copy; which of
// them is the first to keep to the budgets is seen by their loads.
func (j *targetSearch) grappler(ctx context.Context, o Options, limit time.Duration) (*Drawn,
	error) {
	o = grapplers(o)
	base := at(o, Tuning{Lookahead: o.Lookahead})
	if err := j.sketches.decide(ctx, base); err != nil {
		return nil, err
	}
	if least := j.forecast(base, 0, 1).Time; least >= limit {
		j.log.slow(base.title(), least, limit)
		return nil, nil
	}
	candidates := grapplerLadder(base, j.sketches.program).last
	first, err := halving(len(candidates), func(i int) (bool, error) {
		n, err := j.sketches.load(ctx, candidates[i])
		return n.Within(o.Budgets()), err
	})
	if err != nil {
		return nil, err
	}
	for _, w := range candidates[first:] {
		f, err := j.sketches.draw(ctx, w)
		if err != nil {
			return nil, err
		}
		if f.sketch.Load.Within(o.Budgets()) {
			if least := f.sketch.Time(j.sketches.prices); least >= limit {
				j.log.slow(f.name(), least, limit)
				return nil, nil // and those that come later copy more
			}
		}
		if f = j.judge(f, limit); f != nil {
			return f, nil
		}
	}
	return nil, nil
}

// Tuned has those plans take part beside some that do which the ladder comes to, if these are not
// among them, and those that the rivals come to, TensorFlow's swapping last.
func (s *Search) Tuned(c *Between, ladders bool) error {
	if ladders && StepTime(c.Best()) > s.work() {
		if err := c.rival(s, func(j *targetSearch, limit time.Duration) (*Drawn, error) {
			return j.relaxedIn(s.ctx, j.ladder, limit)
		}); err != nil {
			return err
		}
	}
	for _, candidates := range s.rivals() {
		if granted, err := s.grantedBefore(candidates); granted || err != nil {
			if err != nil {
				return err
			}
			s.elsewhere(candidates)
			continue
		}
		if err := c.rival(s, func(j *targetSearch, limit time.Duration) (*Drawn, error) {
			return j.quickest(s.ctx, candidates, limit)
		}); err != nil {
			return err
		}
	}
	told := tunings(grapplers(s.Options))[:1]
	told[0].Told = 1
	if granted, err := s.grantedBefore(told); granted || err != nil {
		if err == nil {
			s.elsewhere(told)
		}
		return err
	}
	return c.rival(s, func(j *targetSearch, limit time.Duration) (*Drawn, error) {
		return j.grappler(s.ctx, s.Options, limit)
	})
}

// ideal is plans of rivals that take hardly more than any do, or nil: then nothing needs to be
// searched.
func (s *Search) ideal() ([]*Drawn, error) {
	limit := s.onDevice()
	limit += limit / promise
	for _, candidates := range s.rivals() {
		plans, err := s.beats(limit, func(j *targetSearch, limit time.Duration) (*Drawn, error) {
			return j.quickest(s.ctx, candidates, limit)
		})
		if plans != nil || err != nil {
			return plans, err
		}
	}
	return nil, nil
}

// onDevice is what steps of all targets take at least: what no policy has on the host is
// executed on the device, and so is all where the host is no other processor.
func (s *Search) onDevice() time.Duration {
	var sum time.Duration
	for _, j := range s.each {
		for _, id := range j.sketches.program.Order {
			n := s.Graph.Node(id)
			updates := n.Phase == graph.Update || n.Kind == graph.KindUpdate
			if !updates || j.sketches.prices.Shared() > 0 {
				sum += j.sketches.prices.Node(space.Device, id)
			}
		}
	}
	return sum
}

// grapplers are options for grappler.
func grapplers(o Options) Options {
	o.Policy = Grappler
	o.EnsureDefaults()
	return o
}

// grantedBefore reports whether the graph that comes before this one, if there is one, has a
// plan for every target by the last of some candidates, which needs the least.
func (s *Search) grantedBefore(candidates []Candidate) (bool, error) {
	if s.After == nil {
		return false, nil
	}
	for _, j := range s.After.each {
		n, err := j.sketches.need(s.ctx, candidates[len(candidates)-1])
		if err != nil || !n.Within(s.Options.Budgets()) {
			return false, err
		}
	}
	return true, nil
}

// elsewhere writes down that rivals have the graph that comes before this one.
func (s *Search) elsewhere(candidates []Candidate) {
	for _, j := range s.each {
		for _, w := range candidates {
			if j.log.log == nil {
				return
			}
			j.log.note(Entry{Candidate: w.title(),
				Fate: fmt.Sprintf("is granted the %s graph", s.After.log.about.Graph)})
		}
	}
}

// beats is the plans of all targets in a manner, or nil if together they do not take less than
// a limit.
func (s *Search) beats(left time.Duration,
	find func(j *targetSearch, limit time.Duration) (*Drawn, error)) ([]*Drawn, error) {
	return s.plans(func(j *targetSearch) (*Drawn, error) {
		f, err := find(j, left)
		if f != nil {
			left -= f.time
		}
		return f, err
	})
}

// relaxedIn is the quickest of the plans of a ladder that are as relaxed as the budgets
// allow by their loads, if it is quicker than a limit.
func (j *targetSearch) relaxedIn(ctx context.Context, l ladder, limit time.Duration) (*Drawn,
	error) {
	k, err := halving(len(l.chain), func(i int) (bool, error) {
		n, err := j.sketches.load(ctx, l.chain[i])
		return n.Within(l.chain[i].options.Budgets()), err
	})
	if err != nil {
		return nil, err
	}
	if k == len(l.chain) {
		return j.quickest(ctx, tunings(l.last[0].options), limit)
	}
	return j.quickest(ctx, append(ahead(l.chain[k]), l.chain[k]), limit)
}

// quickest is the quickest plan of some candidates, if it is quicker than a limit. What they need
// and take at least is known before any of them is drawn.
func (j *targetSearch) quickest(ctx context.Context, candidates []Candidate,
	limit time.Duration) (*Drawn, error) {
	c := NewContest[*Drawn](j.sketches.prices)
	for _, w := range candidates {
		o, err := j.foresee(ctx, w)
		if err != nil {
			return nil, err
		}
		if o.Time >= limit {
			j.log.slow(w.title(), o.Time, limit)
			continue
		}
		if o.Bytes > w.options.DeviceBytes {
			j.log.over(w, lower.Need{space.Device: o.Bytes}, false)
			continue
		}
		f, err := j.sketches.draw(ctx, w)
		if err != nil {
			return nil, err
		}
		if f = j.judge(f, limit); f != nil {
			c.Add(WeightOf(f), f)
			limit = min(limit, c.Limit())
		}
	}
	return c.Best(), nil
}

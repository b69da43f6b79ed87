package candidates

import (
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
)

// What is granted is said by the ladder's candidates alone, and what is taken may be found by other
// means: so what a plan takes may be less than any candidate needs, in one memory or in all of them
// together, and whoever gives it just that would be refused. Such a plan takes what the candidate
// needs that comes next, as far as the budgets go: more of the host first. It has the bytes at its
// end, and is no slower for them.

// Covered are plans whose peaks are granted by some of the searches for what to plan, of which
// this one made them: those plans, or what they are with more memory. It is nil if they cannot
// be, since blocks of few sizes may miss a number by some bytes.
func (s *Search) Covered(plans []*Drawn, granting []*Search) ([]*Drawn, error) {
	for i, f := range plans {
		f.condense(s.each[i].sketches.prices)
	}
	peaks := peaksOf(plans)
	for _, g := range granting {
		if ok, err := g.grants(peaks); ok || err != nil {
			return plans, err
		}
	}
	for _, g := range granting {
		more, err := g.nextGranted(peaks)
		if err != nil {
			return nil, err
		}
		if lifted := s.lifted(plans, more); lifted != nil {
			return lifted, nil
		}
	}
	return nil, nil
}

// coveredOrExact are plans whose peaks are granted, by this search alone.
func (s *Search) coveredOrExact(plans []*Drawn) ([]*Drawn, error) {
	covered, err := s.Covered(plans, []*Search{s})
	if covered != nil || err != nil {
		return covered, err
	}
	return s.Exact()
}

// peaksOf is what a session with some plans takes.
func peaksOf(plans []*Drawn) lower.Need {
	var most lower.Need
	for _, f := range plans {
		for id, bytes := range f.sketch.Need {
			most[id] = max(most[id], bytes)
		}
	}
	return most
}

// grants reports whether budgets are granted. What is known to fit is looked for first.
func (s *Search) grants(limits lower.Need) (bool, error) {
	list := s.groups(ladder.straight)
	for _, c := range list {
		if c.housed == 0 && s.surely(c, limits) {
			return true, nil
		}
	}
	for _, c := range list {
		n, err := s.AtLeast(c)
		if err != nil {
			return false, err
		}
		if !n.Within(limits) {
			continue
		}
		if ok, err := s.fits(c, limits); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// surely reports whether a group is known to fit, since its candidates have been packed.
func (s *Search) surely(c Group, limits lower.Need) bool {
	for _, j := range s.each {
		fits := false
		for _, w := range c.candidates(j.ladder) {
			n, known := j.sketches.needs[w]
			fits = fits || known && n.Within(limits)
		}
		if !fits {
			return false
		}
	}
	return true
}

// fits reports whether a group fits. The likeliest candidate of a target is its last.
func (s *Search) fits(c Group, limits lower.Need) (bool, error) {
	for _, j := range s.each {
		fits, candidates := false, c.candidates(j.ladder)
		for i := len(candidates) - 1; i >= 0 && !fits; i-- {
			n, err := j.answer(s.ctx, candidates[i], query{of: space.Host, limits: limits})
			if err != nil {
				return false, err
			}
			fits = n.Within(limits)
		}
		if !fits {
			return false, nil
		}
	}
	return true, nil
}

// nextGranted is the least that is granted of what is no less than peaks and within the
// budgets: with more of the host if that is enough, or else more of all. It is nothing if the
// budgets are refused.
func (s *Search) nextGranted(peaks lower.Need) (lower.Need, error) {
	limits, have := s.Options.Budgets(), peaks
	for _, free := range [][]space.ID{{space.Host}, {space.Host, space.Device},
		{space.Host, space.Device, space.Disk}} {
		for _, id := range free {
			have[id] = limits[id]
		}
		granted := true
		for _, id := range free {
			l, err := s.answer(query{of: id, limits: have, candidates: ladder.straight,
				most: have[id]})
			if err != nil {
				return lower.Need{}, err
			}
			if granted = l != nil; !granted {
				break
			}
			have[id] = max(peaks[id], l.Bytes)
		}
		if granted {
			return have, nil
		}
	}
	return lower.Need{}, nil
}

// lifted are plans that take so much, or nil if none of them can within the budgets.
func (s *Search) lifted(plans []*Drawn, to lower.Need) []*Drawn {
	peaks, limits := peaksOf(plans), s.Options.Budgets()
	list := append([]*Drawn(nil), plans...)
	for id := range to {
		if to[id] < peaks[id] {
			return nil // nothing is granted
		}
		for i := range list {
			if to[id] == peaks[id] {
				break
			}
			f := *list[i]
			f.sketch = f.sketch.Clone()
			if f.sketch.Lift(space.ID(id), to[id], limits[id]) {
				f.time = f.sketch.Time(s.each[i].sketches.prices)
				list[i], peaks[id] = &f, to[id]
			}
		}
		if to[id] != peaks[id] && !liftedTop(list, s.each, space.ID(id), to[id], limits[id]) {
			return nil
		}
	}
	return list
}

// liftedTop lifts a variable of a space in plans of some targets, which have sketches of their own
// from then on: it is for a space that has nothing but variables.
func liftedTop(list []*Drawn, of []*targetSearch, id space.ID, bytes, limit int64) bool {
	sketches := make([]*lower.Sketch, len(list))
	for i, f := range list {
		sketches[i] = f.sketch.Clone()
	}
	if !lower.LiftTop(sketches, id, bytes, limit) {
		return false
	}
	for i := range list {
		f := *list[i]
		f.sketch = sketches[i]
		f.time = f.sketch.Time(of[i].sketches.prices)
		list[i] = &f
	}
	return true
}

// Exact are plans by candidates that decide about a refusal, or nil if the budgets are refused.
func (s *Search) Exact() ([]*Drawn, error) {
	for _, c := range s.groups(ladder.straight) {
		n, err := s.AtLeast(c)
		if err != nil {
			return nil, err
		}
		if !n.Within(s.Options.Budgets()) {
			s.dropped(c, n)
			continue
		}
		plans, err := s.plans(func(j *targetSearch) (*Drawn, error) {
			return j.first(s.ctx, c.candidates(j.ladder))
		})
		if plans != nil || err != nil {
			return plans, err
		}
	}
	return nil, nil
}

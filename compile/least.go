package compile

import "github.com/gomem/gomem/space"

// least is the smallest budget of a space that works: how much, and the target
// that sets it with its way.
type least struct {
	bytes int64
	job   *job
	way   way
}

// question is what is asked of a search: the smallest budget of a space, with so
// much of the others, if those targets that go ways of their own take these.
type question struct {
	of     space.ID
	limits need // that of the space itself does not count
	ways   func(ladder) []way
}

// least is the smallest budget of a space that is not refused, given the other
// spaces', or nil if all are.
func (s *search) least(of space.ID) (*least, error) {
	return s.answer(question{of, budgets(s.options), ladder.straight})
}

// budgets are the budgets of options, by space.
func budgets(o Options) need { return need{o.DeviceBytes, o.HostBytes, o.DiskBytes} }

// tightest is the way that needs the least, as a rule.
func (l ladder) tightest() []way { return l.last[len(l.last)-1:] }

// answer is the smallest budget with which all targets go one of the ways that
// they must go together, or each finds one of the others, all with as much on the
// disk; nil if there is none.
func (s *search) answer(q question) (*least, error) {
	var choices []func(ladder) []way
	for level := range s.levels() {
		choices = append(choices, func(l ladder) []way { return q.ways(l.at(level)) })
	}
	for i := range s.jobs[0].ladder.together {
		choices = append(choices, func(l ladder) []way { return l.together[i : i+1] })
	}
	var best *least
	for _, ways := range choices {
		l, err := s.most(question{q.of, q.limits, ways})
		if err != nil {
			return nil, err
		}
		if best == nil || l != nil && l.bytes < best.bytes {
			best = l
		}
	}
	return best, nil
}

// most is the need of the target that needs the most, each by the way that is
// best for it. It is nil if one of them finds none.
func (s *search) most(q question) (*least, error) {
	var most *least
	for _, j := range s.jobs {
		l, err := s.leastOf(j, q)
		if l == nil || err != nil {
			return nil, err
		}
		if most == nil || l.bytes > most.bytes {
			most = l
		}
	}
	return most, nil
}

// leastOf is the need of one target.
func (s *search) leastOf(j *job, q question) (*least, error) {
	var best *least
	for _, w := range q.ways(j.ladder) {
		n, err := j.need(s.ctx, w)
		if err != nil {
			return nil, err
		}
		rest := n
		rest[q.of] = 0
		if rest.within(q.limits) && (best == nil || n[q.of] < best.bytes) {
			best = &least{n[q.of], j, w}
		}
	}
	return best, nil
}

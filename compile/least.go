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
// much of the other one, if those targets that go ways of their own take these.
type question struct {
	of    space.ID
	limit int64
	ways  func(ladder) []way
}

// least is the smallest budget of a space that is not refused, given the other
// space's, or nil if all are.
func (s *search) least(of space.ID) (*least, error) {
	return s.answer(question{of, *budget(&s.options, other(of)), ladder.straight})
}

func other(of space.ID) space.ID { return space.Device + space.Host - of }

// tightest is the way that needs the least, as a rule.
func (l ladder) tightest() []way { return l.last[len(l.last)-1:] }

// answer is the smallest budget with which all targets go one of the ways that
// they must go together, or each finds one of the others; nil if there is none.
func (s *search) answer(q question) (*least, error) {
	best, err := s.most(q)
	if err != nil {
		return nil, err
	}
	for i := range s.jobs[0].ladder.together {
		q.ways = func(l ladder) []way { return l.together[i : i+1] }
		l, err := s.most(q)
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
		if n[other(q.of)] <= q.limit && (best == nil || n[q.of] < best.bytes) {
			best = &least{n[q.of], j, w}
		}
	}
	return best, nil
}

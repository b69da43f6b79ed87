package candidates

// Groups are the groups that decide about a refusal.
func (s *Search) Groups() []Group { return s.groups(ladder.straight) }

// Candidates are those of a group for a target, by its number. The likeliest is the last.
func (s *Search) Candidates(c Group, target int) []Candidate {
	return c.candidates(s.each[target].ladder)
}

// Weigh tries a candidate of a target: whether it fits, and the largest part of a budget that it
// takes, as far as that had to be known to say so.
func (s *Search) Weigh(target int, w Candidate) (load float64, fits bool, err error) {
	j := s.each[target]
	f, err := j.try(s.ctx, w, Never)
	if err != nil {
		return 0, false, err
	}
	n := j.sketches.loads[w]
	if packed, known := j.sketches.needs[w]; known {
		n = packed
	}
	return n.Fraction(w.options.Budgets()), f != nil, nil
}

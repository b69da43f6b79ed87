package candidates

import "time"

// spread gives what was drawn addresses of which a step takes less than a limit, or is nil. In
// the lowest packing whoever takes an address waits for those that had it just before; where the
// budgets are larger than what is there at once, addresses are left alone for a while, which may
// take twice the memory, or more, and no time.
func (j *targetSearch) spread(f *Drawn, limit time.Duration) *Drawn {
	k, budgets := f.sketch, f.options.Budgets()
	least := k.Time(j.prices)
	if least >= limit {
		j.log.slow(f.name(), least, limit)
		return nil
	}
	var best *Drawn
	take := func() {
		if t := k.Time(j.prices); k.Need.Within(budgets) && t < limit {
			spread := *f
			spread.sketch, spread.time = k.Clone(), t
			best, limit = &spread, t
		}
	}
	for room := int64(2); room <= mostRoom && limit > least && k.Ring(budgets, room); room *= 2 {
		take()
	}
	if limit > least {
		j.pack(f)
		take()
	}
	switch {
	case best != nil:
		j.log.drawn(best, fits)
	case !k.Need.Within(budgets):
		j.log.over(f.Candidate, k.Need, true)
	default:
		j.log.slow(f.name(), least, limit)
	}
	return best
}

// mostRoom is how many times what is there at once addresses are spread over.
const mostRoom = 8

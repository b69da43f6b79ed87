package candidates

import (
	"context"
	"math"
	"time"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/outlook"
)

// targetSearch is the search for the plan of one target: what is decided for it, and what is known
// of its candidates by now.
type targetSearch struct {
	sketches *sketches
	solver   solver
	log      scribe
	ladder   ladder
	floor    int64 // what any plan needs of the device: what one operation touches
	took     time.Duration
	answers  map[asked]lower.Need          // of others than were packed, as much as was asked
	outlooks map[Candidate]outlook.Outlook // of candidates, their prefetch being how far it reaches
}

// find is the most relaxed plan by the candidates that a target may take alone, or nil.
func (j *targetSearch) find(ctx context.Context, l ladder) (*Drawn, error) {
	var best *Drawn
	_, err := halving(len(l.chain), func(i int) (bool, error) {
		f, err := j.try(ctx, l.chain[i], Never)
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
	longer, err := j.first(ctx, ahead(best.Candidate))
	if longer == nil && err == nil {
		longer = best
	}
	return longer, err
}

// first is the plan of the first of some candidates that fits, or nil.
func (j *targetSearch) first(ctx context.Context, candidates []Candidate) (*Drawn, error) {
	for _, w := range candidates {
		if f, err := j.try(ctx, w, Never); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}

// Never is more than any step takes.
const Never = time.Duration(math.MaxInt64)

// try is the plan of a candidate. It is nil if it does not fit, or if a step takes no less than
// a limit. Most candidates are out of the question by their load, or by how long their streams
// work, before they have addresses.
func (j *targetSearch) try(ctx context.Context, w Candidate, limit time.Duration) (*Drawn, error) {
	budgets := w.options.Budgets()
	if n, known := j.sketches.needs[w]; known && !n.Within(budgets) {
		j.log.over(w, n, true)
		return nil, nil
	}
	if n, known := j.sketches.loads[w]; known && !n.Within(budgets) {
		j.log.over(w, n, false)
		return nil, nil
	}
	f, err := j.sketches.draw(ctx, w)
	if err != nil {
		return nil, err
	}
	return j.judge(f, limit), nil
}

// judge gives what was drawn addresses and a time; it is nil if it does not fit, or if a
// step takes no less than a limit.
func (j *targetSearch) judge(f *Drawn, limit time.Duration) *Drawn {
	budgets := f.options.Budgets()
	if !f.sketch.Load.Within(budgets) {
		j.log.over(f.Candidate, f.sketch.Load, false)
		return nil
	}
	if limit < Never {
		return j.spread(f, limit)
	}
	j.sketches.pack(f)
	if !f.sketch.Need.Within(budgets) {
		j.log.over(f.Candidate, f.sketch.Need, true)
		return nil
	}
	f.time = f.sketch.Time(j.sketches.prices)
	j.log.drawn(f, fits)
	return f
}

// mostRoom is how many times what is there at once addresses are spread over.
const mostRoom = 8

// spread gives what was drawn addresses of which a step takes less than a limit, or is nil. In
// the lowest packing whoever takes an address waits for those that had it just before; where the
// budgets are larger than what is there at once, addresses are left alone for a while, which may
// take twice the memory, or more, and no time.
func (j *targetSearch) spread(f *Drawn, limit time.Duration) *Drawn {
	k, budgets := f.sketch, f.options.Budgets()
	least := k.Time(j.sketches.prices)
	if least >= limit {
		j.log.slow(f.name(), least, limit)
		return nil
	}
	c := NewContest[*Drawn](j.sketches.prices)
	take := func() {
		if t := k.Time(j.sketches.prices); k.Need.Within(budgets) && t < limit {
			spread := *f
			spread.sketch, spread.time = k.Clone(), t
			c.Add(WeightOf(&spread), &spread)
			limit = min(limit, c.Limit())
		}
	}
	tight := func() {
		if !c.Beats(least) {
			j.sketches.pack(f)
			take()
		}
	}
	if c.shared { // caches are, too: spread addresses are found in none
		tight()
	}
	for room := int64(2); room <= mostRoom && !c.Beats(least) && k.Ring(budgets, room); room *= 2 {
		take()
	}
	if !c.shared {
		tight()
	}
	best := c.Best()
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

// work is how long a target's operations take on the device.
func (j *targetSearch) work() time.Duration {
	var sum time.Duration
	for _, id := range j.sketches.program.Order {
		sum += j.sketches.prices.Node(space.Device, id)
	}
	return sum
}

// touchedBeside is the floor of a target with some variables on the device.
func (j *targetSearch) touchedBeside(homes []bool) int64 {
	if homes == nil || j.sketches.base.program == nil || j.sketches.base.program.Place == nil {
		return j.floor
	}
	p := *j.sketches.base.program
	p.Place = append([]space.ID(nil), p.Place...)
	for id, here := range homes {
		if here {
			p.Place[id] = space.Device
		}
	}
	return touched(&p)
}

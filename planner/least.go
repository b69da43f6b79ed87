package planner

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
)

// least is the smallest budget of a space that works: how much, and the target
// that sets it with its candidate.
type least struct {
	bytes     int64
	job       *job
	candidate candidate
}

// question is what is asked of a search: the smallest budget of a space, with so
// much of the others, if those targets that go by candidates of their own take these.
type query struct {
	of         space.ID
	limits     lower.Need // that of the space itself does not count
	candidates func(ladder) []candidate
	most       int64 // an answer above that is of no use
	enough     int64 // and one up to that is as good as any below it
	brief      bool  // some candidate is enough: those with variables on the device are left out
}

// least is the smallest budget of a space that is not refused, given the other
// spaces', or nil if all are.
func (s *variant) least(of space.ID) (*least, error) { return s.below(of, math.MaxInt64) }

// below is least, or nil if that is above a limit.
func (s *variant) below(of space.ID, limit int64) (*least, error) {
	return s.answer(query{of: of, limits: budgets(s.options), candidates: ladder.straight,
		most: limit})
}

// budgets are the budgets of options, by space.
func budgets(o Options) lower.Need { return lower.Need{o.DeviceBytes, o.HostBytes, o.DiskBytes} }

// tightest is the candidate that needs the least, as a rule.
func (l ladder) tightest() []candidate { return l.last[len(l.last)-1:] }

// answer is the smallest budget with which all targets go by one of the candidates that
// they must go together, or each finds one of the others, all with as much on the
// disk; nil if there is none.
func (s *variant) answer(q query) (*least, error) {
	list, err := s.hopeful(q)
	if err != nil {
		return nil, err
	}
	var best *least
	for _, c := range list {
		next := q
		if next.candidates = c.candidates; best != nil {
			next.most = best.bytes
		}
		if c.needs[q.of] > next.most || best != nil && c.needs[q.of] >= best.bytes {
			break
		}
		l, err := s.most(next)
		if err != nil {
			return nil, err
		}
		if l != nil {
			l.bytes = max(l.bytes, c.needs[q.of])
		}
		if best == nil || l != nil && l.bytes < best.bytes {
			best = l
		}
	}
	return best, nil
}

// hopeful are the choices that may be an answer by what is known without a schedule, those that
// need the least by that first.
func (s *variant) hopeful(q query) ([]choice, error) {
	var list []choice
	for _, c := range s.choices(q.candidates) {
		if q.brief && c.housed > 0 {
			continue
		}
		var err error
		if c.needs, err = s.atLeast(c); err != nil {
			return nil, err
		}
		if q.allows(c.needs) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b choice) int {
		return cmp.Compare(a.needs[q.of], b.needs[q.of])
	})
	return list, nil
}

// most is the need of the target that needs the most, each by the candidate that is best for
// it. It is nil if one of them finds none, or only such as need more than is of use. What
// a target comes to at best does not matter once it needs no more than another.
func (s *variant) most(q query) (*least, error) {
	var most *least
	for _, j := range s.jobs {
		if most != nil {
			q.enough = most.bytes
		}
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

// leastOf is the need of one target, if that is of use. No candidate needs less than its load:
// those that are worth packing come first, and the others are not packed.
func (s *variant) leastOf(j *job, q query) (*least, error) {
	candidates := q.candidates(j.ladder)
	loads, settled, err := s.loads(j, q, candidates)
	if settled != nil || err != nil {
		return settled, err
	}
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(loads[a][q.of], loads[b][q.of])
	})
	best, at, limit := (*least)(nil), len(candidates), q.most
	for _, i := range order {
		if loads[i][q.of] > limit {
			break
		}
		if !q.allows(loads[i]) || loads[i][q.of] == limit && best != nil && i > at {
			continue
		}
		n, err := j.answer(s.ctx, candidates[i], q)
		if err != nil {
			return nil, err
		}
		if q.allows(n) && (n[q.of] < limit || n[q.of] == limit && i < at) {
			best, at, limit = &least{n[q.of], j, candidates[i]}, i, n[q.of]
			if limit <= q.enough {
				break
			}
		}
	}
	return best, nil
}

// loads are what candidates take at least. Where the device's least is asked for, most candidates
// need more than the likeliest one, which is seen before they are drawn: of these it is only what
// they are known to take; or the likeliest candidate settles the question.
func (s *variant) loads(j *job, q query, candidates []candidate) ([]lower.Need, *least, error) {
	loads := make([]lower.Need, len(candidates))
	limit, last := q.most, len(candidates)-1
	if q.of == space.Device && last > 0 {
		n, err := j.answer(s.ctx, candidates[last], q)
		if err != nil {
			return nil, nil, err
		}
		if q.allows(n) {
			if limit = min(limit, n[q.of]); n[q.of] <= q.enough {
				return nil, &least{n[q.of], j, candidates[last]}, nil
			}
		}
		for i, w := range candidates[:last] {
			if loads[i][q.of], err = j.outlook(s.ctx, w); err != nil {
				return nil, nil, err
			}
		}
	}
	for i, w := range candidates {
		if loads[i][q.of] > limit {
			continue
		}
		var err error
		if loads[i], err = j.load(s.ctx, w); err != nil {
			return nil, nil, err
		}
	}
	return loads, nil, nil
}

// inquiry is what an answer depends on.
type inquiry struct {
	candidate candidate
	of        space.ID
	limits    lower.Need
}

// answer is what the plan of a candidate takes of the space that is asked for, and of the others
// as much as says whether their budgets suffice: nothing needs addresses in a space that has
// room for everything side by side, or not for what is there at once.
func (j *job) answer(ctx context.Context, w candidate, q query) (lower.Need, error) {
	if n, known := j.needs[w]; known {
		return n, nil
	}
	asked := inquiry{w, q.of, q.limits}
	if n, known := j.answers[asked]; known {
		return n, nil
	}
	f, err := j.sketch(ctx, w)
	if err != nil {
		return lower.Need{}, err
	}
	n := f.sketch.Load
	for id, limit := range q.limits {
		if s := space.ID(id); s == q.of || n[s] <= limit && f.sketch.Apart(s) > limit {
			n[s] = f.sketch.Lowest(s)
		}
	}
	j.answers[asked] = n
	return n, nil
}

// outlook is what the plan of a candidate needs of the device at least, as far as that is known
// without a schedule.
func (j *job) outlook(ctx context.Context, w candidate) (int64, error) {
	if n, known := j.loads[w]; known {
		return n[space.Device], nil
	}
	if w.Segments > 0 || w.Spill > 0 {
		return j.floor, nil
	}
	o, err := j.foresee(ctx, w)
	return o.bytes, err
}

// foresee is the outlook of a candidate that takes nothing else than partitions, of which
// candidates that differ in prefetch alone have one, and which is found out once.
func (j *job) foresee(ctx context.Context, w candidate) (outlook, error) {
	alike := w
	alike.Prefetch = w.reach()
	if o, known := j.outlooks[alike]; known {
		return o, nil
	}
	if err := j.decide(ctx, w); err != nil {
		return outlook{}, err
	}
	o := j.forecast(w, w.sharing(), w.reach())
	j.outlooks[alike] = o
	return o, nil
}

// forecast is the outlook of what is decided by a candidate. With several streams nothing takes
// less than that part of the time: with all that overlaps one after the other it would be all of
// it.
func (j *job) forecast(w candidate, share, reach int) outlook {
	o := forecast(j.prices, j.program, share, reach)
	o.time /= time.Duration(w.options.Streams)
	return o
}

// allows reports whether the other spaces' budgets suffice.
func (q query) allows(n lower.Need) bool {
	n[q.of] = 0
	return n.Within(q.limits)
}

// touched is the most that one operation of a program touches on the device, in bytes: no
// plan needs less, wherever else all other values are. The highest slot of a memory is not
// rounded up.
func touched(p *program.Program) int64 {
	a := order.NewAccount(p)
	var most int64
	for id, runs := range a.Runs {
		if runs {
			most = max(most, a.Least(graph.NodeID(id)))
		}
	}
	return max(0, most-arena.Align+1)
}

// floor is what the plans of all targets need of the device at least.
func (s *variant) floor() int64 {
	var most int64
	for _, j := range s.jobs {
		most = max(most, j.floor)
	}
	return most
}

// byFloor is the places of searches in a list, those with the lowest floor first.
func byFloor(list []*variant) []int {
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Compare(list[a].floor(), list[b].floor())
	})
	return places
}

package candidates

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/outlook"
	"github.com/gomem/gomem/planner/program"
)

// Minimum is the smallest budget of a space that works: how much, and the target
// that sets it with its candidate.
type Minimum struct {
	Bytes     int64
	Target    string // its name
	by        *targetSearch
	candidate Candidate
}

// query is what is asked of a search: the smallest budget of a space, with so
// much of the others, if those targets that go by candidates of their own take these.
type query struct {
	of         space.ID
	limits     lower.Need // that of the space itself does not count
	candidates func(ladder) []Candidate
	most       int64 // an answer above that is of no use
	enough     int64 // and one up to that is as good as any below it
	brief      bool  // some candidate is enough: those with variables on the device are left out
}

// Minimum is the smallest budget of a space that is not refused, given the other
// spaces', or nil if all are.
func (s *Search) Minimum(of space.ID) (*Minimum, error) { return s.MinimumBelow(of, math.MaxInt64) }

// MinimumBelow is Minimum, or nil if that is above a limit.
func (s *Search) MinimumBelow(of space.ID, limit int64) (*Minimum, error) {
	return s.answer(query{of: of, limits: s.Options.Budgets(), candidates: ladder.straight,
		most: limit})
}

// BothShort is the least of the host with any of the device, and the least of the device with
// that, in bytes: what there is to say where neither budget can be raised alone.
func (s *Search) BothShort() (host *Minimum, device int64, err error) {
	limits := s.Options.Budgets()
	limits[space.Device] = math.MaxInt64
	q := query{of: space.Host, limits: limits, candidates: ladder.straight, most: math.MaxInt64}
	if host, err = s.answer(q); err != nil {
		return nil, 0, err
	}
	q.of, q.limits[space.Host] = space.Device, host.Bytes
	l, err := s.answer(q)
	if err != nil {
		return nil, 0, err
	}
	return host, l.Bytes, nil
}

// PlanOf is the plan that needs the least, without waits.
func (s *Search) PlanOf(l *Minimum) (*plan.Plan, error) {
	p, _, err := l.by.sketches.plan(s.ctx, l.candidate)
	return p, err
}

// OtherOptions is a budget of a space that works with other options, or 0 if none is
// found that is no larger than a limit. It costs one plan a target, more where those must go
// together, and all that decide about a refusal under a policy that searches where the present
// one does not.
func (s *Search) OtherOptions(o Options, of space.ID, limit int64) (int64, error) {
	o.EnsureDefaults()
	tried := s.laddered(o)
	if !o.Policy.rules().steady || tried.levels() > 1 {
		var err error
		if tried, err = s.by(o); err != nil {
			return 0, err
		}
	}
	q := query{of: of, limits: tried.Options.Budgets(), candidates: ladder.tightest, most: limit,
		brief: true}
	if o.Policy.Searches() && !s.Options.Policy.Searches() {
		q.candidates, q.brief = ladder.straight, false
	}
	l, err := tried.answer(q)
	if l == nil || err != nil {
		return 0, err
	}
	return l.Bytes, nil
}

// tightest is the candidate that needs the least, as a rule.
func (l ladder) tightest() []Candidate { return l.last[len(l.last)-1:] }

// answer is the smallest budget with which all targets go by one of the candidates that
// they must go together, or each finds one of the others, all with as much on the
// disk; nil if there is none.
func (s *Search) answer(q query) (*Minimum, error) {
	list, err := s.hopeful(q)
	if err != nil {
		return nil, err
	}
	var best *Minimum
	for _, c := range list {
		next := q
		if next.candidates = c.candidates; best != nil {
			next.most = best.Bytes
		}
		if c.needs[q.of] > next.most || best != nil && c.needs[q.of] >= best.Bytes {
			break
		}
		l, err := s.neediest(next)
		if err != nil {
			return nil, err
		}
		if l != nil {
			l.Bytes = max(l.Bytes, c.needs[q.of])
		}
		if best == nil || l != nil && l.Bytes < best.Bytes {
			best = l
		}
	}
	return best, nil
}

// hopeful are the groups that may be an answer by what is known without a schedule, those that
// need the least by that first.
func (s *Search) hopeful(q query) ([]Group, error) {
	var list []Group
	for _, c := range s.groups(q.candidates) {
		if q.brief && c.housed > 0 {
			continue
		}
		var err error
		if c.needs, err = s.AtLeast(c); err != nil {
			return nil, err
		}
		if q.allows(c.needs) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Group) int {
		return cmp.Compare(a.needs[q.of], b.needs[q.of])
	})
	return list, nil
}

// neediest is the need of the target that needs the most, each by the candidate that is best for
// it. It is nil if one of them finds none, or only such as need more than is of use. What
// a target comes to at best does not matter once it needs no more than another.
func (s *Search) neediest(q query) (*Minimum, error) {
	var most *Minimum
	for _, j := range s.each {
		if most != nil {
			q.enough = most.Bytes
		}
		l, err := s.minimumOf(j, q)
		if l == nil || err != nil {
			return nil, err
		}
		if most == nil || l.Bytes > most.Bytes {
			most = l
		}
	}
	return most, nil
}

// minimumOf is the need of one target, if that is of use. No candidate needs less than its load:
// those that are worth packing come first, and the others are not packed.
func (s *Search) minimumOf(j *targetSearch, q query) (*Minimum, error) {
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
	best, at, limit := (*Minimum)(nil), len(candidates), q.most
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
			name := j.sketches.target.Name
			best, at, limit = &Minimum{n[q.of], name, j, candidates[i]}, i, n[q.of]
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
func (s *Search) loads(j *targetSearch, q query, candidates []Candidate) ([]lower.Need, *Minimum,
	error) {
	loads := make([]lower.Need, len(candidates))
	limit, last := q.most, len(candidates)-1
	if q.of == space.Device && last > 0 {
		n, err := j.answer(s.ctx, candidates[last], q)
		if err != nil {
			return nil, nil, err
		}
		if q.allows(n) {
			if limit = min(limit, n[q.of]); n[q.of] <= q.enough {
				return nil, &Minimum{n[q.of], j.sketches.target.Name, j, candidates[last]}, nil
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
		if loads[i], err = j.sketches.load(s.ctx, w); err != nil {
			return nil, nil, err
		}
	}
	return loads, nil, nil
}

// asked is what an answer depends on.
type asked struct {
	candidate Candidate
	of        space.ID
	limits    lower.Need
}

// answer is what the plan of a candidate takes of the space that is asked for, and of the others
// as much as says whether their budgets suffice: nothing needs addresses in a space that has
// room for everything side by side, or not for what is there at once.
func (j *targetSearch) answer(ctx context.Context, w Candidate, q query) (lower.Need, error) {
	if n, known := j.sketches.needs[w]; known {
		return n, nil
	}
	asked := asked{w, q.of, q.limits}
	if n, known := j.answers[asked]; known {
		return n, nil
	}
	f, err := j.sketches.take(ctx, w)
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
func (j *targetSearch) outlook(ctx context.Context, w Candidate) (int64, error) {
	if n, known := j.sketches.loads[w]; known {
		return n[space.Device], nil
	}
	if w.Segments > 0 || w.Spill > 0 {
		return j.floor, nil
	}
	o, err := j.foresee(ctx, w)
	return o.Bytes, err
}

// foresee is the outlook of a candidate that takes nothing else than partitions, of which
// candidates that differ in prefetch alone have one, and which is found out once.
func (j *targetSearch) foresee(ctx context.Context, w Candidate) (outlook.Outlook, error) {
	alike := w
	alike.Prefetch = w.reach()
	if o, known := j.outlooks[alike]; known {
		return o, nil
	}
	if err := j.sketches.decide(ctx, w); err != nil {
		return outlook.Outlook{}, err
	}
	o := j.forecast(w, w.sharing(), w.reach())
	j.outlooks[alike] = o
	return o, nil
}

// forecast is the outlook of what is decided by a candidate. With several streams nothing takes
// less than that part of the time: with all that overlaps one after the other it would be all of
// it.
func (j *targetSearch) forecast(w Candidate, share, reach int) outlook.Outlook {
	o := outlook.Of(j.sketches.prices, j.sketches.program, share, reach)
	o.Time /= time.Duration(w.options.Streams)
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
	return p.Graph.Align().Less(most)
}

// Floor is what the plans of all targets need of the device at least.
func (s *Search) Floor() int64 {
	var most int64
	for _, j := range s.each {
		most = max(most, j.floor)
	}
	return most
}

// ByFloor is the places of searches in a list, those with the lowest floor first.
func ByFloor(list []*Search) []int {
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Compare(list[a].Floor(), list[b].Floor())
	})
	return places
}

package compile

import (
	"cmp"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/order"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/space"
)

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
		below := int64(math.MaxInt64)
		if best != nil {
			below = best.bytes
		}
		l, err := s.most(question{q.of, q.limits, ways}, below)
		if err != nil {
			return nil, err
		}
		if best == nil || l != nil && l.bytes < best.bytes {
			best = l
		}
	}
	return best, nil
}

// most is the need of the target that needs the most, each by the way that is best for
// it. It is nil if one of them finds none, or only such as need more than a limit.
func (s *search) most(q question, limit int64) (*least, error) {
	var most *least
	for _, j := range s.jobs {
		l, err := s.leastOf(j, q, limit)
		if l == nil || err != nil {
			return nil, err
		}
		if most == nil || l.bytes > most.bytes {
			most = l
		}
	}
	return most, nil
}

// leastOf is the need of one target, if that is no more than a limit. No way needs less
// than its load: those that are worth packing come first, and the others are not packed.
func (s *search) leastOf(j *job, q question, limit int64) (*least, error) {
	ways := q.ways(j.ladder)
	loads := make([]need, len(ways))
	order := make([]int, len(ways))
	for i, w := range ways {
		var err error
		if loads[i], err = j.load(s.ctx, w); err != nil {
			return nil, err
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(loads[a][q.of], loads[b][q.of])
	})
	best, at := (*least)(nil), len(ways)
	for _, i := range order {
		if loads[i][q.of] > limit {
			break
		}
		if !q.allows(loads[i]) || loads[i][q.of] == limit && best != nil && i > at {
			continue
		}
		n, err := j.need(s.ctx, ways[i])
		if err != nil {
			return nil, err
		}
		if q.allows(n) && (n[q.of] < limit || n[q.of] == limit && i < at) {
			best, at, limit = &least{n[q.of], j, ways[i]}, i, n[q.of]
		}
	}
	return best, nil
}

// allows reports whether the other spaces' budgets suffice.
func (q question) allows(n need) bool {
	n[q.of] = 0
	return n.within(q.limits)
}

// touched is the most that one operation of a program touches on the device, in bytes: no
// plan needs less, wherever else all other values are. The highest slot of a memory is not
// rounded up.
func touched(p *pass.Program) int64 {
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
func (s *search) floor() int64 {
	var most int64
	for _, j := range s.jobs {
		most = max(most, j.floor)
	}
	return most
}

// byFloor is the places of searches in a list, those with the lowest floor first.
func byFloor(list []*search) []int {
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Compare(list[a].floor(), list[b].floor())
	})
	return places
}

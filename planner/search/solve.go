package search

import (
	"context"
	"sync"
)

// Budget is how many bytes a plan may need: of the device, its arena's high-water
// mark; of the host, the load.
type Budget struct{ Device, Host int64 }

// Options say how long to search, and what not to do.
type Options struct {
	// Effort is the number of evaluations, each about a tenth of a microsecond an
	// operation; 0: as many as give a good plan, in about half a second.
	Effort int
	// Resident, if not nil, says by node which variables and constants are on the
	// device, and which on the host: another program of the graph has decided.
	Resident []bool
	// Spare, if not nil, says by node how many bytes of the budget are left free while its
	// operation runs: where packing has found no room for what is there.
	Spare []int64
	// NoRecompute and NoSwap exclude these actions. Variables and inputs are
	// streamed all the same.
	NoRecompute, NoSwap bool
}

// defaultEffort is how many operations are evaluated in all, each time anew.
const defaultEffort = 4_000_000

// maxEffort is more than anybody waits for; a hundred times as much is a number.
const maxEffort = 1 << 50

func (o Options) effort(pr *Problem) int {
	if o.Effort > 0 {
		return min(o.Effort, maxEffort)
	}
	return max(100, min(5000, defaultEffort/(len(pr.ops)+1)))
}

// Solve searches for the fastest plan whose load keeps to the budget; packing its
// addresses may need more, see [Problem.Tighten]. Decisions found before, under any
// budget, are starts too; the result is no slower than any of them that keeps to
// the budget and the options. It returns nil if nothing fits. The error is the
// context's.
func (pr *Problem) Solve(ctx context.Context, b Budget, o Options,
	warm ...*Decision) (*Decision, error) {
	s := newSearch(ctx, pr, b, o)
	s.warm(warm)
	if s.begin() {
		s.local()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.fallback(s.decision(), warm), nil
}

// SolveTwice is Solve, and the same search with variables moved one by one, once a state is found,
// to where a step takes less time. That is as good a search, but another one: addresses may be
// harder to pack. Both begin alike, which is done once; if that leaves nothing to search, or
// nothing is moved, both are one decision.
func (pr *Problem) SolveTwice(ctx context.Context, b Budget,
	o Options) (plain, rehomed *Decision, err error) {
	s := newSearch(ctx, pr, b, o)
	if !s.begin() {
		d := s.decision()
		return d, d, ctx.Err()
	}
	var local sync.WaitGroup
	t, alike := s.fork(), make(chan bool, 1)
	local.Go(func() {
		found := t.best
		t.rehome()
		if alike <- t.best == found; t.best != found {
			t.local()
			rehomed = t.decision()
		}
	})
	s.local()
	plain = s.decision()
	if local.Wait(); <-alike {
		rehomed = plain // what comes after is the same search
	}
	return plain, rehomed, ctx.Err()
}

// begin finds a state, and reports whether a local search may find a faster one.
func (s *search) begin() bool {
	s.portfolio()
	if s.best == nil || s.free() {
		return false
	}
	s.tails()
	return true
}

// fork is a search of its own that goes on from where this one is.
func (s *search) fork() *search {
	t := newSearch(s.ctx, s.Problem, s.budget, s.opts)
	copy(t.pinned, s.pinned)
	t.best, t.time, t.moves = s.best.clone(), s.time, s.moves
	t.count, t.effort = s.count, s.effort
	return t
}

// Tighten adapts a decision to another budget, a little smaller than its own, in a
// quarter of the effort: what there is beside the budget is given up, or, if nothing
// is, the decision is kept, and copies run less far ahead. It returns nil if nothing
// fits.
func (pr *Problem) Tighten(ctx context.Context, d *Decision, b Budget,
	o Options) (*Decision, error) {
	s := newSearch(ctx, pr, b, o)
	s.effort = (s.effort + 3) / 4
	s.warm([]*Decision{d})
	if s.best == nil {
		return pr.Solve(ctx, b, o, d)
	}
	s.local()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.decision(), nil
}

// fallback is the fastest of a decision and those that were found before.
func (s *search) fallback(best *Decision, warm []*Decision) *Decision {
	for _, d := range warm {
		if d != nil && (best == nil || d.time < best.time) && s.allowed(d) {
			best = d
		}
	}
	return best
}

// allowed reports whether a decision keeps to the budget and the options.
func (s *search) allowed(d *Decision) bool {
	if d.budget.Device > s.budget.Device || d.host > s.budget.Host || !s.spares(d.spare) ||
		s.opts.NoSwap && d.swapped > 0 || s.opts.NoRecompute && d.recomputed > 0 {
		return false
	}
	for l := range s.leaves {
		here := d.homes[s.leaves[l].node.ID]
		if here && s.forced[l] < 0 || !here && s.forced[l] > 0 {
			return false
		}
	}
	return true
}

// force makes the leaves be where another program has them, or where exchanges have them.
func (e *evaluator) force(homes []bool) {
	if homes == nil {
		return
	}
	for l := range e.leaves {
		leaf := &e.leaves[l]
		if e.forced[l] = -1; homes[leaf.node.ID] && !e.groups[leaf.group].hosted {
			e.forced[l] = 1
		}
	}
}

// evaluate is how long a step takes, or, if the state does not fit the budget,
// never and more the further it is from it.
func (e *evaluator) evaluate(s *state) int64 {
	e.build(s)
	return e.built(s, never)
}

// built is evaluate of the state that was built last, but that a step which takes longer than a
// limit may be said to take any time above the limit: then the tables are of no use.
func (e *evaluator) built(s *state, limit int64) int64 {
	if e.peak > e.budget.Device {
		return never + e.peak - e.budget.Device
	}
	mayExceed := e.hostMost > e.budget.Host && e.hostBound(s) > e.budget.Host
	if mayExceed {
		limit = never // whether it fits is known once all is simulated
	}
	if least := e.clock[len(e.seq)]; least > limit {
		return least
	}
	e.plan()
	t := e.simulate(s, limit)
	if mayExceed {
		if over := e.hostPeak(s) - e.budget.Host; over > 0 {
			return never + over
		}
	}
	return t
}

// decision is the state that was evaluated last, with what it comes to.
func (e *evaluator) decision(s *state) *Decision {
	d := &Decision{state: s, budget: e.budget, spare: e.spare, peak: e.devicePeak(),
		host: e.hostPeak(s), time: e.took,
		moved: e.moved}
	d.homes = make([]bool, e.program.Graph.Len())
	for l := range e.leaves {
		d.homes[e.leaves[l].node.ID] = e.atHome[l]
	}
	e.tally(d)
	return d
}

// tally adds up the bytes by action.
func (e *evaluator) tally(d *Decision) {
	stays := make([]int32, len(e.values))
	for i := range e.stays {
		stays[e.stays[i].value]++
	}
	for v := range e.values {
		va := &e.values[v]
		switch {
		case va.bound():
		case e.absent[v]:
			d.swapped += va.raw
		case stays[v] > 1:
			d.recomputed += va.raw
		}
	}
}

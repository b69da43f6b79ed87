package auto

import "context"

// search looks for the fastest state. It counts evaluations, never time, so that
// it finds the same on every machine.
type search struct {
	*evaluator
	ctx    context.Context
	opts   Options
	effort int // evaluations in all
	pinned []bool
	walk   descent
	best   *state
	time   int64 // of the best
	moves  int64 // bytes that it copies: of equally fast states, the one that copies least
}

func newSearch(ctx context.Context, pr *Problem, b Budget, o Options) *search {
	s := &search{evaluator: newEvaluator(pr, b), ctx: ctx, opts: o, effort: o.effort(pr),
		pinned: make([]bool, len(pr.groups)), time: never}
	s.force(o.Resident)
	for g := range pr.groups {
		s.pin(&pr.groups[g])
	}
	s.walk = descent{evaluator: s.evaluator, pinned: s.pinned,
		stamp: make([]int32, len(pr.values)), ran: make([]int32, len(pr.ops)),
		taken: make([]bool, len(pr.values))}
	return s
}

// pin keeps those groups on the device that have a variable which must be there,
// and those whose updates read a leaf that must be.
func (s *search) pin(g *group) {
	for _, l := range g.leaves {
		if s.forced[l] <= 0 {
			continue
		}
		s.pinned[s.leaves[l].group] = true
		for _, r := range g.readers {
			s.pinned[r] = true
		}
	}
}

// spent reports whether a part of the effort, in percent, is used up.
func (s *search) spent(percent int) bool {
	return s.count*100 >= s.effort*percent || s.ctx.Err() != nil
}

// try keeps a state if it is the best so far.
func (s *search) try(st *state) int64 {
	t := s.evaluate(st)
	if t < s.time || t == s.time && t < never && s.moved < s.moves {
		s.best, s.time, s.moves = st.clone(), t, s.moved
	}
	return t
}

// initial is a state that keeps everything, with the variables on the device or
// on the host.
func (s *search) initial(o start) *state {
	st := &state{act: make([]action, len(s.values)), home: make([]home, len(s.groups)),
		cut: o.cut, eager: o.eager}
	floor := s.budget.Device >> smallGroup
	if o.fine {
		floor = 0
	}
	for g := range s.groups {
		if st.home[g] = resident; o.streamed && s.groups[g].bytes >= floor {
			st.home[g] = s.streamedHome(int32(g), o.device)
		}
		if s.pinned[g] {
			st.home[g] = resident
		} else if s.opts.Resident != nil {
			st.home[g] = s.streamedHome(int32(g), o.device)
		}
	}
	return st
}

// from descends from a start and tries what comes out.
func (s *search) from(o start) { s.descendFrom(s.initial(o), o) }

func (s *search) descendFrom(st *state, o start) {
	s.walk.start, s.walk.state, s.walk.most = o, st, s.effort
	s.walk.reruns, s.walk.swaps = o.reruns && !s.opts.NoRecompute, !s.opts.NoSwap
	if s.walk.descend() {
		s.try(st)
	}
}

// warm tries decisions that were found before, as they are and as starts.
func (s *search) warm(list []*Decision) {
	for _, d := range list {
		if d == nil {
			continue
		}
		st := d.state.clone()
		for g := range s.groups {
			if s.pinned[g] {
				st.home[g] = resident
			}
		}
		if s.try(st) < never {
			continue
		}
		for _, link := range []float64{0, 0.3, 1} {
			o := start{link: link, weights: 0.5, cut: st.cut, eager: st.eager, device: true,
				reruns: true}
			s.descendFrom(st.clone(), o)
		}
	}
}

// portfolio descends from all starts, the most promising first, until most of the
// effort is used up. If nothing fits, it goes on with starts that give up more.
func (s *search) portfolio() {
	share := 60
	if s.opts.Effort == 0 {
		share = 75
	}
	for _, o := range s.starts() {
		if s.best != nil && s.spent(share) {
			return
		}
		s.from(o)
		if s.best != nil && s.free() {
			return
		}
	}
	for _, o := range lastStarts() {
		if s.best != nil || s.ctx.Err() != nil {
			return
		}
		s.effort = max(s.effort, s.count+rounds)
		s.from(o)
	}
}

// free reports whether the best state gives up nothing: no other is faster.
func (s *search) free() bool {
	for _, a := range s.best.act {
		if a != keep {
			return false
		}
	}
	for g, h := range s.best.home {
		if h != resident && !s.pinned[g] {
			return false
		}
	}
	return s.time == s.timeDev || s.opts.Resident == nil
}

// prices are the prices of a copy's time, the most promising first.
func prices() []float64 { return []float64{0.3, 0.75, 0.05, 1.5, 0, 0.15, 0.5, 1, 3} }

// starts lists where descents begin.
func (s *search) starts() []start {
	var list []start
	mixed := false
	for g := range s.groups {
		mixed = mixed || s.streamedHome(int32(g), true) == written
	}
	add := func(o start) {
		o.weights = 0.1
		list = append(list, o)
		if o.streamed = true; s.opts.Resident == nil {
			list = append(list, o)
		}
		if !mixed {
			return
		}
		o.device = true
		list = append(list, o)
		o.streamed = false
		list = append(list, o)
		o.weights = 1
		list = append(list, o)
	}
	for _, cut := range []int64{0, 20, 100} {
		for _, p := range prices() {
			add(start{link: p, cut: cut, reruns: true})
			if cut == 0 && p < 0.2 {
				add(start{link: p})
			}
		}
	}
	return list
}

// lastStarts are for budgets that nothing else fits: everything streams, and
// swapped values are away in every gap.
func lastStarts() []start {
	var list []start
	for _, p := range []float64{0.3, 0, 3} {
		for _, streamed := range []bool{true, false} {
			list = append(list, start{link: p, weights: 0.1, streamed: streamed, eager: true,
				fine: true, reruns: true, device: streamed})
			list = append(list, start{link: p, weights: 0.1, streamed: streamed, eager: true,
				fine: true})
		}
	}
	return list
}

// tails: while copies to the host or its updates end much later than computing,
// the variable that is updated last is kept on the device for good.
func (s *search) tails() {
	for range 4 {
		if s.best == nil || s.spent(85) {
			return
		}
		s.evaluate(s.best)
		if max(s.timeHst, s.timeOut) < s.timeDev+s.timeDev/200 {
			return
		}
		g := s.last()
		if g < 0 {
			return
		}
		s.pinned[g] = true
		s.pinnedStarts()
	}
}

// last is the group updated on the host last of those that are not pinned, or -1.
func (s *search) last() int32 {
	for i := len(s.ops) - 1; i >= 0; i-- {
		o := &s.ops[i]
		if len(o.writes) > 0 && s.hosted(s.best, o) && !s.pinned[o.group] {
			return o.group
		}
	}
	return -1
}

func (s *search) pinnedStarts() {
	for _, cut := range []int64{0, 20} {
		for _, p := range prices() {
			for _, streamed := range []bool{false, true} {
				if s.spent(90) {
					return
				}
				s.from(start{link: p, weights: 0.5, cut: cut, streamed: streamed, reruns: true})
			}
		}
	}
}

// decision is the best state, evaluated once more.
func (s *search) decision() *Decision {
	if s.best == nil {
		return nil
	}
	s.evaluate(s.best)
	return s.evaluator.decision(s.best)
}

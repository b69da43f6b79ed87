package search

import (
	"cmp"
	"context"
	"math"
	"slices"
)

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
	tried  map[start]int64
	least  int64 // that a step takes: what the device computes whatever is on the host
	moves  int64 // bytes that it copies: of equally fast states, the one that copies least
	floor  floor // that no state is below
}

func newSearch(ctx context.Context, pr *Problem, b Budget, o Options) *search {
	s := &search{evaluator: newEvaluator(pr, b), ctx: ctx, opts: o, effort: o.effort(pr),
		pinned: make([]bool, len(pr.groups)), time: never}
	s.force(o.Resident)
	s.setSpare(o.Spare)
	for g := range pr.groups {
		s.pin(&pr.groups[g])
	}
	s.least, s.floor = s.onDevice(), s.findFloor()
	s.build(s.initial(start{}))
	s.scale = min(b.Device, s.peak)
	s.walk = descent{evaluator: s.evaluator, ctx: ctx, pinned: s.pinned,
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

// try keeps a state if it is the best so far. A time above a limit may be any such, as in built.
func (s *search) try(st *state, limit int64) int64 {
	s.build(st)
	return s.keep(st, s.built(st, max(limit, s.time)))
}

// tryBuilt is try of the state that was built last, as an evaluation of its own.
func (s *search) tryBuilt(st *state, limit int64) int64 {
	s.count++
	return s.keep(st, s.built(st, max(limit, s.time)))
}

// keep keeps a state that takes some time if it is the best so far.
func (s *search) keep(st *state, t int64) int64 {
	if t < s.time || t == s.time && t < never && s.moved < s.moves {
		s.best, s.time, s.moves = st.clone(), t, s.moved
	}
	return t
}

// initial is a state that keeps everything, with the variables on the device or
// on the host.
func (s *search) initial(o start) *state {
	st := &state{act: make([]action, len(s.values)), home: make([]home, len(s.groups)),
		cut: o.cut, slack: o.slack}
	floor := s.scale >> smallGroup
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
func (s *search) from(o start) int64 { return s.descendFrom(s.initial(o), o, never) }

func (s *search) descendFrom(st *state, o start, limit int64) int64 {
	s.walk.start, s.walk.state, s.walk.most = o, st, s.effort
	if s.best == nil {
		s.walk.most = math.MaxInt // whether anything fits is no matter of effort
	}
	s.walk.reruns, s.walk.swaps = o.reruns && !s.opts.NoRecompute, !s.opts.NoSwap
	if s.walk.descend() {
		return s.tryBuilt(st, limit)
	}
	return never + s.peak
}

// warm tries decisions that were found before, as they are and as starts.
func (s *search) warm(list []*Decision) {
	for _, d := range list {
		if d == nil {
			continue
		}
		st := s.adapted(d.state)
		if s.try(st, 0) < never {
			continue
		}
		for _, link := range []float64{0, 0.3, 1} {
			o := start{link: link, weights: 0.5, cut: st.cut, slack: st.slack, part: 1,
				device: true, reruns: true}
			s.descendFrom(st.clone(), o, 0)
		}
	}
}

// adapted is a state without what the options exclude.
func (s *search) adapted(from *state) *state {
	st := from.clone()
	for g := range s.groups {
		if s.pinned[g] {
			st.home[g] = resident
		}
	}
	for v, a := range st.act {
		swapped := (a == swap || a == shun) && !s.values[v].bound()
		if a == recompute && s.opts.NoRecompute || swapped && s.opts.NoSwap {
			st.act[v] = keep
		}
	}
	return st
}

// portfolio descends from starts until most of the effort is used up: from a few,
// and from those that differ in one respect from the best so far, until none of
// them is faster. If nothing fits, it goes on with starts that give up more.
func (s *search) portfolio() {
	s.tried = map[start]int64{}
	for _, alike := range s.seeds() {
		if s.best != nil && (s.spent(50) || s.free()) {
			return
		}
		s.climb(s.fastest(alike))
	}
	for _, o := range lastStarts() {
		if s.best != nil || s.ctx.Err() != nil {
			return
		}
		s.from(o)
	}
}

// fastest is the one of some starts from which the step takes least.
func (s *search) fastest(list []start) start {
	best := list[0]
	for _, o := range list[1:] {
		if s.best != nil && (s.spent(50) || s.free()) {
			break
		}
		if s.once(o) < s.once(best) {
			best = o
		}
	}
	return best
}

// climb goes from a start to better ones, if anything fits.
func (s *search) climb(o start) {
	now := s.once(o)
	for better := s.best != nil; better; {
		better = false
		for dim := range dimensions {
			for _, n := range s.neighbours(o, dim) {
				if s.spent(60) || s.free() {
					return
				}
				if t := s.once(n); t < now {
					o, now, better = n, t, true
				}
			}
		}
	}
}

// once descends from a start that has not been tried yet, and returns how long the
// step takes.
func (s *search) once(o start) int64 {
	t, ok := s.tried[o]
	if !ok {
		t = s.from(o)
		s.tried[o] = t
	}
	return t
}

// free reports whether no other state is faster than the best: what may be on the host takes none
// of the device's time, or it takes and copies no more than any, or the best gives up nothing, and
// there is nothing that may be.
func (s *search) free() bool {
	if s.time <= s.least || s.time <= s.floor.time && s.moves <= s.floor.moved {
		return true
	}
	for g := range s.groups {
		if !s.pinned[g] && len(s.groups[g].updates) > 0 {
			return false // an update beside the device's work may be faster than one in its turn
		}
	}
	for _, a := range s.best.act {
		if a != keep {
			return false
		}
	}
	for g, h := range s.best.home {
		if h != resident && !s.pinned[g] && !s.groups[g].hosted {
			return false
		}
	}
	return true
}

// onDevice is how long the device computes whatever is on the host, and what takes turns with it.
func (s *search) onDevice() int64 {
	var sum int64
	shared := s.model.Shared() > 0
	for i := range s.ops {
		switch o := &s.ops[i]; {
		case o.group < 0 || s.pinned[o.group]:
			sum += o.time
		case shared && o.side == neither:
			sum += min(o.time, o.host)
		}
	}
	return sum
}

// grid are the values that a start's numbers are chosen from.
var grid = struct {
	link, weights    []float64
	cut, slack, part []int64
}{[]float64{0, 0.05, 0.15, 0.3, 0.5, 0.75, 1, 1.5, 3}, []float64{0.1, 0.3, 1, 3},
	[]int64{0, 20, 100}, []int64{62, 10, 7}, []int64{1, 3}}

// dimensions is the number of respects in which starts differ.
const dimensions = 8

// neighbours are the starts that differ in one respect.
func (s *search) neighbours(o start, dim int) []start {
	var list []start
	add := func(change func(*start)) {
		n := o
		change(&n)
		list = append(list, n)
	}
	switch dim {
	case 0:
		for _, x := range beside(grid.link, o.link, 2) {
			add(func(n *start) { n.link = x })
		}
	case 1:
		if s.opts.Resident == nil {
			add(func(n *start) { n.streamed = !n.streamed })
		}
	case 2:
		if s.mixed() {
			add(func(n *start) { n.device = !n.device })
		}
	case 3:
		for _, x := range beside(grid.cut, o.cut, 2) {
			add(func(n *start) { n.cut = x })
		}
	case 4:
		for _, x := range beside(grid.slack, o.slack, 1) {
			add(func(n *start) { n.slack = x })
		}
	case 5:
		for _, x := range beside(grid.weights, o.weights, 1) {
			add(func(n *start) { n.weights = x })
		}
	case 6:
		add(func(n *start) { n.reruns = !n.reruns })
	case 7:
		for _, x := range beside(grid.part, o.part, 1) {
			add(func(n *start) { n.part = x })
		}
	}
	return list
}

// beside are the values of a list that are up to so many places from one.
func beside[T comparable](list []T, x T, reach int) []T {
	at := slices.Index(list, x)
	var out []T
	for d := 1; d <= reach; d++ {
		for _, i := range []int{at - d, at + d} {
			if i >= 0 && i < len(list) {
				out = append(out, list[i])
			}
		}
	}
	return out
}

// mixed reports whether to write variables back is a choice of its own.
func (s *search) mixed() bool {
	return slices.ContainsFunc(s.groups, func(g group) bool { return g.light })
}

// seeds are the starts from which others are found: of each list the fastest is the first.
func (s *search) seeds() [][]start {
	var lists [][]start
	for _, link := range []float64{0.3, 0.05, 1} {
		var alike []start
		for _, cut := range grid.cut[:2] {
			o := start{link: link, weights: grid.weights[0], cut: cut, slack: 7, part: 1,
				device: s.mixed(), reruns: true}
			alike = append(alike, o)
			o.weights = 1
			alike = append(alike, o)
			if s.opts.Resident == nil {
				o.streamed = true
				alike = append(alike, o)
			}
		}
		lists = append(lists, alike)
	}
	return lists
}

// lastStarts are for budgets that nothing else fits.
func lastStarts() []start {
	var list []start
	for _, slack := range []int64{10, 62} {
		for _, reruns := range []bool{true, false} {
			list = append(list, start{weights: grid.weights[0], slack: slack, part: 3,
				streamed: true, device: true, reruns: reruns, fine: true})
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

// rehome moves groups of variables, one after another, to where a step takes less time: those
// whose updates take the longest first. A budget that has room for all on the device is no reason
// to have them there, since the host updates beside the device's work; and what a descent had to
// take to the host may have room again. It takes half as much as the whole search at most, and
// leaves what is left for others as it was.
func (s *search) rehome() {
	if s.best == nil {
		return
	}
	first, st := s.count, s.best.clone()
	defer func() { s.effort += s.count - first }()
	for _, g := range s.movable() {
		kept := st.home[g]
		for _, to := range []home{onHost, written, resident} {
			if s.count-first >= s.effort/2 || s.ctx.Err() != nil {
				return
			}
			if to == kept || to == resident && s.opts.Resident != nil ||
				to == written && !s.groups[g].light {
				continue
			}
			was := s.time
			st.home[g] = to
			if s.try(st, 0); s.time < was {
				kept = to
			}
		}
		st.home[g] = kept
	}
}

// movable are the groups that are updated and may be anywhere, those first whose updates take the
// longest.
func (s *search) movable() []int32 {
	var list []int32
	took := make([]int64, len(s.groups))
	for g := range s.groups {
		gr := &s.groups[g]
		for _, i := range gr.ops {
			took[g] += s.ops[i].time
		}
		if !s.pinned[g] && !gr.dead && !gr.hosted && len(gr.updates) > 0 {
			list = append(list, int32(g))
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(took[b], took[a]) })
	return list
}

// last is the group updated on the host last of those that are not pinned, or -1.
func (s *search) last() int32 {
	for i := len(s.ops) - 1; i >= 0; i-- {
		o := &s.ops[i]
		if len(o.writes) > 0 && s.hosted(s.best, o) && !s.pinned[o.group] &&
			!s.groups[o.group].hosted {
			return o.group
		}
	}
	return -1
}

func (s *search) pinnedStarts() {
	for _, cut := range []int64{0, 20} {
		for _, p := range grid.link {
			for _, streamed := range []bool{false, true} {
				if s.spent(90) {
					return
				}
				o := start{link: p, weights: 0.5, cut: cut, slack: 7, part: 1,
					streamed: streamed, reruns: true}
				s.descendFrom(s.initial(o), o, 0)
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

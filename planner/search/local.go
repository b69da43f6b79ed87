package search

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
)

// walker is a local search around the best state.
type walker struct {
	*search
	rng    *rand.Rand
	state  *state
	saved  *state    // the one that steps begin with
	values []int32   // that could be away
	sums   []float64 // of their weights, up to each
	groups []int32   // that could be elsewhere
	kept   int32     // the group that was just brought to the device, or -1
	blame  blame     // of the saved state
}

// A local search ends if it has found nothing in its first part in four, and in so many steps:
// where one step is hardly slower than another, as if the link was never full, hours find nothing.
const hopeful, steadfast = 4, 100

// local changes what is decided of a few values or of a group at random, and goes on
// from there if the step is not much slower; how much is allowed falls from a fifth
// of a percent to nothing.
func (s *search) local() {
	if s.best == nil || s.spent(100) {
		return
	}
	w := &walker{search: s, rng: rand.New(rand.NewPCG(1, 2)), state: s.best.clone(),
		saved: s.best.clone(), kept: -1}
	now := s.evaluate(w.state)
	w.choices()
	w.blame.assign(w.evaluator, w.state)
	if len(w.values)+len(w.groups) == 0 {
		return
	}
	first, found := s.count, s.best
	for !s.spent(100) {
		if s.best == found && s.count-first > max((s.effort-first)/hopeful, steadfast) {
			return
		}
		left := int64(s.effort-s.count) * 1000 / int64(s.effort-first+1)
		allowed := s.begins[len(s.ops)] / 500 * left / 1000
		if t := w.step(now + allowed); t <= now+w.rng.Int64N(allowed+1) {
			now = t
			w.copy(w.saved, w.state)
			w.blame.assign(w.evaluator, w.state)
		} else {
			w.copy(w.state, w.saved)
		}
	}
}

// copy makes one state like another.
func (w *walker) copy(to, from *state) {
	copy(to.act, from.act)
	copy(to.home, from.home)
	to.cut, to.slack = from.cut, from.slack
}

// step changes the state and returns how long it takes now: seven times in eight by a flip,
// which costs one evaluation where to descend again costs several. Most flips are of what is
// away, and do not fit: every other time others are sent away for it. The time is what it is up to
// a limit.
func (w *walker) step(limit int64) int64 {
	if w.rng.IntN(8) == 0 && len(w.values) > 0 {
		w.undo()
	} else {
		w.flip()
		if t := w.try(w.state, limit); t < never || w.rng.IntN(2) == 0 {
			return t
		}
	}
	if w.descend() {
		return w.tryBuilt(w.state, limit)
	}
	return never
}

// patience is the number of evaluations for which a step may descend.
const patience = 30

// undo takes back what is decided of values near one another, and brings a group to the
// device now and then.
func (w *walker) undo() {
	n := len(w.values)
	first := w.rng.IntN(n)
	for k := range 1 << w.rng.IntN(bits.Len(uint(n))) {
		w.state.act[w.values[(first+k)%n]] = keep
	}
	if len(w.groups) > 0 && w.rng.IntN(3) == 0 {
		w.kept = w.groups[w.rng.IntN(len(w.groups))]
		w.state.home[w.kept] = resident
	}
	if w.rng.IntN(8) == 0 {
		w.state.cut = grid.cut[w.rng.IntN(len(grid.cut))]
		w.state.slack = grid.slack[w.rng.IntN(len(grid.slack))]
	}
}

// descend makes the state fit again, at prices drawn at random; the group that was brought to
// the device stays there.
func (w *walker) descend() bool {
	if g := w.kept; g >= 0 {
		w.kept, w.pinned[g] = -1, true
		defer func() { w.pinned[g] = false }()
	}
	w.walk.start = start{link: grid.link[w.rng.IntN(len(grid.link))],
		weights: grid.weights[w.rng.IntN(len(grid.weights))], part: 1, device: w.rng.IntN(2) == 0,
		reruns: !w.opts.NoRecompute, swaps: !w.opts.NoSwap}
	w.walk.state, w.walk.most = w.state, w.count+patience
	return w.walk.descend()
}

// choices lists what can be flipped: the larger a value and the longer its gap, the
// more often.
func (w *walker) choices() {
	sum, all := 0.0, float64(w.begins[len(w.ops)]+1)
	for v := range w.search.values {
		va, u := &w.search.values[v], w.uses[v]
		if len(u) < 2 || va.bytes < w.scale>>smallValue ||
			va.leaf >= 0 && w.atHome[va.leaf] {
			continue
		}
		g := w.longest(u, math.MaxInt32)
		if g < 0 {
			continue
		}
		gap := w.begins[anchor(u[g+1])] - w.begins[anchor(u[g])]
		sum += float64(math.Sqrt(float64(va.bytes)) * (0.1 + float64(gap)/all))
		w.values, w.sums = append(w.values, int32(v)), append(w.sums, sum)
	}
	for g := range w.search.groups {
		gr := &w.search.groups[g]
		if !w.pinned[g] && !gr.dead && gr.bytes >= w.scale>>smallGroup {
			w.groups = append(w.groups, int32(g))
		}
	}
}

// flip changes up to three decisions.
func (w *walker) flip() {
	near := int32(-1)
	for range 1 + w.rng.IntN(3) {
		if len(w.values) == 0 || len(w.groups) > 0 && w.rng.IntN(8) == 0 {
			w.flipGroup(w.groups[w.rng.IntN(len(w.groups))])
			continue
		}
		v := w.pick(near)
		w.flipValue(v)
		if near < 0 {
			near = v
		}
	}
}

// pick is a value, often near another if there is one, or else one that is to blame.
func (w *walker) pick(near int32) int32 {
	if near < 0 && len(w.blame.values) > 0 && w.rng.IntN(4) > 0 {
		return w.blame.draw(w.rng)
	}
	x := w.rng.Float64() * w.sums[len(w.sums)-1]
	i := min(sort.SearchFloat64s(w.sums, x), len(w.values)-1)
	if near >= 0 && w.rng.IntN(3) > 0 {
		near += int32(w.rng.IntN(9)) - 4
		if k, found := slices.BinarySearch(w.values, near); found {
			i = k
		}
	}
	return w.values[i]
}

// flipValue decides otherwise about a value, if anything else can be decided.
func (w *walker) flipValue(v int32) {
	var others [4]action
	n := 0
	for a := keep; a <= recompute; a++ {
		if a != w.state.act[v] && w.may(v, a) {
			others[n] = a
			n++
		}
	}
	if n > 0 {
		w.state.act[v] = others[w.rng.IntN(n)]
	}
}

// may reports whether an action can be taken with a value.
func (w *walker) may(v int32, a action) bool {
	va := &w.search.values[v]
	switch a {
	case swap:
		return va.bound() || !w.opts.NoSwap
	case recompute:
		return !va.bound() && !w.opts.NoRecompute && w.ops[va.producer].limit > va.producer
	}
	return true
}

func (w *walker) flipGroup(g int32) {
	to := home(w.rng.IntN(3))
	if to == written && len(w.search.groups[g].updates) == 0 {
		to = onHost
	}
	if to == resident && w.opts.Resident != nil {
		to = onHost
	}
	w.state.home[g] = to
}

package auto

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
}

// local changes what is decided of a few values or of a group at random, and goes on
// from there if the step is not much slower; how much is allowed falls from a fifth
// of a percent to nothing.
func (s *search) local() {
	if s.best == nil || s.spent(100) {
		return
	}
	w := &walker{search: s, rng: rand.New(rand.NewPCG(1, 2)), state: s.best.clone(),
		saved: s.best.clone()}
	now := s.evaluate(w.state)
	w.choices()
	if len(w.values)+len(w.groups) == 0 {
		return
	}
	first := s.count
	for !s.spent(100) {
		left := int64(s.effort-s.count) * 1000 / int64(s.effort-first+1)
		allowed := s.begins[len(s.ops)] / 500 * left / 1000
		if t := w.step(); t <= now+w.rng.Int64N(allowed+1) {
			now = t
			w.copy(w.saved, w.state)
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

// step changes the state and returns how long it takes now: three times in four by a
// flip, which costs one evaluation where to descend again costs several.
func (w *walker) step() int64 {
	if w.rng.IntN(4) > 0 || len(w.values) == 0 {
		w.flip()
		return w.try(w.state)
	}
	if w.redo() {
		return w.try(w.state)
	}
	return never
}

// patience is the number of evaluations for which a step may descend.
const patience = 30

// redo takes back what is decided of values near one another, brings a group to the
// device now and then, and descends again, at a price drawn at random.
func (w *walker) redo() bool {
	n := len(w.values)
	first := w.rng.IntN(n)
	for k := range 1 << w.rng.IntN(bits.Len(uint(n))) {
		w.state.act[w.values[(first+k)%n]] = keep
	}
	if len(w.groups) > 0 && w.rng.IntN(3) == 0 {
		g := w.groups[w.rng.IntN(len(w.groups))]
		w.state.home[g], w.pinned[g] = resident, true
		defer func() { w.pinned[g] = false }()
	}
	if w.rng.IntN(8) == 0 {
		w.state.cut = grid.cut[w.rng.IntN(len(grid.cut))]
		w.state.slack = grid.slack[w.rng.IntN(len(grid.slack))]
	}
	w.walk.start = start{link: grid.link[w.rng.IntN(len(grid.link))],
		weights: grid.weights[w.rng.IntN(len(grid.weights))], device: w.rng.IntN(2) == 0,
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

// pick is a value, often near another if there is one.
func (w *walker) pick(near int32) int32 {
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

func (w *walker) flipValue(v int32) {
	va := &w.search.values[v]
	to := action(w.rng.IntN(3))
	if to == w.state.act[v] {
		to = (to + 1) % 3
	}
	switch {
	case to == recompute && (va.bound() || w.opts.NoRecompute ||
		w.ops[va.producer].limit <= va.producer):
		to = keep
	case to == swap && w.opts.NoSwap && !va.bound():
		to = keep
	}
	w.state.act[v] = to
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

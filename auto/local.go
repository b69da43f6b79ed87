package auto

import (
	"math"
	"math/rand/v2"
	"sort"
)

// flip is what a step of the local search has changed, to be taken back.
type flip struct {
	value int32 // or -1
	act   action
	group int32
	home  home
}

// walker is a local search around the best state.
type walker struct {
	*search
	rng    *rand.Rand
	state  *state
	values []int32   // that could be away
	sums   []float64 // of their weights, up to each
	groups []int32   // that could be elsewhere
	flips  []flip
}

// local flips what is decided of a few neighbouring values or of a group at random,
// and goes on from there if the step is not much slower; how much is allowed falls
// from a fifth of a percent to nothing.
func (s *search) local() {
	if s.best == nil || s.spent(100) {
		return
	}
	w := &walker{search: s, rng: rand.New(rand.NewPCG(1, 2)), state: s.best.clone()}
	now := s.evaluate(w.state)
	w.choices()
	if len(w.values)+len(w.groups) == 0 {
		return
	}
	first := s.count
	for !s.spent(100) {
		left := int64(s.effort-s.count) * 1000 / int64(s.effort-first+1)
		allowed := s.begins[len(s.ops)] / 500 * left / 1000
		w.flip()
		t := s.try(w.state)
		if t <= now+w.rng.Int64N(allowed+1) {
			now = t
		} else {
			w.back()
		}
	}
}

// choices lists what can be flipped: the larger a value and the longer its gap, the
// more often.
func (w *walker) choices() {
	sum, all := 0.0, float64(w.begins[len(w.ops)]+1)
	for v := range w.search.values {
		va, u := &w.search.values[v], w.uses[v]
		if len(u) < 2 || va.bytes < w.budget.Device>>smallValue ||
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
		if !w.pinned[g] && !gr.dead && gr.bytes >= w.budget.Device>>smallGroup {
			w.groups = append(w.groups, int32(g))
		}
	}
}

// flip changes up to three decisions.
func (w *walker) flip() {
	w.flips = w.flips[:0]
	for range 1 + w.rng.IntN(3) {
		if len(w.values) == 0 || len(w.groups) > 0 && w.rng.IntN(8) == 0 {
			w.flipGroup(w.groups[w.rng.IntN(len(w.groups))])
		} else {
			w.flipValue(w.pick())
		}
	}
}

// pick is a value, often near the one that was flipped first.
func (w *walker) pick() int32 {
	x := w.rng.Float64() * w.sums[len(w.sums)-1]
	i := min(sort.SearchFloat64s(w.sums, x), len(w.values)-1)
	if len(w.flips) > 0 && w.flips[0].value >= 0 && w.rng.IntN(3) > 0 {
		near := w.flips[0].value + int32(w.rng.IntN(9)) - 4
		k := sort.Search(len(w.values), func(i int) bool { return w.values[i] >= near })
		if k < len(w.values) && w.values[k] == near {
			i = k
		}
	}
	return w.values[i]
}

func (w *walker) flipValue(v int32) {
	va := &w.search.values[v]
	to := action(w.rng.IntN(2))
	if to >= w.state.act[v] {
		to++
	}
	switch {
	case to == recompute && (va.bound() || w.opts.NoRecompute ||
		w.ops[va.producer].limit <= va.producer):
		to = keep
	case to == swap && w.opts.NoSwap && !va.bound():
		to = keep
	}
	w.flips = append(w.flips, flip{value: v, act: w.state.act[v], group: -1})
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
	w.flips = append(w.flips, flip{value: -1, group: g, home: w.state.home[g]})
	w.state.home[g] = to
}

// back takes the flips back.
func (w *walker) back() {
	for i := len(w.flips) - 1; i >= 0; i-- {
		if f := w.flips[i]; f.value >= 0 {
			w.state.act[f.value] = f.act
		} else {
			w.state.home[f.group] = f.home
		}
	}
}

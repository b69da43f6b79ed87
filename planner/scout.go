package planner

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/candidates"
)

// Scout finds out whether graphs fit that are alike but for a number, such as a model's depth,
// on the way to the largest that does. A refusal that is certain takes many times as long as a
// plan, since none of some dozens of candidates may fit, for several graphs. So it remembers what
// each candidate came to for other numbers, and tries those alone that may fit by a straight line
// through the latest two: needs of memory are nearly lines. A refusal is then a guess, and the
// last of a search is to be confirmed, by [Fits]. The zero value knows nothing, and is certain.
type Scout struct {
	trends map[scouted]trend
}

// Weighed is what a graph came to.
type Weighed struct {
	Fits bool    // [Plan] has plans within the budgets: that is certain
	Sure bool    // a refusal is, too
	Load float64 // the larger part of a budget that is needed at least: above 1 of what is refused
}

// scouted is what is weighed again for other numbers: a candidate of a target, or all of a graph.
type scouted struct {
	graph  string // how it is made
	rank   int    // the process that it is for
	level  int    // the choice: of a disk's use, or of candidates that all targets take together
	target int
	place  int // of the candidate in the ladder, counted from its end
}

// trend is the latest two loads of what was scouted, and the numbers that they are of, which are
// 0 before there are any. The latest comes first.
type trend struct{ number, load [2]float64 }

// learn adds a load.
func (t trend) learn(number, load float64) trend {
	if t.number[0] == number {
		t.load[0] = load
		return t
	}
	return trend{[2]float64{number, t.number[0]}, [2]float64{load, t.load[0]}}
}

// at is the load that is expected of a number: on the line through two, or in proportion to
// one. It is 0 if nothing is known.
func (t trend) at(number float64) float64 {
	switch {
	case t.number[0] == 0:
		return 0
	case t.number[1] == 0:
		return t.load[0] * number / t.number[0]
	}
	slope := (t.load[0] - t.load[1]) / (t.number[0] - t.number[1])
	return t.load[0] + float64(slope*(number-t.number[0]))
}

// How much above 1 the load may be that is expected of what is tried nevertheless: near the
// number that is known packing makes the difference, and from afar what grows with the root of
// the number, so that what is needed is no line.
const nearDoubt, farDoubt = 0.02, 0.1

// hopeless reports whether the load of a number is expected to be too large to be tried.
func (t trend) hopeless(number float64) bool {
	far := max(number, t.number[0]) / min(number, t.number[0])
	return t.number[0] > 0 && t.at(number) > 1+nearDoubt+float64(farDoubt*math.Sqrt(far-1))
}

// Weigh finds out whether a graph of a number from 1 on fits.
func (c *Scout) Weigh(ctx context.Context, number int, g *graph.Graph, o Options,
	targets ...Target) (Weighed, error) {
	t := c.tour(ctx, number, o)
	err := t.run(g, targets)
	switch {
	case err != nil:
		return Weighed{}, err
	case t.fits:
		return Weighed{true, true, min(t.load, 1)}, nil
	}
	return Weighed{false, t.sure, max(t.load, math.Nextafter(1, 2))}, nil
}

// Survey has every candidate of a graph of a number tried, whether it is likely to fit or not. It
// pays for small numbers of what is looked for.
func (c *Scout) Survey(ctx context.Context, number int, g *graph.Graph, o Options,
	targets ...Target) error {
	t := c.tour(ctx, number, o)
	t.all = true
	return t.run(g, targets)
}

// tour is one number's turn.
type tour struct {
	*Scout
	ctx     context.Context
	options Options
	number  float64
	all     bool // nothing is left out, and nothing that fits ends the tour

	fits, sure bool
	load       float64              // the least of a graph
	keeps      bool                 // whether what is refused is asked for
	refused    []*candidates.Search // the searches of graphs that do not fit, if they are kept
}

func (c *Scout) tour(ctx context.Context, number int, o Options) *tour {
	if c.trends == nil {
		c.trends = map[scouted]trend{}
	}
	return &tour{Scout: c, ctx: ctx, options: o, number: float64(number), sure: true,
		load: math.Inf(1)}
}

// run weighs the graphs that there are to choose from, until one fits.
func (t *tour) run(g *graph.Graph, targets []Target) error {
	list, err := variantsOf(g, t.options, targets)
	if err != nil {
		return err
	}
	for _, x := range list {
		if t.fits && !t.all {
			return nil
		}
		if t.leaveOut(x.name) {
			continue
		}
		v, err := x.graph()
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		if err := t.graph(v); err != nil {
			return err
		}
	}
	return nil
}

// whole is a graph as a whole.
func (t *tour) whole(name string) scouted {
	return scouted{graph: name, rank: t.options.Rank, place: -1}
}

// leaveOut reports whether a graph is not worth to be made.
func (t *tour) leaveOut(name string) bool {
	what := t.trends[t.whole(name)]
	if t.all || !what.hopeless(t.number) {
		return false
	}
	t.sure, t.load = false, min(t.load, what.at(t.number))
	return true
}

func (t *tour) learn(what scouted, load float64) {
	t.trends[what] = t.trends[what].learn(t.number, load)
}

// graph weighs a graph.
func (t *tour) graph(v *Planned) error {
	s, err := candidates.New(t.ctx, v.Graph, t.options, v.Targets)
	if err != nil {
		return err
	}
	name := t.whole(v.rewritten)
	load, fits, err := t.search(s, name)
	if err != nil {
		return err
	}
	t.learn(name, load)
	t.load, t.fits = min(t.load, load), t.fits || fits
	if !fits && t.keeps {
		t.refused = append(t.refused, s)
	}
	return nil
}

// search weighs the candidates of a graph: those that targets take alone, each with as much on the
// disk, and those that all go together, but for what is seen to need too much without. The
// tightest is the first.
func (t *tour) search(s *candidates.Search, at scouted) (least float64, fits bool, err error) {
	if floor := s.Floor(); floor > s.Options.DeviceBytes {
		return float64(floor) / float64(s.Options.DeviceBytes), false, nil
	}
	least = math.Inf(1)
	for i, c := range s.Groups() {
		n, err := s.AtLeast(c)
		if err != nil {
			return 0, false, err
		}
		if !n.Within(s.Options.Budgets()) {
			least = min(least, n.Fraction(s.Options.Budgets()))
			continue
		}
		at.level = i
		load, ok, err := t.targets(s, at, c)
		least, fits = min(least, load), fits || ok
		if err != nil || fits && !t.all {
			return least, fits, err
		}
	}
	return least, fits, nil
}

// targets weighs all targets, of which every one must fit. The load is the largest.
func (t *tour) targets(s *candidates.Search, at scouted,
	c candidates.Group) (most float64, fit bool, err error) {
	fit = true
	for i := range s.Targets {
		at.target = i
		load, fits, err := t.target(s, at, s.Candidates(c, i))
		if err != nil {
			return 0, false, err
		}
		most, fit = max(most, load), fit && fits
		if !fit && !t.all {
			break
		}
	}
	return most, fit, nil
}

// target weighs the candidates of a target, in the order of what they are expected to need, of
// which one must fit. The load is the least.
func (t *tour) target(s *candidates.Search, at scouted,
	list []candidates.Candidate) (least float64, fits bool, err error) {
	type chance struct {
		scouted
		candidate candidates.Candidate
		load      float64
	}
	var chances []chance
	for i, w := range slices.Backward(list) {
		at.place = len(list) - i
		load := t.trends[at].at(t.number)
		if load == 0 {
			load = 1 // whether it fits is open
		}
		chances = append(chances, chance{at, w, load})
	}
	slices.SortStableFunc(chances, func(a, b chance) int { return cmp.Compare(a.load, b.load) })
	least = math.Inf(1)
	for _, c := range chances {
		if !t.all && t.trends[c.scouted].hopeless(t.number) {
			t.sure, least = false, min(least, c.load)
			continue
		}
		load, ok, err := s.Weigh(at.target, c.candidate)
		if err != nil {
			return 0, false, err
		}
		t.learn(c.scouted, load)
		least, fits = min(least, load), fits || ok
		if fits && !t.all {
			break
		}
	}
	return least, fits, nil
}

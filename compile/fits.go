package compile

import (
	"context"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
)

// Fits is nil if [Plan] has plans within the budgets, and else its refusal, wrapping the
// same *[ErrOutOfMemory]. It makes none of the plans that are there to be fast, so that it
// takes a part of Plan's time: for those who look for the largest that fits.
func Fits(ctx context.Context, g *graph.Graph, o Options, targets ...Target) error {
	fitting, refused, err := whether(ctx, g, o, targets)
	if fitting != nil || err != nil {
		return err
	}
	return gentlest(refused)
}

// Probe reports whether [Plan] has plans within the budgets, as [Fits] does, and the larger
// part of a budget that they take at least, by the way that takes the least of those that
// were tried: more than 1 of what is refused. What would be enough it does not find out,
// which takes several times as long.
func Probe(ctx context.Context, g *graph.Graph, o Options,
	targets ...Target) (fits bool, load float64, err error) {
	fitting, refused, err := whether(ctx, g, o, targets)
	if err != nil {
		return false, 0, err
	}
	if fitting != nil {
		return true, min(fitting.load(), 1), nil
	}
	load = math.Inf(1)
	for _, s := range refused {
		load = min(load, s.load())
	}
	return false, max(load, math.Nextafter(1, 2)), nil
}

// whether is the search of the first graph that fits the budgets, or those of all graphs
// that are refused.
func whether(ctx context.Context, g *graph.Graph, o Options,
	targets []Target) (fitting *search, refused []*search, err error) {
	err = variants(g, o, targets, func(v *Planned) (wanted, error) {
		s, err := newSearch(ctx, v.Graph, o, v.Targets)
		if err != nil {
			return none, err
		}
		fits, err := s.fits()
		switch {
		case err != nil:
			return none, err
		case fits:
			fitting = s
			return none, nil
		}
		refused = append(refused, s)
		return next, nil
	})
	return fitting, refused, err
}

// load is the larger part of a budget that the targets take at least, each by the way that
// takes the least of those that were tried.
func (s *search) load() float64 {
	limits := budgets(s.options)
	most := float64(s.floor()) / float64(s.options.DeviceBytes)
	for _, j := range s.jobs {
		least := math.Inf(1)
		for w, n := range j.loads {
			if packed, known := j.needs[w]; known {
				n = packed
			}
			least = min(least, n.part(limits))
		}
		if len(j.loads) > 0 {
			most = max(most, least)
		}
	}
	return most
}

// part is the largest part of a budget.
func (n need) part(budgets need) float64 {
	var most float64
	for s, bytes := range n {
		if bytes > 0 {
			most = max(most, float64(bytes)/float64(budgets[s]))
		}
	}
	return most
}

// fits reports whether the budgets are granted: by ways that all targets go together, or
// by one for each with as much on the disk. The tightest way is tried first.
func (s *search) fits() (bool, error) {
	if s.floor() > s.options.DeviceBytes {
		return false, nil
	}
	for level := range s.levels() {
		all, err := s.plans(func(j *job) (*found, error) {
			ways := j.ladder.at(level).straight()
			slices.Reverse(ways)
			return j.first(s.ctx, ways)
		})
		if all != nil || err != nil {
			return all != nil, err
		}
	}
	for i := range s.jobs[0].ladder.together {
		all, err := s.plans(func(j *job) (*found, error) {
			return j.try(s.ctx, j.ladder.together[i], never)
		})
		if all != nil || err != nil {
			return all != nil, err
		}
	}
	return false, nil
}

package compile

import (
	"context"
	"slices"

	"github.com/gomem/gomem/graph"
)

// Fits is nil if [Plan] has plans within the budgets, and else its refusal, wrapping the
// same *[ErrOutOfMemory]. It makes none of the plans that are there to be fast, so that it
// takes a part of Plan's time: for those who look for the largest that fits.
func Fits(ctx context.Context, g *graph.Graph, o Options, targets ...Target) error {
	fits := false
	var refused []*search
	err := variants(g, o, targets, func(v *Planned) (bool, error) {
		s, err := newSearch(ctx, v.Graph, o, v.Targets)
		if err == nil {
			fits, err = s.fits()
		}
		if err == nil && !fits {
			refused = append(refused, s)
		}
		return !fits, err
	})
	if fits || err != nil {
		return err
	}
	return gentlest(refused)
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

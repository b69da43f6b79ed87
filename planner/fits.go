package planner

import (
	"context"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/explain"
)

// Fits is nil if [Plan] has plans within the budgets, and else its refusal, wrapping the
// same *[ErrOutOfMemory]. It makes none of the plans that are there to be fast, so that it
// takes a part of Plan's time: for those who look for the largest that fits.
func Fits(ctx context.Context, g *graph.Graph, o Options, targets ...Target) error {
	t := new(Scout).tour(ctx, 1, o)
	t.keeps = true
	if err := t.run(g, targets); err != nil || t.fits {
		return err
	}
	return explain.Gentlest(t.refused)
}

// Probe reports whether [Plan] has plans within the budgets, as [Fits] does, and the larger
// part of a budget that they take at least, by the candidate that takes the least of those that
// were tried: more than 1 of what is refused. What would be enough it does not find out,
// which takes several times as long.
func Probe(ctx context.Context, g *graph.Graph, o Options,
	targets ...Target) (fits bool, load float64, err error) {
	w, err := new(Scout).Weigh(ctx, 1, g, o, targets...)
	return w.Fits, w.Load, err
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
)

// planned are the plans of a run's targets under one set of options. The first
// target is the training step.
type planned struct {
	results []*compile.Result
}

// planAll plans every target. If some do not fit, the error is of the one that
// needs the most.
func planAll(ctx context.Context, g *graph.Graph, targets []compile.Target, o compile.Options) (planned, error) {
	var p planned
	var worst *compile.ErrOutOfMemory
	for _, t := range targets {
		r, err := compile.Compile(ctx, g, t, o)
		if short, ok := errors.AsType[*compile.ErrOutOfMemory](err); ok {
			if worst == nil || short.Space == worst.Space && short.Need > worst.Need {
				worst = short
			}
			continue
		}
		if err != nil {
			return p, err
		}
		p.results = append(p.results, r)
	}
	if worst != nil {
		return p, worst
	}
	return p, nil
}

// training is the plan of a training step.
func (p planned) training() *plan.Plan { return p.results[0].Plan }

// took is the time to plan a training step.
func (p planned) took() time.Duration { return p.results[0].Took }

// peak is what a session with these plans takes of a space: the most that one of
// them needs.
func (p planned) peak(s pass.SpaceID) int64 {
	var most int64
	for _, r := range p.results {
		most = max(most, r.Plan.Spaces[s].Bytes)
	}
	return most
}

// whatSets explains the peak of a space in the plan that needs the most of it.
func (p planned) whatSets(s pass.SpaceID) plan.Peak {
	for _, r := range p.results {
		if r.Plan.Spaces[s].Bytes == p.peak(s) {
			return r.Plan.Peak(plan.SpaceID(s), 10)
		}
	}
	return plan.Peak{}
}

// minDevice is the smallest device budget under which every target has a plan.
func minDevice(ctx context.Context, g *graph.Graph, targets []compile.Target, o compile.Options) (int64, error) {
	var most int64
	for _, t := range targets {
		least, err := compile.MinDevice(ctx, g, t, o)
		if err != nil {
			return 0, err
		}
		most = max(most, least)
	}
	return most, nil
}

// vanillaOptions are the baseline's: everything on the device, no budgets.
func vanillaOptions(o compile.Options) compile.Options {
	return compile.Options{Policy: compile.Vanilla, Streams: o.Streams}
}

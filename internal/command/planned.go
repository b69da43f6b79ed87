package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// planned are the plans of a run's targets under one set of options. The first
// target is the training step.
type planned struct{ *gomem.Planned }

// planAll plans every target of a model. If that takes long, it says so.
func planAll(ctx context.Context, w io.Writer, b *built, o gomem.Options) (planned, error) {
	defer notice(w, fmt.Sprintf("gomem: planning %s under policy %s",
		counted(b.model.Graph.Len(), "node"), cmp.Or(o.Policy, planner.Thesis)))()
	p, err := gomem.Plan(ctx, b.model.Graph, o, b.targets...)
	return planned{p}, b.inFlags(err, o)
}

// planLong is planAll, or, if there is a time for planning, the fastest plans that are found
// until it has passed: the first that fit, which are there whatever the time, those that there
// are without a time, and those of twice the effort, and twice that.
func (f planFlags) planLong(ctx context.Context, e *env, b *built,
	o gomem.Options) (planned, error) {
	o.Logger = e.log
	limited, cancel := context.WithTimeout(ctx, f.PlanTime)
	defer cancel()
	o.Draft = f.PlanTime > 0
	best, err := planAll(ctx, e.stderr, b, o)
	if err != nil || !o.Draft || best.Results[0].Options.Policy == baseline {
		return best, err // nothing is to be had
	}
	defer notice(e.stderr, fmt.Sprintf("gomem: looking for a faster plan for %s", f.PlanTime))()
	o.Draft = false
	for limited.Err() == nil && o.Effort < lastEffort {
		p, err := planAll(limited, io.Discard, b, o)
		if ctx.Err() != nil {
			return best, ctx.Err()
		}
		if err == nil && stepTime(b, p) < stepTime(b, best) {
			best = p
		}
		o.Effort = max(firstEffort, 2*o.Effort)
	}
	return best, nil
}

// planWithin is planLong for the machine at hand, which the session's options then have, too.
// Garbage is kept within the budget meanwhile.
func (f planFlags) planWithin(ctx context.Context, e *env, b *built, o, session gomem.Options) (
	p planned, _ gomem.Options, err error) {
	defer planningWithin(o)()
	if session, err = b.measured(ctx, e.stderr, session, func() {}); err != nil {
		return p, session, err
	}
	o.Machine = session.Machine
	p, err = f.planLong(ctx, e, b, o)
	return p, session, err
}

// More than firstEffort is done by default for a model of few operations only; a
// search that would take lastEffort has long looked at everything.
const firstEffort, lastEffort = 4000, 1 << 40

// training is the plan of a training step.
func (p planned) training() *plan.Plan { return p.Results[0].Plan }

// took is the time to plan a training step.
func (p planned) took() time.Duration { return p.Results[0].Took }

// whatSets explains the peak of a space in the plan that needs the most of it.
func (p planned) whatSets(s space.ID) plan.Peak {
	for _, r := range p.Results {
		if int(s) < len(r.Plan.Spaces) && r.Plan.Spaces[s].Bytes == p.Peak(s) {
			return r.Plan.Peak(s, 10)
		}
	}
	return plan.Peak{}
}

// comparison is what a plan is compared with: vanilla's, which it may be itself.
func comparison(ctx context.Context, w io.Writer, b *built, o gomem.Options,
	p planned) (planned, error) {
	if o.Policy == baseline {
		return p, nil
	}
	return planAll(ctx, w, b, vanillaOptions(o))
}

// vanillaOptions are the baseline's: everything on the device, no budgets, and of a mesh the
// whole. They are for comparisons alone: what is run is planned by options that lack nothing.
func vanillaOptions(o gomem.Options) gomem.Options {
	return gomem.Options{Policy: baseline, Streams: o.Streams, NoFusion: o.NoFusion,
		Precision: o.Precision, Machine: o.Machine, Model: o.Model, Device: o.Device}
}

package planner

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
)

// Result is a plan and what is worth knowing of how it came about.
type Result struct {
	Plan    *plan.Plan
	Program *program.Program
	Timings []program.Timing
	Took    time.Duration
	Options Options // by which it was made; under Auto they may be another policy's
	Tuning          // what the ladder came to
	Order   string  // of operations, by package order, if the planner made the plan

	Model machine.Model // the prices it was made by
	Step  time.Duration // of a step, by these prices
}

// Compile makes the plan of a target: the most relaxed that the policy knows of
// those that fit the budgets. The plan is verified. If none fits, the error is an
// *[ErrOutOfMemory].
func Compile(ctx context.Context, g *graph.Graph, t Target, o Options) (*Result, error) {
	results, err := All(ctx, g, o, t)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// All makes the plans of targets that share their variables, as Compile does for
// one, by target. If some do not fit, the error is the *[ErrOutOfMemory] of the one
// that needs the most.
func All(ctx context.Context, g *graph.Graph, o Options, targets ...Target) ([]*Result, error) {
	s, err := newVariant(ctx, g, o, targets)
	if err != nil {
		return nil, err
	}
	results, err := s.results()
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	if results == nil {
		return nil, s.refusal()
	}
	return results, nil
}

// Minimum is the smallest budget of a space, in bytes, for which All makes plans
// within the other spaces' budgets: it works, and a byte less is refused. The
// space's own budget does not count. If there is none, the error is an
// *[ErrOutOfMemory].
func Minimum(ctx context.Context, g *graph.Graph, o Options, of space.ID,
	targets ...Target) (int64, error) {
	*budget(&o, of) = math.MaxInt64
	s, err := newVariant(ctx, g, o, targets)
	if err != nil {
		return 0, err
	}
	l, err := s.least(of)
	if err != nil {
		return 0, err
	}
	if l == nil {
		return 0, s.refusal()
	}
	return l.bytes, nil
}

// budget is the budget of a space.
func budget(o *Options, of space.ID) *int64 {
	switch of {
	case space.Device:
		return &o.DeviceBytes
	case space.Host:
		return &o.HostBytes
	}
	return &o.DiskBytes
}

// MinDevice is the smallest device budget for which Compile makes a plan within
// the host budget, in bytes.
func MinDevice(ctx context.Context, g *graph.Graph, t Target, o Options) (int64, error) {
	return Minimum(ctx, g, o, space.Device, t)
}

// Least is the plan with the smallest device peak of those within the host
// budget; the device's budget does not count. It is not verified. If there is
// none, the error is an *[ErrOutOfMemory].
func Least(ctx context.Context, g *graph.Graph, t Target, o Options) (*plan.Plan, error) {
	o.DeviceBytes = 0
	s, err := newVariant(ctx, g, o, []Target{t})
	if err != nil {
		return nil, err
	}
	l, err := s.least(space.Device)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, s.refusal()
	}
	p, _, err := l.job.lower(ctx, l.candidate)
	if err != nil {
		return nil, err
	}
	lower.AddWaits(p)
	return p, nil
}

// Forecast is what a policy guesses of a plan before anything is lowered, beside
// what it comes to.
type Forecast struct {
	Estimate     int64 // the device's peak as a pass guesses it; 0 if none does
	Device, Host int64 // the peaks of the plan
}

// Predict is the forecast of Grappler that is told the device's budget of the
// options, whether or not the plan keeps to it.
func Predict(ctx context.Context, g *graph.Graph, t Target, o Options) (Forecast, error) {
	s, err := newVariant(ctx, g, o, []Target{t})
	if err != nil {
		return Forecast{}, err
	}
	w := tunings(s.options)[0]
	w.Told = s.options.DeviceBytes
	p, program, err := s.jobs[0].lower(ctx, w)
	if err != nil {
		return Forecast{}, err
	}
	return Forecast{program.Estimate, p.Spaces[space.Device].Bytes,
		p.Spaces[space.Host].Bytes}, nil
}

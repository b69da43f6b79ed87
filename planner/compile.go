package planner

import (
	"context"
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/candidates"
	"github.com/gomem/gomem/planner/explain"
	"github.com/gomem/gomem/planner/lower"
)

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
	s, err := candidates.New(ctx, g, o, targets)
	if err != nil {
		return nil, err
	}
	results, err := s.Results()
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	if results == nil {
		return nil, explain.Refusal(s)
	}
	return results, nil
}

// Minimum is the smallest budget of a space, in bytes, for which All makes plans
// within the other spaces' budgets: it works, and a byte less is refused. The
// space's own budget does not count. If there is none, the error is an
// *[ErrOutOfMemory].
func Minimum(ctx context.Context, g *graph.Graph, o Options, of space.ID,
	targets ...Target) (int64, error) {
	*o.Budget(of) = math.MaxInt64
	s, err := candidates.New(ctx, g, o, targets)
	if err != nil {
		return 0, err
	}
	l, err := s.Minimum(of)
	if err != nil {
		return 0, err
	}
	if l == nil {
		return 0, explain.Refusal(s)
	}
	return l.Bytes, nil
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
	s, err := candidates.New(ctx, g, o, []Target{t})
	if err != nil {
		return nil, err
	}
	l, err := s.Minimum(space.Device)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, explain.Refusal(s)
	}
	p, err := s.PlanOf(l)
	if err != nil {
		return nil, err
	}
	lower.AddWaits(p)
	return p, nil
}

// Predict is the forecast of Grappler that is told the device's budget of the
// options, whether or not the plan keeps to it.
func Predict(ctx context.Context, g *graph.Graph, t Target, o Options) (Forecast, error) {
	s, err := candidates.New(ctx, g, o, []Target{t})
	if err != nil {
		return Forecast{}, err
	}
	return s.Predict()
}

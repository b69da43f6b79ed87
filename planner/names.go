package planner

import (
	"context"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/candidates"
	"github.com/gomem/gomem/planner/explain"
	"github.com/gomem/gomem/planner/machine"
)

// What is planned and by what options is package candidates', and what is said of a refusal is
// package explain's: who plans needs neither by name.
type (
	// Options are the decisions that are the user's.
	Options = candidates.Options
	// Policy is a named set of decisions.
	Policy = candidates.Policy
	// Target is what one kind of step computes.
	Target = candidates.Target
	// Result is a plan and what is worth knowing of how it came about.
	Result = candidates.Result
	// Forecast is what a policy guesses of a plan, beside what it comes to.
	Forecast = candidates.Forecast
	// Log is what became of the candidates for plans.
	Log = candidates.Log
	// ErrOutOfMemory says that no plan fits a budget.
	ErrOutOfMemory = explain.ErrOutOfMemory
	// Remedy is what would help where memory is short.
	Remedy = explain.Remedy
	// Change is what a remedy changes.
	Change = explain.Change
)

// The policies: see package candidates.
const (
	Vanilla  = candidates.Vanilla
	Thesis   = candidates.Thesis
	Auto     = candidates.Auto
	Grappler = candidates.Grappler
)

// The changes of remedies: see package explain.
const (
	Shrink           = explain.Shrink
	UsePolicy        = explain.UsePolicy
	AllowBoth        = explain.AllowBoth
	SmallerPartition = explain.SmallerPartition
	ShorterLookahead = explain.ShorterLookahead
	RaiseOther       = explain.RaiseOther
	UseDisk          = explain.UseDisk
)

// Policies are the names that Options.Policy takes.
func Policies() []Policy { return candidates.Policies() }

// WithLog has those who plan under a context write down in a log what becomes of candidates.
func WithLog(ctx context.Context, l *Log) context.Context { return candidates.WithLog(ctx, l) }

// LogOf is the log of a context, or a new one if it has none.
func LogOf(ctx context.Context) *Log { return candidates.LogOf(ctx) }

// CheckTargets reports a graph that is none or has an error, targets of one name,
// a fetch or an update that is no such thing of the graph, and updates that cannot be
// of one step.
func CheckTargets(g *graph.Graph, targets ...Target) error {
	return candidates.CheckTargets(g, targets...)
}

// Prices are a machine's for a graph, which it knows by the model's name, if it does.
// What a training step executes is what the first target with updates needs, or the
// first target if none has any.
func Prices(m machine.Machine, model string, g *graph.Graph, targets ...Target) machine.Model {
	return candidates.Prices(m, model, g, targets...)
}

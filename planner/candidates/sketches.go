package candidates

import (
	"context"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/schedule"
	"github.com/gomem/gomem/planner/search"
	"github.com/gomem/gomem/planner/spill"
)

// sketches are what candidates of a target come to: what the passes decide, and the sketch that
// follows, of which what it takes and needs is remembered.
type sketches struct {
	graph  *graph.Graph
	target Target
	prices *lower.Prices
	decisions
	base    decisions                // by the options as they are
	drawn   *Drawn                   // the latest of which the load was asked
	loads   map[Candidate]lower.Need // what the candidates tried so far take at least
	needs   map[Candidate]lower.Need // and what they come to, of those that were packed
	leaves  [][]bool                 // by level of use of a disk: what is bound there
	cut     [2]*search.Problem       // of candidates that compute again; nil: not worked out
	housing *housing                 // where variables are, of candidates that keep some
}

// decisions are a program with all tables but the last.
type decisions struct {
	decided Candidate        // what decisions do not depend on is zero
	program *program.Program // nil: nothing has been decided
	timings []program.Timing // of its passes
}

// draw is the sketch of a candidate, not packed, and remembers what it takes at least.
func (k *sketches) draw(ctx context.Context, w Candidate) (*Drawn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := k.decide(ctx, w); err != nil {
		return nil, err
	}
	filled := *k.program // which other tunings fill in other candidates
	filling, err := k.schedule(ctx, w)
	if err != nil {
		return nil, err
	}
	last := []program.Pass{filling}
	if w.Spill > 0 {
		last = append(last, spill.Pass(spill.Options{Leaves: k.leaves[w.Spill]}))
	}
	x, err := sketched(ctx, &filled, last, w.options)
	if err != nil {
		return nil, err
	}
	k.loads[w] = x.Load
	return &Drawn{Candidate: w, title: w.title(), sketch: x, program: &filled,
		timings: k.timings}, nil
}

// pack gives what was drawn addresses, which do not depend on the budgets, and remembers
// what it needs.
func (k *sketches) pack(f *Drawn) {
	f.sketch.Pack(lower.Need{}, 0)
	k.needs[f.Candidate] = f.sketch.Need
}

// plan makes the plan of a candidate, without waits.
func (k *sketches) plan(ctx context.Context, w Candidate) (*plan.Plan, *program.Program,
	error) {
	f, err := k.draw(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	k.pack(f)
	return f.sketch.Plan(f.program, f.title, w.options.Budgets()), f.program, nil
}

// schedule is the pass that writes down what has been decided.
func (k *sketches) schedule(ctx context.Context, w Candidate) (program.Pass, error) {
	if w.Segments > 0 {
		return k.segments(ctx, w)
	}
	return schedule.Pass(schedule.Options{Partition: w.options.Partition,
		Streams: w.options.Streams, Prefetch: w.Prefetch, Lookahead: w.Lookahead,
		Unshared: w.Unshared}), nil
}

// load is what the plan of a candidate takes at least.
func (k *sketches) load(ctx context.Context, w Candidate) (lower.Need, error) {
	if n, known := k.loads[w]; known {
		return n, nil
	}
	var err error
	k.drawn, err = k.draw(ctx, w)
	return k.loads[w], err
}

// need is what the plan of a candidate takes.
func (k *sketches) need(ctx context.Context, w Candidate) (lower.Need, error) {
	if n, known := k.needs[w]; known {
		return n, nil
	}
	f, err := k.take(ctx, w)
	if err != nil {
		return lower.Need{}, err
	}
	k.pack(f)
	return f.sketch.Need, nil
}

// take is draw, unless the candidate is the one of which the load was asked last.
func (k *sketches) take(ctx context.Context, w Candidate) (*Drawn, error) {
	f := k.drawn
	if k.drawn = nil; f != nil && f.Candidate == w {
		return f, nil
	}
	return k.draw(ctx, w)
}

// decide runs the passes of a candidate, unless the latest program or the first is of the same
// decisions: prefetch and sharing are matters of lowering, and budgets of what comes of it.
func (k *sketches) decide(ctx context.Context, w Candidate) error {
	w = w.deciding()
	for _, known := range []decisions{k.decisions, k.base} {
		if known.program != nil && known.decided == w {
			k.decisions = known
			return nil
		}
	}
	p := k.undecided()
	timings, err := program.Run(ctx, p, passes(w))
	if err != nil {
		return err
	}
	k.decisions = decisions{w, p, timings}
	return nil
}

// undecided is the target's program before anything is decided.
func (k *sketches) undecided() *program.Program {
	if k.program != nil {
		return k.program.Anew()
	}
	return program.New(k.graph, k.target.Fetches, k.target.Updates)
}

// sketched is the sketch of a program that has been decided about, by the last passes.
func sketched(ctx context.Context, p *program.Program, last []program.Pass,
	o Options) (*lower.Sketch, error) {
	last = append(last, sharing(p.Graph, o)...)
	if _, err := program.Run(ctx, p, last); err != nil {
		return nil, err
	}
	return lower.Of(p), nil
}

// sharing are the passes for what workers exchange, if there may be something.
func sharing(g *graph.Graph, o Options) []program.Pass {
	switch {
	case !g.Exchanges():
		return nil
	case o.Gathers:
		return []program.Pass{schedule.Share(), schedule.Gather()}
	default:
		return []program.Pass{schedule.Share()}
	}
}

// deciding is a candidate without what decisions do not depend on.
func (w Candidate) deciding() Candidate {
	w.Prefetch, w.Unshared, w.Spill, w.Timed, w.Housed = 0, false, 0, false, 0
	w.options = w.options.Unlimited()
	return w
}

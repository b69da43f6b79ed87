package candidates

import (
	"context"
	"math"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/outlook"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/schedule"
	"github.com/gomem/gomem/planner/search"
	"github.com/gomem/gomem/planner/spill"
)

// targetSearch is the search for the plan of one target: what is decided for it, and what is known
// of its candidates by now.
type targetSearch struct {
	graph  *graph.Graph
	target Target
	prices *lower.Prices
	log    scribe
	ladder ladder
	floor  int64 // what any plan needs of the device: what one operation touches
	decisions
	base     decisions // by the options as they are
	drawn    *Drawn    // the latest of which the load was asked
	took     time.Duration
	loads    map[Candidate]lower.Need      // what the candidates tried so far take at least
	needs    map[Candidate]lower.Need      // and what they come to, of those that were packed
	answers  map[asked]lower.Need          // of the others, as much as was asked
	outlooks map[Candidate]outlook.Outlook // of candidates, their prefetch being how far it reaches
	leaves   [][]bool                      // by level of use of a disk: what is bound there
	disk     *spill.Options                // how the search's schedules use a disk; nil: not at all
	cut      [2]*search.Problem            // of candidates that compute again; nil: not worked out
	housing  *housing                      // where variables are, of candidates that keep some
}

// decisions are a program with all tables but the last.
type decisions struct {
	decided Candidate        // what decisions do not depend on is zero
	program *program.Program // nil: nothing has been decided
	timings []program.Timing // of its passes
}

// find is the most relaxed plan by the candidates that a target may take alone, or nil.
func (j *targetSearch) find(ctx context.Context, l ladder) (*Drawn, error) {
	var best *Drawn
	_, err := halving(len(l.chain), func(i int) (bool, error) {
		f, err := j.try(ctx, l.chain[i], Never)
		if f != nil {
			best = f
		}
		return f != nil, err
	})
	if err != nil {
		return nil, err
	}
	if best == nil {
		return j.first(ctx, l.last)
	}
	longer, err := j.first(ctx, ahead(best.Candidate))
	if longer == nil && err == nil {
		longer = best
	}
	return longer, err
}

// first is the plan of the first of some candidates that fits, or nil.
func (j *targetSearch) first(ctx context.Context, candidates []Candidate) (*Drawn, error) {
	for _, w := range candidates {
		if f, err := j.try(ctx, w, Never); f != nil || err != nil {
			return f, err
		}
	}
	return nil, nil
}

// Never is more than any step takes.
const Never = time.Duration(math.MaxInt64)

// try is the plan of a candidate. It is nil if it does not fit, or if a step takes no less than
// a limit. Most candidates are out of the question by their load, or by how long their streams
// work, before they have addresses.
func (j *targetSearch) try(ctx context.Context, w Candidate, limit time.Duration) (*Drawn, error) {
	budgets := w.options.Budgets()
	if n, known := j.needs[w]; known && !n.Within(budgets) {
		j.log.over(w, n, true)
		return nil, nil
	}
	if n, known := j.loads[w]; known && !n.Within(budgets) {
		j.log.over(w, n, false)
		return nil, nil
	}
	f, err := j.draw(ctx, w)
	if err != nil {
		return nil, err
	}
	return j.judge(f, limit), nil
}

// judge gives what was drawn addresses and a time; it is nil if it does not fit, or if a
// step takes no less than a limit.
func (j *targetSearch) judge(f *Drawn, limit time.Duration) *Drawn {
	budgets := f.options.Budgets()
	if !f.sketch.Load.Within(budgets) {
		j.log.over(f.Candidate, f.sketch.Load, false)
		return nil
	}
	if limit < Never {
		return j.spread(f, limit)
	}
	j.pack(f)
	if !f.sketch.Need.Within(budgets) {
		j.log.over(f.Candidate, f.sketch.Need, true)
		return nil
	}
	f.time = f.sketch.Time(j.prices)
	j.log.drawn(f, fits)
	return f
}

// draw is the sketch of a candidate, not packed, and remembers what it takes at least.
func (j *targetSearch) draw(ctx context.Context, w Candidate) (*Drawn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := j.decide(ctx, w); err != nil {
		return nil, err
	}
	filled := *j.program // which other tunings fill in other candidates
	filling, err := j.schedule(ctx, w)
	if err != nil {
		return nil, err
	}
	last := []program.Pass{filling}
	if w.Spill > 0 {
		last = append(last, spill.Pass(spill.Options{Leaves: j.leaves[w.Spill]}))
	}
	k, err := sketched(ctx, &filled, last, w.options)
	if err != nil {
		return nil, err
	}
	j.loads[w] = k.Load
	return &Drawn{Candidate: w, title: w.title(), sketch: k, program: &filled,
		timings: j.timings}, nil
}

// pack gives what was drawn addresses, which do not depend on the budgets, and remembers
// what it needs.
func (j *targetSearch) pack(f *Drawn) {
	f.sketch.Pack(lower.Need{}, 0)
	j.needs[f.Candidate] = f.sketch.Need
}

// lower makes the plan of a candidate, without waits.
func (j *targetSearch) lower(ctx context.Context, w Candidate) (*plan.Plan, *program.Program,
	error) {
	f, err := j.draw(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	j.pack(f)
	return f.sketch.Plan(f.program, f.title, w.options.Budgets()), f.program, nil
}

// schedule is the pass that writes down what has been decided.
func (j *targetSearch) schedule(ctx context.Context, w Candidate) (program.Pass, error) {
	if w.Segments > 0 {
		return j.segments(ctx, w)
	}
	return schedule.Pass(schedule.Options{Partition: w.options.Partition,
		Streams: w.options.Streams, Prefetch: w.Prefetch, Lookahead: w.Lookahead,
		Unshared: w.Unshared}), nil
}

// sketched is the sketch of a program that has been decided about, by the last passes.
func sketched(ctx context.Context, p *program.Program, last []program.Pass,
	o Options) (*lower.Sketch, error) {
	last = append(last, sharing(p.Graph, o)...)
	if _, err := program.Run(ctx, p, last); err != nil {
		return nil, err
	}
	return lower.Of(p.Schedule), nil
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

// load is what the plan of a candidate takes at least.
func (j *targetSearch) load(ctx context.Context, w Candidate) (lower.Need, error) {
	if n, known := j.loads[w]; known {
		return n, nil
	}
	var err error
	j.drawn, err = j.draw(ctx, w)
	return j.loads[w], err
}

// need is what the plan of a candidate takes.
func (j *targetSearch) need(ctx context.Context, w Candidate) (lower.Need, error) {
	if n, known := j.needs[w]; known {
		return n, nil
	}
	f, err := j.sketch(ctx, w)
	if err != nil {
		return lower.Need{}, err
	}
	j.pack(f)
	return f.sketch.Need, nil
}

// sketch is draw, unless the candidate is the one of which the load was asked last.
func (j *targetSearch) sketch(ctx context.Context, w Candidate) (*Drawn, error) {
	f := j.drawn
	if j.drawn = nil; f != nil && f.Candidate == w {
		return f, nil
	}
	return j.draw(ctx, w)
}

// decide runs the passes of a candidate, unless the latest program or the first is of the same
// decisions: prefetch and sharing are matters of lowering, and budgets of what comes of it.
func (j *targetSearch) decide(ctx context.Context, w Candidate) error {
	w = w.deciding()
	for _, known := range []decisions{j.decisions, j.base} {
		if known.program != nil && known.decided == w {
			j.decisions = known
			return nil
		}
	}
	p := j.undecided()
	timings, err := program.Run(ctx, p, passes(w))
	if err != nil {
		return err
	}
	j.decisions = decisions{w, p, timings}
	return nil
}

// undecided is the target's program before anything is decided.
func (j *targetSearch) undecided() *program.Program {
	if j.program != nil {
		return j.program.Anew()
	}
	return program.New(j.graph, j.target.Fetches, j.target.Updates)
}

// deciding is a candidate without what decisions do not depend on.
func (w Candidate) deciding() Candidate {
	w.Prefetch, w.Unshared, w.Spill, w.Timed, w.Housed = 0, false, 0, false, 0
	w.options = w.options.Unlimited()
	return w
}

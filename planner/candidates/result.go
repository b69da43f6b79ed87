package candidates

import (
	"fmt"
	"time"

	"github.com/gomem/gomem/plan"
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

// decisions are what a plan was made of, unless a planner decided: then there are none.
func (r *Result) decisions() decisions {
	if r.Options.Policy.Searches() || r.Order != "" {
		return decisions{}
	}
	p := *r.Program
	p.Schedule = nil
	return decisions{Candidate{r.Options, r.Tuning}.deciding(), &p, r.Timings}
}

// Complete makes the results of plans, by target.
func (s *Search) Complete(plans []*Drawn) ([]*Result, error) {
	var results []*Result
	for i, j := range s.each {
		r, err := j.result(plans[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.sketches.target.Name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// result writes a plan down and verifies it.
func (j *targetSearch) result(f *Drawn) (*Result, error) {
	start := time.Now()
	p := f.sketch.Plan(f.program, f.title, f.options.Budgets())
	lower.AddWaits(p)
	k := j.sketches
	if err := plan.Verify(p, k.graph, k.target.Fetches, k.target.Updates); err != nil {
		return nil, err
	}
	j.took += time.Since(start)
	j.log.drawn(f, Taken)
	return &Result{Plan: p, Program: f.program, Timings: f.timings, Took: j.took,
		Options: f.options, Tuning: f.Tuning, Order: f.order, Step: f.time,
		Model: j.sketches.prices.Model}, nil
}

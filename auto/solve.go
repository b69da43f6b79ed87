package auto

import "context"

// Budget is how many bytes a plan may need: of the device, its arena's high-water
// mark; of the host, the load.
type Budget struct{ Device, Host int64 }

// Options say how long to search, and what not to do.
type Options struct {
	// Effort is the number of evaluations, a few milliseconds each for a few
	// thousand operations; 0: enough for a plan that is good, about half a second
	// for 2,000 operations.
	Effort int
	// Resident, if not nil, says by node which variables and constants are on the
	// device, and which on the host: another program of the graph has decided.
	Resident []bool
	// NoRecompute and NoSwap exclude these actions. Variables and inputs are
	// streamed all the same.
	NoRecompute, NoSwap bool
}

// defaultEffort is so much that an evaluation of every operation is made so often
// in all.
const defaultEffort = 2_000_000

func (o Options) effort(pr *Problem) int {
	if o.Effort > 0 {
		return o.Effort
	}
	return max(60, min(4000, defaultEffort/(len(pr.ops)+1)))
}

// Solve searches for the fastest plan within the budget. Decisions found before,
// under this budget or others, are starts too, and their time is never exceeded by
// that of the result, if they keep to the budget. It returns nil if nothing fits.
// The error is the context's.
func (pr *Problem) Solve(ctx context.Context, b Budget, o Options,
	warm ...*Decision) (*Decision, error) {
	s := newSearch(ctx, pr, b, o)
	s.warm(warm)
	s.portfolio()
	s.tails()
	s.local()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.decision(), nil
}

// At is what a decision comes to under another budget, or nil if it does not fit.
func (pr *Problem) At(d *Decision, b Budget) *Decision {
	e := newEvaluator(pr, b)
	e.force(d.homes)
	s := d.state.clone()
	if e.evaluate(s) >= never {
		return nil
	}
	return e.decision(s)
}

// force makes the leaves be where another program has them.
func (e *evaluator) force(homes []bool) {
	if homes == nil {
		return
	}
	for l := range e.leaves {
		if e.forced[l] = -1; homes[e.leaves[l].node.ID] {
			e.forced[l] = 1
		}
	}
}

// evaluate is how long a step takes, or, if the state does not fit the budget,
// never and more the further it is from it.
func (e *evaluator) evaluate(s *state) int64 {
	e.build(s)
	if e.peak > e.budget.Device {
		return never + e.peak - e.budget.Device
	}
	e.plan()
	t := e.simulate(s)
	if e.hostBound(s) > e.budget.Host {
		if over := e.hostPeak(s) - e.budget.Host; over > 0 {
			return never + over
		}
	}
	return t
}

// decision is the state that was evaluated last, with what it comes to.
func (e *evaluator) decision(s *state) *Decision {
	d := &Decision{state: s, budget: e.budget, peak: e.devicePeak(), host: e.hostPeak(s),
		time: max(e.timeDev, e.timeIn, e.timeOut, e.timeHst)}
	d.homes = make([]bool, e.program.Graph.Len())
	for l := range e.leaves {
		d.homes[e.leaves[l].node.ID] = e.atHome[l]
	}
	e.tally(d)
	return d
}

// tally adds up the bytes by action.
func (e *evaluator) tally(d *Decision) {
	stays := make([]int32, len(e.values))
	for i := range e.stays {
		stays[e.stays[i].value]++
	}
	for v := range e.values {
		va := &e.values[v]
		switch {
		case va.bound():
		case e.absent[v]:
			d.swapped += va.raw
		case stays[v] > 1:
			d.recomputed += va.raw
		default:
			d.kept += va.raw
		}
	}
}

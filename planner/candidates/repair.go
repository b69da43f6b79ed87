package candidates

import (
	"context"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/search"
)

// sparings is how often a decision is made to leave room where packing found none, and repairs
// how often, after that, to keep to less than the budget.
const sparings, repairs = 3, 5

// repair is how a decision is changed until its addresses keep to the budgets.
type repair struct {
	*solver
	problem *problem
	options Options
	homes   []bool
	inner   search.Budget // what the planner is told
	host    int64         // what the host is to need: the planner is not told of it if a disk is
	spare   []int64       // by node: what the planner is to leave free; nil: nothing
	spared  int           // how often it was told to leave more
	shrunk  int64         // how often it was told a smaller budget
	lowest  loose         // of the decisions that need too much of the device
}

// loose is a decision whose addresses need too much.
type loose struct {
	decision *search.Decision
	spare    []int64
	need     int64
}

// packed is the plan of a decision whose addresses keep to the budgets, or nil. As long as the
// device's do not, room is made where and when some block has found none, which leaves the
// others the rest of the budget; and where that does not help, all are left less.
func (s *solver) packed(ctx context.Context, x *problem, d *search.Decision, o Options,
	homes []bool) (*Drawn, error) {
	r := &repair{solver: s, problem: x, options: o, homes: homes, inner: s.room(o),
		host: o.HostBytes}
	for d != nil && r.shrunk < repairs {
		f, err := s.scheduled(ctx, x, d, o, r.host)
		if err != nil {
			return nil, err
		}
		f.insist()
		if f.sketch.Need.Within(o.Budgets()) {
			f.time = f.sketch.Time(s.sketches.prices)
			return f, nil
		}
		if d, err = r.next(ctx, f); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// next is another decision after one whose addresses do not keep to the budgets, or nil.
func (r *repair) next(ctx context.Context, f *Drawn) (*search.Decision, error) {
	need, most := f.sketch.Need[space.Device], r.options.DeviceBytes
	if need <= most || r.shrunk > 0 || r.options.Draft {
		return r.shrink(ctx, f.decision, f.sketch.Need)
	}
	if r.lowest.decision == nil || need < r.lowest.need {
		r.lowest = loose{f.decision, r.spare, need}
		if r.spared < sparings {
			if r.spared++; r.spared > 1 { // it did not suffice
				r.inner.Device -= (need - most) / 2
			}
			r.spare = f.sketch.Spare(r.sketches.graph.Len(), most, r.spare)
			if d, err := r.tighten(ctx, f.decision); d != nil || err != nil {
				return d, err
			}
		}
	}
	f.sketch.Need[space.Device], r.spare = r.lowest.need, r.lowest.spare
	return r.shrink(ctx, r.lowest.decision, f.sketch.Need)
}

// shrink is a decision for smaller budgets, of those that are not kept to.
func (r *repair) shrink(ctx context.Context, d *search.Decision,
	needs lower.Need) (*search.Decision, error) {
	o := r.options
	r.inner.Device = shrunk(r.inner.Device, o.DeviceBytes, needs[space.Device], r.shrunk)
	r.host = shrunk(r.host, o.HostBytes, needs[space.Host], r.shrunk)
	r.shrunk++
	if r.disk == nil {
		r.inner.Host = r.host
	} else if needs[space.Device] <= o.DeviceBytes && needs[space.Disk] <= o.DiskBytes &&
		r.host > 0 {
		return d, nil
	}
	return r.tighten(ctx, d)
}

// tighten adapts a decision to what the planner is told by now.
func (r *repair) tighten(ctx context.Context, d *search.Decision) (*search.Decision, error) {
	o := searching(r.options, r.homes)
	o.Spare = r.spare
	return r.problem.Tighten(ctx, d, r.inner, o)
}

// shrunk is what to aim for next if a plan takes so much: less by a part of what the last one
// was over by, which is all of it by the fourth time. How much packing loses is hardly the same
// of two decisions, and close to the least there is, the time of a step may double with a few
// percent of the budget: so the first times ask for little.
func shrunk(inner, budget, taken, round int64) int64 {
	if taken <= budget {
		return inner
	}
	return inner - (taken-budget)/4*(1+round) - inner/250*(1+round)
}

// near is the part of a budget by which addresses may be above it that are looked for once more.
const near = 400

// pressing is how many times as long addresses are looked for where that is worth more than usual.
const pressing = 3

// insist looks longer for addresses that are only just above the device's budget: any other
// decision is a search, and a packing like this one.
func (f *Drawn) insist() {
	k, most := f.sketch, f.options.DeviceBytes
	if over := k.Need[space.Device] - most; over > 0 && over <= most/near && !f.options.Draft {
		if pressed := k.Press(most, pressing*f.options.packing()); pressed != nil {
			f.sketch = pressed
		}
	}
}

// dense is what part of its load packing may lose of a plan before it is packed once more.
const dense = 50

// condense packs what the planner has decided, if it is taken, once more if that needs notably
// more than its load: within a budget packing goes no further than that. The addresses are taken
// if they are lower, and the step waits hardly longer for them.
func (f *Drawn) condense(prices *lower.Prices) {
	k := f.sketch
	limit := k.Load[space.Device] + k.Load[space.Device]/dense
	if f.decision == nil || f.options.Draft || k.Need[space.Device] <= limit {
		return
	}
	pressed := k.Press(limit, pressing*f.options.packing())
	if pressed == nil {
		return
	}
	if t := pressed.Time(prices); t-t/promise <= f.time {
		f.sketch, f.time = pressed, t
	}
}

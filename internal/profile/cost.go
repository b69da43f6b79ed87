package profile

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// cost prices steps by one clock.
type cost struct {
	run       Run
	computing busy
}

// costs are the predicted and the measured, nil where there is none.
func (a *analysis) costs() (predicted, measured *cost) {
	return a.cost(a.predicted), a.cost(a.measured)
}

// cost is that of a run, nil if it is none.
func (a *analysis) cost(run Run) *cost {
	if run == nil {
		return nil
	}
	return &cost{run, union(a.spans(run, true))}
}

// took is how long a step takes.
func (c *cost) took(step int) time.Duration { return c.run[step].length() }

// hidden is how much of a step of the run is while operations run.
func (c *cost) hidden(step int) time.Duration { return c.computing.within(c.run[step]) }

// copies are added up by reason.
func (a *analysis) copies() []Copies {
	byReason := map[space.Reason]*Copies{}
	predicted, measured := a.costs()
	first, then := predicted.windows(a), measured.windows(a)
	for i, s := range a.plan.Steps {
		do, ok := s.Do.(plan.Copy)
		if !ok {
			continue
		}
		c := byReason[do.Why]
		if c == nil {
			c = &Copies{Reason: do.Why.String(), Predicted: predicted.times(),
				Measured: measured.times()}
			byReason[do.Why] = c
		}
		c.Count++
		c.Bytes += do.Bytes
		predicted.add(c.Predicted, i, first)
		measured.add(c.Measured, i, then)
	}
	out := []Copies{}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		out = append(out, *byReason[why])
	}
	return out
}

// times are none so far, or nil if they are not known.
func (c *cost) times() *Times {
	if c == nil {
		return nil
	}
	return &Times{}
}

// windows are those of the clock's run, if it is known.
func (c *cost) windows(a *analysis) []Span {
	if c == nil {
		return nil
	}
	return a.windows(c.run)
}

// add adds a step, which has a window.
func (c *cost) add(t *Times, step int, windows []Span) {
	if c != nil {
		t.MS += milliseconds(c.run[step].length())
		t.HiddenMS += milliseconds(c.hidden(step))
		t.HideableMS += milliseconds(c.hideable(step, windows[step]))
	}
}

// again adds up what is executed once more.
func (a *analysis) again() Again {
	var out Again
	predicted, measured := a.costs()
	ran := make([]bool, a.graph.Len())
	for i, s := range a.plan.Steps {
		if !a.launches(i) {
			continue
		}
		if ran[s.Node] {
			out.Count++
			out.FLOPs += a.graph.Node(s.Node).Cost().FLOPs
			sum(&out.PredictedMS, predicted.ms(i))
			sum(&out.MeasuredMS, measured.ms(i))
		}
		ran[s.Node] = true
	}
	return out
}

// parts are the partitions.
func (a *analysis) parts() []Part {
	out := []Part{}
	predicted, measured := a.costs()
	live := a.plan.Timeline(space.Device)
	for i, s := range a.plan.Steps {
		if len(out) == 0 || out[len(out)-1].Part != s.Part {
			out = append(out, Part{Part: s.Part, First: i, Predicted: predicted.part(i),
				Measured: measured.part(i)})
		}
		p := &out[len(out)-1]
		p.Last, p.Device = i, max(p.Device, live[i])
		switch do := s.Do.(type) {
		case plan.Launch:
			p.Operations++
			p.FLOPs += a.graph.Node(s.Node).Cost().FLOPs
		case plan.Copy:
			switch space.Device {
			case a.plan.Slots[do.Dst.Slot].Space:
				p.In += do.Bytes
			case a.plan.Slots[do.Src.Slot].Space:
				p.Out += do.Bytes
			}
		}
		predicted.extend(p.Predicted, i, a.launches(i))
		measured.extend(p.Measured, i, a.launches(i))
	}
	return out
}

// part is the time of a partition that begins with a step.
func (c *cost) part(first int) *PartTime {
	if c == nil {
		return nil
	}
	return &PartTime{StartMS: milliseconds(c.run[first].Start)}
}

// extend adds a step to a partition.
func (c *cost) extend(t *PartTime, step int, launch bool) {
	if c == nil {
		return
	}
	s := c.run[step]
	t.StartMS, t.EndMS = min(t.StartMS, milliseconds(s.Start)), max(t.EndMS, milliseconds(s.End))
	if launch {
		t.ComputeMS += milliseconds(s.length())
	} else {
		t.ExposedMS += milliseconds(s.length() - c.hidden(step))
	}
}

// slowest is how many executions a report lists.
const slowest = 50

// ops are the slowest executions; none without a clock.
func (a *analysis) ops() []Op {
	out := []Op{}
	predicted, measured := a.costs()
	by := cmp.Or(measured, predicted)
	if by == nil {
		return out
	}
	var order []int
	for i := range a.plan.Steps {
		if a.launches(i) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(by.took(j), by.took(i)) })
	for _, i := range order[:min(slowest, len(order))] {
		s := a.plan.Steps[i]
		n := a.graph.Node(s.Node)
		c := n.Cost()
		out = append(out, Op{Step: i, Partition: s.Part, Name: n.Name, Op: n.OpName(),
			Shapes: shapes(n), Pos: n.Pos, FLOPs: c.FLOPs, Bytes: c.Bytes,
			PredictedMS: predicted.ms(i), MeasuredMS: measured.ms(i),
			GFLOPS: speed(c.FLOPs, milliseconds(by.took(i)))})
	}
	return out
}

// ms is how long a step takes, if it is known.
func (c *cost) ms(step int) *float64 {
	if c == nil {
		return nil
	}
	ms := milliseconds(c.took(step))
	return &ms
}

// speed is in GFLOP/s; 0 if no time has passed.
func speed(flops int64, ms float64) float64 {
	if ms <= 0 {
		return 0
	}
	return float64(flops) / ms / 1e6
}

// kinds add up the executions of each operation.
func (a *analysis) kinds() []Kind {
	byOp := map[string]*Kind{}
	predicted, measured := a.costs()
	for i, s := range a.plan.Steps {
		do, ok := s.Do.(plan.Launch)
		if !ok {
			continue
		}
		k := byOp[do.Op]
		if k == nil {
			k = &Kind{Op: do.Op}
			byOp[do.Op] = k
		}
		c := a.graph.Node(s.Node).Cost()
		k.Count, k.FLOPs, k.Bytes = k.Count+1, k.FLOPs+c.FLOPs, k.Bytes+c.Bytes
		sum(&k.PredictedMS, predicted.ms(i))
		sum(&k.MeasuredMS, measured.ms(i))
	}
	out := []Kind{}
	for _, op := range slices.Sorted(maps.Keys(byOp)) {
		k := byOp[op]
		k.GFLOPS = speed(k.FLOPs, k.ms())
		out = append(out, *k)
	}
	slices.SortStableFunc(out, func(x, y Kind) int {
		return cmp.Or(cmp.Compare(y.ms(), x.ms()), cmp.Compare(y.FLOPs, x.FLOPs),
			strings.Compare(x.Op, y.Op))
	})
	return out
}

// sum adds to a time that may not be known.
func sum(total **float64, ms *float64) {
	switch {
	case ms == nil:
	case *total == nil:
		*total = ms
	default:
		**total += *ms
	}
}

// ms is the measured time, else the predicted, else 0.
func (k Kind) ms() float64 { return known(k.MeasuredMS, k.PredictedMS) }

// ms is the measured time, else the predicted, else 0.
func (o Op) ms() float64 { return known(o.MeasuredMS, o.PredictedMS) }

// known is the first time that is known, else 0.
func known(times ...*float64) float64 {
	for _, ms := range times {
		if ms != nil {
			return *ms
		}
	}
	return 0
}

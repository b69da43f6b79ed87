package profile

import (
	"time"

	"github.com/gomem/gomem/plan"
)

// use is a time that belongs to some bytes of a slot.
type use struct {
	from, to int64
	at       time.Duration
}

// nearest is the time of the last use of some of the bytes, or another if there is none.
func nearest(uses []use, r plan.Ref, bytes int64, otherwise time.Duration) time.Duration {
	for i := len(uses) - 1; i >= 0; i-- {
		if u := uses[i]; u.from < r.Off+bytes && r.Off < u.to {
			return u.at
		}
	}
	return otherwise
}

// windows are the times within which the copies of a run could have been made, wherever there
// was room: from when their bytes are made to when they are used, by an operation. A copy
// between them, to and from another memory, takes its time. Of other steps nothing is said.
func (a *analysis) windows(run Run) []Span {
	out := make([]Span, len(run))
	made, used := make([][]use, len(a.plan.Slots)), make([][]use, len(a.plan.Slots))
	for i, s := range a.plan.Steps {
		ready := run[i].End
		if do, ok := s.Do.(plan.Copy); ok {
			out[i].Start = nearest(made[do.Src.Slot], do.Src, do.Bytes, 0)
			ready = out[i].Start + run[i].length()
		}
		a.writes(i, func(r plan.Ref, bytes int64) {
			made[r.Slot] = append(made[r.Slot], use{r.Off, r.Off + bytes, ready})
		})
	}
	end := run.length()
	for i := len(run) - 1; i >= 0; i-- {
		due := run[i].Start
		if do, ok := a.plan.Steps[i].Do.(plan.Copy); ok {
			out[i].End = nearest(used[do.Dst.Slot], do.Dst, do.Bytes, end)
			due = out[i].End - run[i].length()
		}
		a.writes(i, func(r plan.Ref, bytes int64) { // who reads later reads this, not what was
			used[r.Slot] = append(used[r.Slot], use{r.Off, r.Off + bytes, end})
		})
		a.reads(i, func(r plan.Ref, bytes int64) {
			used[r.Slot] = append(used[r.Slot], use{r.Off, r.Off + bytes, due})
		})
	}
	return out
}

// writes calls a function with what a step writes.
func (a *analysis) writes(step int, f func(r plan.Ref, bytes int64)) {
	switch do := a.plan.Steps[step].Do.(type) {
	case plan.Copy:
		f(do.Dst, do.Bytes)
	case plan.Send:
		f(do.Out, do.Bytes)
	case plan.Peer:
		f(do.Out, do.Bytes)
	case plan.Await:
		f(do.At, do.Bytes)
	case plan.Launch:
		n := a.graph.Node(a.plan.Steps[step].Node)
		for k, r := range do.Out {
			f(r, n.Out[k].Bytes())
		}
		a.operands(step, do.In[:do.Mutates], f)
	}
}

// reads calls a function with what a step reads.
func (a *analysis) reads(step int, f func(r plan.Ref, bytes int64)) {
	switch do := a.plan.Steps[step].Do.(type) {
	case plan.Copy:
		f(do.Src, do.Bytes)
	case plan.Send: // of a node's operands, or of a variable
		for _, r := range do.In {
			f(r, do.Bytes)
		}
	case plan.Peer:
		a.operands(step, do.In, f)
	case plan.Launch:
		a.operands(step, do.In, f)
	}
}

// operands calls a function with where a step's node has its operands.
func (a *analysis) operands(step int, in []plan.Ref, f func(r plan.Ref, bytes int64)) {
	n := a.graph.Node(a.plan.Steps[step].Node)
	for k, r := range in {
		f(r, n.In[k].Type().Bytes())
	}
}

// hideable is how much of a step of the run could be while operations run, if it were made at
// the best time of its window.
func (c *cost) hideable(step int, window Span) time.Duration {
	s := c.run[step]
	window = Span{min(window.Start, s.Start), max(window.End, s.End)}
	return min(s.length(), c.computing.within(window))
}

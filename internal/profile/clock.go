package profile

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner/simulate"
)

// Span is when something began and ended, since the beginning of the training step.
type Span struct{ Start, End time.Duration }

func (s Span) length() time.Duration { return s.End - s.Start }

// Run is when every step of a plan was done, by index.
type Run []Span

// length is when the last step has ended.
func (r Run) length() time.Duration {
	var end time.Duration
	for _, s := range r {
		end = max(end, s.End)
	}
	return end
}

// Runs finds the runs of a plan among the events of runs that came one after the
// other: its own and those of other plans. It stops at one that is incomplete. Each
// begins at zero.
func Runs(p *plan.Plan, events []trace.Event, others ...*plan.Plan) []Run {
	plans := slices.SortedStableFunc(slices.Values(append([]*plan.Plan{p}, others...)),
		func(a, b *plan.Plan) int { return cmp.Compare(len(b.Steps), len(a.Steps)) })
	var runs []Run
	for len(events) > 0 {
		i := slices.IndexFunc(plans, func(x *plan.Plan) bool { return runOf(x, events) != nil })
		if i < 0 {
			break
		}
		if plans[i] == p {
			runs = append(runs, runOf(p, events))
		}
		events = events[len(plans[i].Steps):]
	}
	return runs
}

// runOf is the run of a plan with which events begin, or nil if it is none.
func runOf(p *plan.Plan, events []trace.Event) Run {
	if len(p.Steps) == 0 || len(p.Steps) > len(events) {
		return nil
	}
	run, seen := make(Run, len(p.Steps)), make([]bool, len(p.Steps))
	for _, e := range events[:len(p.Steps)] {
		if !isOf(p, e) || seen[e.Step] {
			return nil
		}
		run[e.Step], seen[e.Step] = Span{e.Start, e.End}, true
	}
	return run.fromZero()
}

// isOf reports whether an event may be of a plan.
func isOf(p *plan.Plan, e trace.Event) bool {
	if e.Step < 0 || e.Step >= len(p.Steps) || p.Steps[e.Step].Name != e.Name ||
		p.Streams[p.Steps[e.Step].Stream].Name != e.Stream {
		return false
	}
	do := p.Steps[e.Step].Do
	bytes, _ := do.Moves()
	return e.What == do.What() && e.Bytes == bytes
}

// fromZero is a run that begins at zero.
func (r Run) fromZero() Run {
	first := slices.MinFunc(r, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) }).Start
	for i := range r {
		r[i].Start, r[i].End = r[i].Start-first, r[i].End-first
	}
	return r
}

// median is the run of median length, the shorter of two.
func median(runs []Run) Run {
	if len(runs) == 0 {
		return nil
	}
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int {
		return cmp.Compare(a.length(), b.length())
	})
	return sorted[(len(sorted)-1)/2]
}

// busy is a set of times: spans in order that do not touch, and how long they are
// up to each.
type busy struct {
	spans []Span
	until []time.Duration
}

// union is when any of the spans is.
func union(spans []Span) busy {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	var b busy
	for _, s := range spans {
		last := len(b.spans) - 1
		if last >= 0 && s.Start <= b.spans[last].End {
			b.spans[last].End = max(b.spans[last].End, s.End)
			continue
		}
		b.spans = append(b.spans, s)
	}
	b.until = make([]time.Duration, len(b.spans)+1)
	for i, s := range b.spans {
		b.until[i+1] = b.until[i] + s.length()
	}
	return b
}

func (b busy) length() time.Duration { return b.until[len(b.spans)] }

// before is how much of the set is before a time.
func (b busy) before(t time.Duration) time.Duration {
	i := sort.Search(len(b.spans), func(i int) bool { return b.spans[i].End > t })
	if i == len(b.spans) {
		return b.until[i]
	}
	return b.until[i] + max(0, t-b.spans[i].Start)
}

// within is how much of a span is in the set.
func (b busy) within(s Span) time.Duration { return b.before(s.End) - b.before(s.Start) }

// both is how long two sets are at the same time.
func (b busy) both(c busy) time.Duration {
	var total time.Duration
	for _, s := range b.spans {
		total += c.within(s)
	}
	return total
}

// milliseconds is a time as reports have it.
func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// Simulated is a simulation's times as a run.
func Simulated(t simulate.Timeline) Run {
	out := make(Run, len(t.Start))
	for i := range out {
		out[i] = Span{t.Start[i], t.End[i]}
	}
	return out
}

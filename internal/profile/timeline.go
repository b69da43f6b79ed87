package profile

import (
	"cmp"
	"slices"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// lives are when slots have their bytes: from the first step that touches them to
// the last; from the beginning if they are bound, to the end if they are fetched.
func lives(p *plan.Plan, run Run) []Span {
	out := make([]Span, len(p.Slots))
	for i := range out {
		out[i] = Span{-1, 0}
	}
	for i, s := range p.Steps {
		plan.Each(s.Do, func(id plan.SlotID, _ bool) {
			if out[id].Start < 0 {
				out[id].Start = run[i].Start
			}
			out[id].Start = min(out[id].Start, run[i].Start)
			out[id].End = max(out[id].End, run[i].End)
		})
	}
	for _, b := range p.Feeds {
		out[b.Slot].Start = 0
	}
	for _, f := range p.Fetches {
		out[f.Ref.Slot].End = run.length()
	}
	for i, s := range p.Slots {
		if s.Fixed {
			out[i] = Span{0, run.length()}
		}
		out[i].Start = max(0, out[i].Start)
	}
	return out
}

// change is bytes that come, or go if there are fewer than none.
type change struct {
	at       time.Duration
	bytes    int64
	category Category
}

// changes are what comes and goes in a space, in order; at the same time, what
// goes is first.
func (a *analysis) changes(in space.ID, run Run) []change {
	var out []change
	live := lives(a.plan, run)
	for id := range a.plan.Slots {
		s := &a.plan.Slots[id]
		if s.Space != in || s.Bytes == 0 {
			continue
		}
		a.each(plan.SlotID(id), run, live[id], func(c Category, from, to time.Duration) {
			out = append(out, change{from, s.Bytes, c}, change{to, -s.Bytes, c})
		})
	}
	slices.SortStableFunc(out, func(x, y change) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(min(0, x.bytes), min(0, y.bytes)))
	})
	return out
}

// each calls f with everything that a slot holds, one after the other, and from when
// to when.
func (a *analysis) each(id plan.SlotID, run Run, life Span, f func(c Category, from,
	to time.Duration)) {
	from := life.Start
	for k, h := range a.held[id] {
		to := life.End
		if k+1 < len(a.held[id]) {
			to = max(from, min(to, run[a.held[id][k+1].from].Start))
		}
		f(h.category, from, to)
		from = to
	}
}

// points is how many parts a timeline has.
const points = 240

// timeline is a space over a run.
func (a *analysis) timeline(in space.ID, run Run) *Timeline {
	if run == nil {
		return nil
	}
	t := &Timeline{StepMS: milliseconds(run.length()), Bytes: make([]int64, points),
		Categories: map[Category][]int64{}}
	for _, c := range Categories() {
		t.Categories[c] = make([]int64, points)
	}
	width := max(1, (run.length()+points-1)/points)
	var now [categories]int64
	var total int64
	filled := 0 // parts up to here are as full as the level so far, or fuller
	for _, c := range a.changes(in, run) {
		part := min(points-1, int(c.at/width))
		for ; filled < part; filled++ {
			t.raise(filled+1, total, &now)
		}
		now[c.category] += c.bytes
		total += c.bytes
		t.raise(part, total, &now)
	}
	for _, c := range Categories() {
		if !slices.ContainsFunc(t.Categories[c], func(b int64) bool { return b > 0 }) {
			delete(t.Categories, c)
		}
	}
	return t
}

// raise makes a part as full as a level, if it is less so.
func (t *Timeline) raise(part int, total int64, now *[categories]int64) {
	if total <= t.Bytes[part] {
		return
	}
	t.Bytes[part] = total
	for c, bytes := range now {
		t.Categories[Category(c)][part] = bytes
	}
}

// levels are the bytes of a space at every time at which they change.
func (a *analysis) levels(in space.ID, run Run) []trace.Point {
	var out []trace.Point
	var total int64
	for _, c := range a.changes(in, run) {
		total += c.bytes
		if last := len(out) - 1; last >= 0 && out[last].At == c.at {
			out[last].Bytes = total
			continue
		}
		out = append(out, trace.Point{At: c.at, Bytes: total})
	}
	return out
}

package profile

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
)

// spans draws spans of a short time.
func spans(t *rapid.T, name string) []Span {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Span {
		from := rapid.IntRange(0, 30).Draw(t, "from")
		return Span{time.Duration(from), time.Duration(from + rapid.IntRange(0, 8).Draw(t, "for"))}
	}), 0, 8).Draw(t, name)
}

// during reports whether any span is at a moment.
func during(spans []Span, at int) bool {
	return slices.ContainsFunc(spans, func(s Span) bool {
		return s.Start <= time.Duration(at) && time.Duration(at) < s.End
	})
}

// TestUnion: how long sets of times are, counted moment by moment.
func TestUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := spans(t, "a"), spans(t, "b")
		length, both := time.Duration(0), time.Duration(0)
		for at := range 40 {
			if during(a, at) {
				length++
				if during(b, at) {
					both++
				}
			}
		}
		x, y := union(a), union(b)
		if x.length() != length || x.both(y) != both || y.both(x) != both {
			t.Errorf("%v and %v: %d and %d at once, want %d and %d", a, b, x.length(), x.both(y),
				length, both)
		}
		for _, s := range b {
			if got, want := x.within(s), union([]Span{s}).both(x); got != want {
				t.Errorf("%v of %v: %d, want %d", s, a, got, want)
			}
		}
	})
}

// randomRun draws a plan of a random graph, and a run that its waits and streams
// allow.
func randomRun(t *rapid.T) (*plan.Plan, *graph.Graph, Run) {
	m := randgraph.Exchanging(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 12)
	target := planner.Target{Name: "t", Fetches: m.Fetches, Updates: m.Updates}
	r, err := planner.Compile(t.Context(), m.Graph, target, planner.Options{Partition: 3,
		Lookahead: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan, m.Graph, anyRun(t, r.Plan)
}

// anyRun draws a run that a plan's waits and streams allow.
func anyRun(t *rapid.T, p *plan.Plan) Run {
	run := make(Run, len(p.Steps))
	idle := make([]time.Duration, len(p.Streams))
	for i, s := range p.Steps {
		start := idle[s.Stream]
		for _, w := range s.Wait {
			start = max(start, run[w].End)
		}
		took := time.Duration(rapid.IntRange(0, 9).Draw(t, "took"))
		run[i] = Span{start, start + took}
		idle[s.Stream] = run[i].End
	}
	return run
}

// TestTimelineBrute: what a timeline says of a space is the most that is live at
// any moment of each part, and never more than the peak.
func TestTimelineBrute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, g, run := randomRun(t)
		x, err := New(Input{Plan: p, Graph: g, Predicted: run})
		if err != nil {
			t.Fatal(err)
		}
		live := lives(p, run)
		for id := range p.Spaces {
			got := x.Report.Spaces[id].Predicted
			want := make([]int64, points)
			width := max(1, (run.length()+points-1)/points)
			for at := range run.length() {
				var total int64
				for i, s := range p.Slots {
					if int(s.Space) == id && live[i].Start <= at && at < live[i].End {
						total += s.Bytes
					}
				}
				want[at/width] = max(want[at/width], total)
			}
			for i := range want {
				// at the end of the run, what lives no time counts as well
				if got.Bytes[i] < want[i] || got.Bytes[i] > p.Spaces[id].Bytes {
					t.Errorf("space %d, part %d: %d, want %d", id, i, got.Bytes[i], want[i])
				}
			}
		}
	})
}

// TestHoldings: whatever a launch reads, its slots hold by the replay.
func TestHoldings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, g, _ := randomRun(t)
		held := replay(p, g)
		for i, s := range p.Steps {
			do, ok := s.Do.(plan.Launch)
			if !ok {
				continue
			}
			for k, r := range do.In {
				want, _ := g.Node(s.Node).In[k].Resolve()
				// an operation that works in place has put its result there
				if slices.Contains(do.Out, r) {
					continue
				}
				if h := held.at(r.Slot, i); h.value != want {
					t.Errorf("step %d reads %v from slot %d, which holds %v", i, want, r.Slot,
						h.value)
				}
			}
		}
	})
}

// eventsOf is what a device tells of a run that begins at a time.
func eventsOf(p *plan.Plan, run Run, start time.Duration) []trace.Event {
	var out []trace.Event
	for i, s := range p.Steps {
		bytes, _ := s.Do.Moves()
		e := trace.Event{Stream: p.Streams[s.Stream].Name, Name: s.Name, What: s.Do.What(),
			Step: i, Bytes: bytes, Start: start + run[i].Start, End: start + run[i].End}
		out = append(out, e)
	}
	return out
}

// TestRuns: the runs of a plan are found among those of another, in any order of
// the events of a run, up to one that is incomplete.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _, run := randomRun(t)
		other, _, otherRun := randomRun(t)
		if len(p.Steps) == 0 || other.Digest == p.Digest {
			return
		}
		var events []trace.Event
		now, want := time.Duration(5), 0
		for _, ours := range rapid.SliceOfN(rapid.Bool(), 0, 4).Draw(t, "ours") {
			next, took := eventsOf(other, otherRun, now), otherRun.length()
			if ours {
				next, took = eventsOf(p, run, now), run.length()
				want++
			}
			slices.SortStableFunc(next, func(a, b trace.Event) int { return int(a.End - b.End) })
			events = append(events, next...)
			now += took
		}
		events = append(events, eventsOf(p, run, now)[1:]...)
		runs := Runs(p, events, other)
		for _, r := range runs {
			if !slices.Equal(r, slices.Clone(run).fromZero()) {
				t.Errorf("run %v, want %v", r, run)
			}
		}
		if len(runs) != want {
			t.Errorf("%d runs, want %d", len(runs), want)
		}
	})
}

// TestCategories: every word is read back, and nothing else.
func TestCategories(t *testing.T) {
	for _, c := range Categories() {
		text, err := c.MarshalText()
		var back Category
		if err != nil || back.UnmarshalText(text) != nil || back != c {
			t.Errorf("%v is %s, %v, and read back as %v", c, text, err, back)
		}
	}
	var c Category
	if c.UnmarshalText([]byte("socks")) == nil {
		t.Error("socks are a category")
	}
	if _, err := categories.MarshalText(); err == nil {
		t.Error("the number of categories is one")
	}
}

// TestHideable: what a copy could be hidden for is never less than what it is, nor more than it
// takes; and a copy that has the whole time between what makes its bytes and what reads them
// is hidden as much as it can be.
func TestHideable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, g, run := randomRun(t)
		x, err := New(Input{Plan: p, Graph: g, Predicted: run})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range x.Report.Copies {
			if w := c.Predicted; w.HiddenMS > w.HideableMS || w.HideableMS > w.MS {
				t.Errorf("%s: %+v", c.Reason, *w)
			}
		}
		cost, _ := x.costs()
		for i, w := range x.windows(run) {
			do, ok := p.Steps[i].Do.(plan.Copy)
			if !ok {
				continue
			}
			if s := run[i]; s.Start < w.Start || w.End < s.End {
				t.Errorf("copy %d, done in %v, has only %v", i, s, w)
			}
			want := Span{madeAt(p, run, i, do.Src.Slot), neededAt(p, run, i, do.Dst.Slot)}
			if want != w {
				t.Errorf("copy %d has %v, want %v", i, w, want)
			}
			if got, most := cost.hideable(i, w), cost.computing.within(w); got != min(most,
				run[i].length()) {
				t.Errorf("copy %d: %v of %v", i, got, most)
			}
		}
	})
}

// madeAt is when a slot's bytes are made that a step reads, looked for step by step, back
// through other copies.
func madeAt(p *plan.Plan, run Run, before int, slot plan.SlotID) time.Duration {
	for j := before - 1; j >= 0; j-- {
		if !touches(p.Steps[j].Do, slot, true) {
			continue
		}
		if do, ok := p.Steps[j].Do.(plan.Copy); ok {
			return madeAt(p, run, j, do.Src.Slot) + run[j].length()
		}
		return run[j].End
	}
	return 0
}

// neededAt is when the bytes that a step writes to a slot are read.
func neededAt(p *plan.Plan, run Run, after int, slot plan.SlotID) time.Duration {
	for j := after + 1; j < len(run); j++ {
		if touches(p.Steps[j].Do, slot, false) {
			if do, ok := p.Steps[j].Do.(plan.Copy); ok {
				return neededAt(p, run, j, do.Dst.Slot) - run[j].length()
			}
			return run[j].Start
		}
		if touches(p.Steps[j].Do, slot, true) {
			break
		}
	}
	return run.length()
}

// touches reports whether an action writes a slot, or reads it.
func touches(do plan.Action, slot plan.SlotID, writes bool) (found bool) {
	if do, ok := do.(plan.Launch); ok && !writes { // of what it mutates, Each says only that
		return slices.ContainsFunc(do.In, func(r plan.Ref) bool { return r.Slot == slot })
	}
	plan.Each(do, func(id plan.SlotID, write bool) {
		found = found || id == slot && write == writes
	})
	return found
}

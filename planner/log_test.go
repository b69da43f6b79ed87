package planner

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/candidates"
	"github.com/gomem/gomem/planner/machine"
)

// TestLogTellsTheTruth: whatever the graph, the policy and the budget, a log changes no plan; it
// has one candidate taken a target, with the plan's peaks and its time; and of those that lost,
// what is over a budget by its numbers says so, and what is slower has a time.
func TestLogTellsTheTruth(t *testing.T) {
	draws(t, 1, 30, func(t *rapid.T) {
		m := randgraph.Random(func(n int) int {
			return rapid.IntRange(0, n-1).Draw(t, "pick")
		}, 15)
		targets := []Target{training(m)}
		by, err := machine.Named(rapid.SampledFrom(machine.Builtin()).Draw(t, "machine"))
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Policy: rapid.SampledFrom(Policies()).Draw(t, "policy"), Machine: by,
			Effort: 10}
		least, most := span(t, m.Graph, o, targets)
		o.DeviceBytes = rapid.Int64Range(max(1, least-least/4), max(least, most)).Draw(t, "budget")
		var log Log
		p, err := Plan(WithLog(t.Context(), &log), m.Graph, o, targets...)
		q, unlogged := Plan(t.Context(), m.Graph, o, targets...)
		if (err == nil) != (unlogged == nil) {
			t.Fatalf("with a log: %v; without: %v", err, unlogged)
		}
		if err == nil && text(t, p.Results[0].Plan) != text(t, q.Results[0].Plan) {
			t.Fatal("a log changes the plan")
		}
		taken := 0
		for _, e := range log.Entries() {
			if e.Fate == candidates.Taken {
				taken++
				matches(t, e, p)
				continue
			}
			lost(t, e, o)
		}
		if want := 0; err == nil {
			if want = len(targets); taken != want {
				t.Fatalf("%d candidates are taken, want %d:\n%v", taken, want, log.Entries())
			}
		} else if taken > 0 || len(log.Entries()) == 0 {
			t.Fatalf("refused, and %d are taken of %d", taken, len(log.Entries()))
		}
	})
}

// matches fails unless an entry is that of the first target's plan.
func matches(t rapid.TB, e candidates.Entry, p *Planned) {
	t.Helper()
	r := p.Results[0]
	if e.Candidate == "" || !strings.HasPrefix(r.Plan.Title, strings.TrimSuffix(e.Candidate,
		" rehomed")) {
		t.Fatalf("%s is taken, and the plan is %s", e.Candidate, r.Plan.Title)
	}
	for id, s := range r.Plan.Spaces {
		if e.Need[id] != s.Bytes {
			t.Fatalf("%d bytes of %s are taken, the log says %d", s.Bytes, space.ID(id), e.Need[id])
		}
	}
	if e.Step != r.Step || !e.Packed || !e.Timed {
		t.Fatalf("a step takes %s: %s", r.Step, e)
	}
}

// lost fails unless an entry of a candidate that lost says why.
func lost(t rapid.TB, e candidates.Entry, o Options) {
	t.Helper()
	over := strings.Contains(e.Fate, "over the budget by")
	if over != (e.Need[space.Device] > o.DeviceBytes) {
		t.Fatalf("in %d bytes of the device: %s", o.DeviceBytes, e)
	}
	if strings.Contains(e.Fate, "no faster than") && (e.Step == 0 || e.Timed) {
		t.Fatalf("slower, and no time is said: %s", e)
	}
}

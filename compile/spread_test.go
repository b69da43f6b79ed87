package compile

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
)

// TestSpread: whatever a rival draws, spread addresses keep to the budgets, the step takes no
// longer than in the lowest packing, and the plan is a good one; in some it takes less.
func TestSpread(t *testing.T) {
	found, faster := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Synthetic(rapid.IntRange(40, 200).Draw(t, "nodes"))
		o := Options{Policy: Auto, Effort: 1}
		least, most := span(t, m.Graph, o, []Target{training(m)})
		o.DeviceBytes = rapid.Int64Range(least, 2*most).Draw(t, "budget")
		s, err := newSearch(t.Context(), m.Graph, o, []Target{training(m)})
		if err != nil {
			t.Fatal(err)
		}
		j, list := s.jobs[0], rapid.SampledFrom(s.rivals()).Draw(t, "rival")
		w := rapid.SampledFrom(list).Draw(t, "rung")
		tight, err := j.try(t.Context(), w, never)
		if err != nil {
			t.Fatal(err)
		}
		f, err := j.draw(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		spread := j.judge(f, never-1)
		if spread == nil {
			if tight != nil {
				t.Fatalf("%s is refused", title(w.options, w.Rung))
			}
			return
		}
		k := spread.sketch
		if !k.need.within(budgets(s.options)) || spread.time != k.time(j.prices) ||
			tight != nil && spread.time > tight.time {
			t.Fatalf("%s: needs %d of %d, %s; the lowest %v", title(w.options, w.Rung),
				k.need, budgets(s.options), spread.time, tight)
		}
		found++
		if tight != nil && spread.time < tight.time {
			faster++
		}
		p := k.lower(spread.program, spread.title, spread.options)
		addWaits(p)
		if err := plan.Verify(p, j.graph, j.target.Fetches, j.target.Updates); err != nil {
			t.Fatal(err)
		}
	})
	if faster == 0 || faster == found {
		t.Errorf("%d of %d are faster than the lowest", faster, found)
	}
	t.Logf("%d of %d are faster than the lowest", faster, found)
}

// TestIdeal: where a rival takes hardly more than its operations, that is the plan, and nothing
// is searched; no plan takes less than they do.
func TestIdeal(t *testing.T) {
	m := randgraph.Synthetic(1000)
	o := Options{Policy: Auto}
	least, most := span(t, m.Graph, o, []Target{training(m)})
	for _, budget := range []int64{least, (least + most) / 2} {
		o.DeviceBytes = budget
		s, err := newSearch(t.Context(), m.Graph, o, []Target{training(m)})
		if err != nil {
			t.Fatal(err)
		}
		plans, err := s.ideal()
		if err != nil || (plans == nil) != (budget == least) {
			t.Fatalf("within %d: %v, %v", budget, plans, err)
		}
		r, err := Compile(t.Context(), m.Graph, training(m), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Step < s.onDevice() || plans != nil && r.Order != "" {
			t.Errorf("within %d: %s in order %q, operations take %s", budget, r.Step, r.Order,
				s.onDevice())
		}
	}
}

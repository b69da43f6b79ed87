package candidates

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
)

// TestSpread: whatever a rival draws, spread addresses keep to the budgets, the step takes no
// longer than in the lowest packing, and the plan is a good one.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Synthetic(rapid.IntRange(40, 200).Draw(t, "nodes"))
		o := Options{Policy: Auto, Effort: 1}
		least, most := span(t, m.Graph, o, []Target{training(m)})
		o.DeviceBytes = rapid.Int64Range(least, 2*most).Draw(t, "budget")
		s, err := New(t.Context(), m.Graph, o, []Target{training(m)})
		if err != nil {
			t.Fatal(err)
		}
		j, list := s.each[0], rapid.SampledFrom(s.rivals()).Draw(t, "rival")
		w := rapid.SampledFrom(list).Draw(t, "tuning")
		tight, err := j.try(t.Context(), w, Never)
		if err != nil {
			t.Fatal(err)
		}
		f, err := j.sketches.draw(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		spread := j.judge(f, Never-1)
		if spread == nil {
			if tight != nil {
				t.Fatalf("%s is refused", w.title())
			}
			return
		}
		k := spread.sketch
		if !k.Need.Within(s.Options.Budgets()) || spread.time != k.Time(j.sketches.prices) ||
			tight != nil && spread.time > tight.time {
			t.Fatalf("%s: needs %d of %d, %s; the lowest %v", w.title(),
				k.Need, s.Options.Budgets(), spread.time, tight)
		}
		p := k.Plan(spread.program, spread.title, spread.options.Budgets())
		lower.AddWaits(p)
		of := j.sketches
		if err := plan.Verify(p, of.graph, of.target.Fetches, of.target.Updates); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSpreadIsFaster: with twice the memory that a rival's plan takes, none is slower than in its
// lowest packing, and most take less time, since addresses are left alone for a while.
func TestSpreadIsFaster(t *testing.T) {
	m := randgraph.Synthetic(200)
	o := Options{Policy: Auto}
	_, o.DeviceBytes = span(t, m.Graph, o, []Target{training(m)})
	s, err := New(t.Context(), m.Graph, o, []Target{training(m)})
	if err != nil {
		t.Fatal(err)
	}
	j, all, faster := s.each[0], 0, 0
	for _, candidates := range s.rivals() {
		w := candidates[0]
		w.options.DeviceBytes = math.MaxInt64
		tight, err := j.try(t.Context(), w, Never)
		if err != nil {
			t.Fatal(err)
		}
		w.options.DeviceBytes = 2 * tight.sketch.Need[space.Device]
		f, err := j.sketches.draw(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		switch spread := j.judge(f, Never-1); {
		case spread == nil || spread.time > tight.time:
			t.Fatalf("%s: %v, in the lowest packing %s", w.title(), spread,
				tight.time)
		case spread.time < tight.time:
			faster++
		}
		all++
	}
	if faster <= all/2 {
		t.Errorf("%d of %d are faster than the lowest", faster, all)
	}
}

// TestIdeal: where a rival takes hardly more than its operations, that is the plan, and nothing
// is searched; no plan takes less than they do.
func TestIdeal(t *testing.T) {
	m := randgraph.Synthetic(1000)
	o := Options{Policy: Auto, Effort: 200}
	least, most := span(t, m.Graph, o, []Target{training(m)})
	for _, budget := range []int64{least, (least + most) / 2} {
		o.DeviceBytes = budget
		s, err := New(t.Context(), m.Graph, o, []Target{training(m)})
		if err != nil {
			t.Fatal(err)
		}
		plans, err := s.ideal()
		if err != nil || (plans == nil) != (budget == least) {
			t.Fatalf("within %d: %v, %v", budget, plans, err)
		}
		r := compiled(t, m.Graph, training(m), o)
		if r.Step < s.onDevice() || plans != nil && r.Order != "" {
			t.Errorf("within %d: %s in order %q, operations take %s", budget, r.Step, r.Order,
				s.onDevice())
		}
	}
}

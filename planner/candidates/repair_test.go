package candidates

import (
	"testing"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
)

// TestCondense: a plan that is packed loosely is packed once more, and then it is right; unless
// its steps would wait for that longer than is of no interest.
func TestCondense(t *testing.T) {
	m := randgraph.Synthetic(300)
	v := compiled(t, m.Graph, training(m), Options{Policy: Vanilla})
	o := Options{Policy: Auto, Effort: 50, DeviceBytes: v.Plan.Spaces[space.Device].Bytes / 2}
	s, err := New(t.Context(), m.Graph, o, []Target{training(m)})
	if err != nil {
		t.Fatal(err)
	}
	j := s.each[0]
	problems, err := j.solver.problems(t.Context(), s.Options)
	if err != nil {
		t.Fatal(err)
	}
	f, err := j.solver.solve(t.Context(), problems, s.Options, nil)
	if f == nil || err != nil {
		t.Fatalf("no plan: %v", err)
	}
	k := f.sketch
	free := Options{}
	free.EnsureDefaults()
	if !k.Ring(free.Budgets(), 3) {
		t.Fatal("nothing is spread")
	}
	need := k.Need
	f.time = 1
	if f.condense(j.sketches.prices); f.sketch != k || k.Need != need {
		t.Error("a step waits longer")
	}
	f.time, f.options.DeviceBytes = Never, need[space.Device]
	f.condense(j.sketches.prices)
	k = f.sketch
	if k.Need[space.Device] > k.Load[space.Device]*21/20 || f.time != k.Time(j.sketches.prices) {
		t.Errorf("%d bytes are packed into %d, in %s", k.Load[space.Device], k.Need[space.Device],
			f.time)
	}
	if _, err := j.result(f); err != nil {
		t.Error(err)
	}
}

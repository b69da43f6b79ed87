package candidates

import (
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
)

// TestPlannerCopiesLittle: without recomputing, the planner's plans stage every weight at
// most twice, for the forward and the backward pass, but for those that stay; and what
// they swap out is no more than what must be absent at the peak, by five percent. (What
// takes its place because it is faster, a rival's plan, may copy more.)
func TestPlannerCopiesLittle(t *testing.T) {
	names := []string{"deepspeech"}
	if longtest.Enabled() {
		names = []string{"resnet", "transformer", "deepspeech"}
	}
	m, err := machine.Named(machine.TitanX)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		g, targets := modelTargets(t, name, "s64")
		o := Options{Policy: Auto, Machine: m, Model: name, NoRecompute: true,
			Effort: longtest.Count(150, 0)}
		_, most := span(t, g, Options{Policy: Vanilla, Machine: m, NoFusion: true}, targets[:1])
		for _, percent := range []int64{50, 35, 20}[:longtest.Count(2, 3)] {
			o.DeviceBytes = most * percent / 100
			s, err := New(t.Context(), g, o, targets[:1])
			if err != nil {
				t.Fatal(err)
			}
			plans, err := s.fastest()
			if err != nil {
				t.Fatal(err)
			}
			if plans == nil {
				continue // packing lost too much: another's plan is taken
			}
			checkTraffic(t, name, s.each[0], plans[0])
		}
	}
}

// checkTraffic holds what a plan copies against the floors.
func checkTraffic(t *testing.T, name string, j *targetSearch, f *Drawn) {
	t.Helper()
	p := f.sketch.Plan(f.program, f.title, f.options.Budgets())
	var weights, here int64
	for _, b := range p.Variables {
		if j.sketches.graph.Node(b.Node).State {
			continue
		}
		weights += p.Slots[b.Slot].Bytes
		if p.Slots[b.Slot].Space == space.Device {
			here += p.Slots[b.Slot].Bytes
		}
	}
	all := program.New(j.sketches.graph, j.sketches.target.Fetches, j.sketches.target.Updates)
	if _, err := program.Run(t.Context(), all, []program.Pass{program.DeadCode(),
		order.Creation()}); err != nil {
		t.Fatal(err)
	}
	absent := order.Peak(all) - f.options.DeviceBytes
	traffic := p.Traffic()
	if floor := 2*weights - here; traffic[space.Stage] > floor+floor/100 {
		t.Errorf("%s in %d bytes stages %d, twice the weights that are streamed are %d", name,
			f.options.DeviceBytes, traffic[space.Stage], floor)
	}
	if out := traffic[space.SwapOut]; out > absent+absent/20 {
		t.Errorf("%s in %d bytes swaps %d out, at the peak %d are too many", name,
			f.options.DeviceBytes, out, absent)
	}
}

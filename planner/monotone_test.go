package planner

import (
	"testing"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// tolerance is by what part a larger budget may be slower: the search is a heuristic,
// and a budget more is another place to start from.
const tolerance = 50

// TestLargerBudgetsAreFaster: on a ladder of budgets no plan needs more than its own,
// and no step of a model is notably slower than in a smaller one, vanilla's peak included.
func TestLargerBudgetsAreFaster(t *testing.T) {
	longtest.Skip(t)
	names, tunings := []string{"resnet", "deepspeech"}, int64(longtest.Count(4, 32))
	if longtest.Enabled() {
		names = append(names, "transformer", "moe", "wgan")
	}
	for _, name := range names {
		g, targets := modelTargets(t, name, "s512")
		for _, prices := range []string{machine.TitanX, machine.H200}[:longtest.Count(1, 2)] {
			m, err := machine.Named(prices)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Policy: Auto, Machine: m, Model: name, Effort: longtest.Count(40, 0)}
			least, most := span(t, g, o, targets)
			fastest := machine.Longest
			for i := range tunings {
				o.DeviceBytes = least + (most-least)*i/(tunings-1)
				p, err := Plan(t.Context(), g, o, targets...)
				if err != nil {
					t.Fatal(err)
				}
				if p.Peak(space.Device) > o.DeviceBytes {
					t.Errorf("%s takes %d bytes of %d", name, p.Peak(space.Device), o.DeviceBytes)
				}
				took := total(p.Results)
				if took > fastest+fastest/tolerance {
					t.Errorf("%s on %s takes %s in %d bytes, %s in less", name, prices, took,
						o.DeviceBytes, fastest)
				}
				fastest = min(fastest, took)
			}
		}
	}
}

// relaxed reports whether plans give up nothing: they copy what is fed and fetched, and
// execute every operation once.
func relaxed(p *Planned) bool {
	for _, r := range p.Results {
		t := r.Plan.Traffic()
		if t.In()+t.Out() > t[space.Feed]+t[space.Result] || reruns(r.Plan) {
			return false
		}
	}
	return true
}

// reruns reports whether a plan executes a node more than once.
func reruns(p *plan.Plan) bool {
	seen := map[graph.NodeID]bool{}
	for _, s := range p.Steps {
		if _, ok := s.Do.(plan.Launch); ok {
			if seen[s.Node] {
				return true
			}
			seen[s.Node] = true
		}
	}
	return false
}

// TestFasterWhereVanillaFits: where the host is known to compute beside the device, a budget that
// has room for everything is no reason to have everything on the device.
func TestFasterWhereVanillaFits(t *testing.T) {
	longtest.Skip(t)
	g, targets := modelTargets(t, "transformer", "s64")
	m, err := machine.Named(machine.TitanX)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Policy: Vanilla, Machine: m}
	vanilla, err := Plan(t.Context(), g, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	o.Policy, o.DeviceBytes = Auto, vanilla.Peak(space.Device)
	p, err := Plan(t.Context(), g, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	if took, most := total(p.Results), total(vanilla.Results); took > most-most/50 {
		t.Errorf("a step takes %s, vanilla's %s", took, most)
	}
}

// TestAutoIsVanillaInVanillasBudget where it is not known that the host computes beside the device.
func TestAutoIsVanillaInVanillasBudget(t *testing.T) {
	g, targets := modelTargets(t, "deepspeech", "s512")
	_, most := span(t, g, Options{Policy: Vanilla}, targets)
	times := map[Policy]time.Duration{}
	for _, policy := range []Policy{Vanilla, Auto} {
		p, err := Plan(t.Context(), g, Options{Policy: policy, DeviceBytes: most}, targets...)
		if err != nil {
			t.Fatal(err)
		}
		if times[policy] = total(p.Results); !relaxed(p) {
			t.Errorf("%s copies in %d bytes", policy, most)
		}
	}
	if times[Auto] != times[Vanilla] {
		t.Errorf("steps take %v", times)
	}
}

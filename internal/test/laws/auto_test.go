package laws_test

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/train"
)

// deeds counts the plans that do what the planner can do. A test of its plans that
// does without one of them proves little.
type deeds struct {
	mu                                       sync.Mutex
	plans                                    int
	swapped, recomputed, written, kept, away int
}

// count adds what the plans of a session do: values that are swapped or recomputed,
// variables that are written back, kept on the device although others are not, and on
// the host.
func (d *deeds) count(p *gomem.Planned) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range p.Results {
		d.plans++
		if r.Plan.Traffic()[space.SwapOut] > 0 {
			d.swapped++
		}
		if reruns(r.Plan) {
			d.recomputed++
		}
		if r.Plan.Traffic()[space.WriteBack] > 0 {
			d.written++
		}
		here := 0
		for _, b := range r.Plan.Variables {
			if r.Plan.Slots[b.Slot].Space == space.Device {
				here++
			}
		}
		switch {
		case here == len(r.Plan.Variables):
		case here > 0:
			d.kept++
			fallthrough
		default:
			d.away++
		}
	}
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

// all reports whether everything occurred.
func (d *deeds) all() bool {
	return min(d.swapped, d.recomputed, d.written, d.kept, d.away) > 0
}

// check demands that everything occurred.
func (d *deeds) check(t *testing.T) {
	t.Helper()
	counts := fmt.Sprintf("%d plans: %d swap, %d recompute, %d write back, %d keep some "+
		"variables, %d have some on the host", d.plans, d.swapped, d.recomputed, d.written, d.kept,
		d.away)
	t.Log(counts)
	if !d.all() {
		t.Errorf("something never occurred in %s", counts)
	}
}

// anyMachine draws a machine: one that is known, or rates from a decade of decades,
// so that small graphs too are swapped on some and recomputed on others.
func anyMachine(t *rapid.T) machine.Machine {
	if i := rapid.IntRange(0, 2*len(machine.Builtin())).Draw(t, "machine"); i == 0 {
		return machine.Default()
	} else if i <= len(machine.Builtin()) {
		p, err := machine.Named(machine.Builtin()[i-1])
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	rate := func(name string) float64 {
		return math.Pow(10, float64(rapid.IntRange(5, 13).Draw(t, name)))
	}
	return &machine.Profile{Name: "drawn",
		Device: machine.Rates{FLOPs: rate("flops"), Bytes: rate("bytes")},
		Host:   machine.Rates{FLOPs: rate("host flops"), Bytes: rate("host bytes")},
		In:     rate("in"), Out: rate("out"), DiskRead: 1e9, DiskWrite: 1e9, ElementBytes: 4}
}

// anyAuto draws options of the planner.
func anyAuto(t *rapid.T) gomem.Options {
	return gomem.Options{
		Policy:      planner.Auto,
		Machine:     anyMachine(t),
		Effort:      rapid.SampledFrom([]int{1, 10, 40, 150}).Draw(t, "effort"),
		Partition:   rapid.SampledFrom([]int{1, 5, 20}).Draw(t, "partition"),
		NoPlacement: rapid.IntRange(0, 9).Draw(t, "placement") == 0,
		NoSwap:      rapid.IntRange(0, 9).Draw(t, "swap") == 0,
		NoRecompute: rapid.IntRange(0, 9).Draw(t, "recompute") == 0,
		NoFusion:    rapid.Bool().Draw(t, "no fusion"),
		Threads:     rapid.IntRange(1, 2).Draw(t, "threads"),
	}
}

// within is a budget of a space between the least and what vanilla takes, often close
// to the least.
func within(t *rapid.T, least, most int64) int64 {
	thousandths := rapid.Int64Range(0, 1000).Draw(t, "budget")
	if most <= least {
		return least
	}
	return least + (most-least)*(thousandths*thousandths)/1_000_000
}

// room is what the targets need at least of the device, and what vanilla takes.
func room(t *rapid.T, g *graph.Graph, o gomem.Options, targets []gomem.Target) (least,
	most int64) {
	least, err := gomem.MinDevice(t.Context(), g, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	o.Policy = planner.Vanilla
	p, err := gomem.Plan(t.Context(), g, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	return least, p.Peak(space.Device)
}

// TestAutoDoesNotAffectResults is the first law for the planner: whatever it swaps,
// recomputes, writes back or keeps on the device, by whichever prices and within
// whichever budget, the bits are those of a plain loop, and every space is used up to
// exactly the predicted byte.
func TestAutoDoesNotAffectResults(t *testing.T) {
	var did deeds
	patient := !testing.Short()
	for i := 0; i < longtest.Count(1, 100) || patient && i < 20 && !did.all(); i++ {
		longtest.Check(t, i, func(t *rapid.T) {
			pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
			m := randgraph.Random(pick, 16)
			want, err := trial.Plain(m)
			if err != nil {
				t.Fatal(err)
			}
			o := anyAuto(t)
			target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
			least, most := room(t, m.Graph, o, []gomem.Target{target})
			for range 2 {
				o.DeviceBytes = within(t, least, most)
				p, err := gomem.Plan(t.Context(), m.Graph, o, target)
				if err != nil {
					t.Fatal(err)
				}
				did.count(p)
				got, err := trial.Trained(m, o)
				if err != nil {
					t.Fatalf("%s: %v", o.Planning(), err)
				}
				if !want.Equal(got) {
					t.Fatalf("%s in %d bytes gives other bits", o.Planning(), o.DeviceBytes)
				}
			}
		})
	}
	if patient {
		did.check(t)
	}
}

// TestAutoTrainsModels: all models at their smallest have vanilla's losses and
// variables, bit for bit, in budgets from little more than the least, on machines where
// copies are cheap and where recomputing is.
func TestAutoTrainsModels(t *testing.T) {
	longtest.Skip(t)
	var did deeds
	someModels(t, func(t *testing.T, m *models.Model) { trainsAlike(t, m, &did) })
	t.Cleanup(func() {
		if longtest.Enabled() {
			did.check(t)
		}
	})
}

// threeMachines are two that are known, and one that recomputes even the smallest values
// rather than to copy them, and updates nothing on the host.
func threeMachines(t *testing.T) []*machine.Profile {
	t.Helper()
	var list []*machine.Profile
	for _, name := range []string{machine.TitanX, machine.H200, machine.TitanX} {
		p, err := machine.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	slow := list[2]
	slow.Name, slow.Device.Launch = "slow links", 0
	slow.In, slow.Out = slow.In/100, slow.Out/100
	slow.Host.FLOPs, slow.Host.Bytes = slow.Host.FLOPs/1000, slow.Host.Bytes/1000
	return list
}

func trainsAlike(t *testing.T, m *models.Model, did *deeds) {
	t.Helper()
	steps, targets := longtest.Count(3, 100), train.Targets(&m.Model)
	o := gomem.Options{Policy: planner.Vanilla, Seed: 3}
	want, err := digest(m, o, steps)
	if err != nil {
		t.Fatal(err)
	}
	p, err := gomem.Plan(t.Context(), m.Graph, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	vanilla := p.Peak(space.Device)
	o.Policy, o.Effort = planner.Auto, longtest.Count(60, 0)
	least, err := gomem.MinDevice(t.Context(), m.Graph, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	for i, budget := range []int64{least + least/10, vanilla / 4, vanilla / 2, vanilla * 3 / 4} {
		for k, profile := range threeMachines(t) {
			if !longtest.Enabled() && i != k {
				continue
			}
			o.Machine, o.DeviceBytes = profile, max(least, budget)
			if got := did.train(t, m, o, steps); got != want {
				t.Errorf("on %s in %d bytes: other bits", profile.Name, o.DeviceBytes)
			}
		}
	}
}

// train plans, counts and trains a model, and digests what comes out.
func (d *deeds) train(t *testing.T, m *models.Model, o gomem.Options, steps int) string {
	t.Helper()
	p, err := gomem.Plan(t.Context(), m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	d.count(p)
	s, err := gomem.Open(p, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := digestOf(s, m, steps)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

package planner

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// absurd draws a machine whose rates are from a byte in thirty years to all that there
// is in an instant.
func absurd(t *rapid.T) *machine.Profile {
	rate := func(name string) float64 {
		return math.Pow(10, float64(rapid.IntRange(-9, 18).Draw(t, name)))
	}
	launch := []float64{0, 1, 1e6, 3.6e12}
	p := &machine.Profile{Name: "absurd",
		Device: machine.Rates{FLOPs: rate("flops"), Bytes: rate("bytes"),
			Launch: rapid.SampledFrom(launch).Draw(t, "launch")},
		Host: machine.Rates{FLOPs: rate("host flops"), Bytes: rate("host bytes"),
			Launch: rapid.SampledFrom(launch).Draw(t, "host launch")},
		In: rate("in"), Out: rate("out"), DiskRead: rate("read"), DiskWrite: rate("write"),
		Latency:      rapid.SampledFrom(launch).Draw(t, "latency"),
		ElementBytes: rapid.SampledFrom([]int64{1, 2, 4, 8}).Draw(t, "element"),
	}
	if rapid.Bool().Draw(t, "achieved") {
		p.Achieved = map[string]float64{"model": rate("achieved")}
	}
	return p
}

// TestAbsurdMachines: whatever things cost, nothing and the longest that anything may
// take among them, budgets from the least up give plans, which take no less than no
// time, and no longer than those of the other policies.
func TestAbsurdMachines(t *testing.T) {
	draws(t, 1, 30, func(t *rapid.T) {
		m := randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
		o := Options{Policy: Auto, Machine: absurd(t), Model: "model",
			Effort: rapid.SampledFrom([]int{1, 30, 100}).Draw(t, "effort")}
		least, most := span(t, m.Graph, o, []Target{training(m)})
		o.DeviceBytes = least + max(0, most-1-least)*rapid.Int64Range(0, 100).Draw(t, "budget")/100
		p, err := Plan(t.Context(), m.Graph, o, training(m))
		if err != nil {
			t.Fatal(err)
		}
		if took := p.Results[0].Step; took < 0 || p.Peak(space.Device) > o.DeviceBytes {
			t.Fatalf("%s and %d bytes of %d", took, p.Peak(space.Device), o.DeviceBytes)
		}
		for _, policy := range []Policy{Vanilla, Thesis} {
			if policy == Thesis && p.vanilla() {
				continue // what fits is not copied, even where that would be faster
			}
			other := o
			other.Policy = policy
			r, err := Plan(t.Context(), m.Graph, other, training(m))
			if err == nil && total(r.Results) < total(p.Results) {
				t.Fatalf("%s in %d bytes of %d to %d; %s takes %s", total(p.Results),
					o.DeviceBytes, least, most, policy, total(r.Results))
			}
		}
	})
}

// TestAbsurdBudgets: a byte, of one memory or both, is refused for what is needed; all
// that there are work.
func TestAbsurdBudgets(t *testing.T) {
	m := randgraph.Synthetic(60)
	for _, b := range []struct{ device, host int64 }{{1, 0}, {0, 1}, {1, 1}, {1, math.MaxInt64},
		{math.MaxInt64, 1}, {63, 63}} {
		o := Options{Policy: Auto, DeviceBytes: b.device, HostBytes: b.host}
		_, err := Plan(t.Context(), m.Graph, o, training(m))
		if e, ok := errors.AsType[*ErrOutOfMemory](err); !ok || e.Need <= e.Budget || e.Op == "" {
			t.Errorf("%+v: %v", b, err)
		}
	}
	for _, effort := range []int{0, 1, math.MaxInt} {
		o := Options{Policy: Auto, DeviceBytes: math.MaxInt64, HostBytes: math.MaxInt64,
			Effort: effort}
		if _, err := Plan(t.Context(), m.Graph, o, training(m)); err != nil {
			t.Error(err)
		}
	}
}

// patience is a context that is cancelled once it has been asked so often.
type patience struct {
	context.Context
	left *int
}

func (p patience) Err() error {
	if *p.left--; *p.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelledInTheMiddle: a search that is called off at any point, whatever its
// effort, ends with the context's error, and does not ask again and again.
func TestCancelledInTheMiddle(t *testing.T) {
	m := randgraph.Synthetic(120)
	targets := []Target{training(m), {Name: "eval", Fetches: m.Fetches}}
	least, most := span(t, m.Graph, Options{Policy: Auto}, targets)
	o := Options{Policy: Auto, DeviceBytes: (least + most) / 2}
	for i, asked := range []int{0, 1, 2, 5, 8, 20, 50, 100, 200, 400, 1000, 3000, 3001} {
		o.Effort = []int{1_000_000_000, math.MaxInt}[i%2]
		left := asked
		_, err := Plan(patience{t.Context(), &left}, m.Graph, o, targets...)
		if !errors.Is(err, context.Canceled) || left < -500 {
			t.Errorf("cancelled after %d questions, asked %d times more: %v", asked, -left, err)
		}
	}
}

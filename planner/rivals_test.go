package planner

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner/machine"
)

// TestNoPartitionIsFaster: whatever the graph, the machine and the budget, neither the
// thesis' policy with any partition size and strategy nor grappler is faster than auto, as
// long as that does not take vanilla's plan; fused or not, with as many streams.
func TestNoPartitionIsFaster(t *testing.T) {
	held := 0
	draws(t, 1, 30, func(t *rapid.T) {
		m := randgraph.Random(func(n int) int {
			return rapid.IntRange(0, n-1).Draw(t, "pick")
		}, 10)
		targets := []Target{training(m)}
		by, err := machine.Named(rapid.SampledFrom(machine.Builtin()).Draw(t, "machine"))
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Policy: Auto, Machine: by, Effort: 10,
			NoFusion: rapid.Bool().Draw(t, "plain"),
			Streams:  rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "streams")}
		least, most := span(t, m.Graph, o, targets)
		o.DeviceBytes = rapid.Int64Range(least, max(least, most-1)).Draw(t, "budget")
		p, err := Plan(t.Context(), m.Graph, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		if p.vanilla() {
			return
		}
		others := []Options{{Policy: Grappler}}
		for range longtest.Count(3, 10) {
			others = append(others, Options{Policy: Thesis,
				Strategy:  rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy"),
				Partition: rapid.IntRange(1, 120).Draw(t, "size")})
		}
		for _, other := range others {
			other.Machine, other.DeviceBytes, other.NoFusion = by, o.DeviceBytes, o.NoFusion
			other.Streams = o.Streams
			took := stepTime(t, m.Graph, other, targets)
			if took > 0 && took < total(p.Results) {
				t.Fatalf("%s takes %s in %d bytes, auto %s", other, took, o.DeviceBytes,
					total(p.Results))
			}
			if took > 0 {
				held++
			}
		}
	})
	if held == 0 {
		t.Error("no other policy had a plan")
	}
}

// TestRivalsOfRefusedGraphs: a budget in which auto is refused the fused graph, of which the
// thesis' policy has a plan that is faster than the planner's of another graph.
func TestRivalsOfRefusedGraphs(t *testing.T) {
	draw := rand.New(rand.NewPCG(2756, 1))
	m := randgraph.Random(draw.IntN, 10)
	by, err := machine.Named(machine.TitanX)
	if err != nil {
		t.Fatal(err)
	}
	targets := []Target{training(m)}
	thesis := Options{Policy: Thesis, Machine: by, DeviceBytes: 780, Strategy: partition.Depth,
		Partition: 3}
	auto := Options{Policy: Auto, Machine: by, DeviceBytes: 780}
	p, err := whole(m.Graph, targets).fuse(everything)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := p.outcome(t.Context(), auto); err != nil || a.plans != nil {
		t.Fatalf("auto is not refused the fused graph: %v", err)
	}
	want, got := stepTime(t, m.Graph, thesis, targets), stepTime(t, m.Graph, auto, targets)
	if want == 0 || got == 0 || got > want {
		t.Errorf("auto takes %s, the thesis' policy %s", got, want)
	}
	if p, err := Plan(t.Context(), m.Graph, thesis, targets...); err != nil ||
		p.Graph.Digest() == m.Graph.Digest() {
		t.Errorf("the thesis' policy does not fuse: %v", err)
	}
}

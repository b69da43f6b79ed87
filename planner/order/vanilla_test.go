package order_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
)

// TestPeakIsThePlans: the peak of an order is the most bytes that slots have at once in
// the plan that keeps everything.
func TestPeakIsThePlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			rapid.SampledFrom([]int{3, 12, 40}).Draw(t, "size"))
		p := program.New(m.Graph, m.Fetches, m.Updates)
		if _, err := program.Run(context.Background(), p, []program.Pass{program.DeadCode(),
			placement.Pass(false), partition.Pass(partition.BreadthFirst, 0)}); err != nil {
			t.Fatal(err)
		}
		r, err := planner.Compile(context.Background(), m.Graph,
			planner.Target{Name: "step", Fetches: m.Fetches, Updates: m.Updates},
			planner.Options{Policy: planner.Vanilla, DeviceBytes: math.MaxInt64,
				HostBytes: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		change := make([]int64, len(r.Plan.Steps)+1)
		for _, s := range r.Plan.Slots {
			if s.Space == space.Device {
				bytes := (s.Bytes + 63) / 64 * 64
				change[s.From] += bytes
				change[s.To+1] -= bytes
			}
		}
		var load, most int64
		for _, c := range change {
			load += c
			most = max(most, load)
		}
		if peak := order.Peak(p); most != peak {
			t.Fatalf("the plan has %d bytes at once, the order %d", most, peak)
		}
	})
}

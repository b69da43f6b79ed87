package bound_test

import (
	"context"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/bound"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/search"
)

// machine takes so many nanoseconds for a byte that is copied, and for one that an
// operation reads or writes.
type machine struct{ in, out, device, host int64 }

func (machine) Name() string    { return "test" }
func (machine) Shared() float64 { return 0 }
func (machine) Kappa() float64  { return 1 }

func (m machine) Time(n *graph.Node, in space.ID) time.Duration {
	if in == space.Host {
		return time.Duration(m.host * n.Cost().Bytes)
	}
	return time.Duration(m.device * n.Cost().Bytes)
}

func (m machine) Copy(from, _ space.ID, bytes int64) time.Duration {
	if from == space.Host {
		return time.Duration(m.in * bytes)
	}
	return time.Duration(m.out * bytes)
}

// TestBelowAuto: what the planner finds is not faster than the bound.
func TestBelowAuto(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			rapid.SampledFrom([]int{3, 12, 40}).Draw(t, "size"))
		p := program.New(g.Graph, g.Fetches, g.Updates)
		ps := rapid.SampledFrom(order.Portfolio()).Draw(t, "order")
		if _, err := program.Run(context.Background(), p, []program.Pass{program.DeadCode(),
			placement.Pass(true), ps}); err != nil {
			t.Fatal(err)
		}
		price := rapid.Int64Range(0, 20)
		m := machine{price.Draw(t, "in"), price.Draw(t, "out"), price.Draw(t, "device"),
			price.Draw(t, "host")}
		b, problem := bound.New(p, m), search.New(p, m)
		for k := range int64(4) {
			budget := b.Least().Bytes * (8 + 4*k) / 8
			d, err := problem.Solve(context.Background(), search.Budget{Device: budget,
				Host: math.MaxInt64 / 2}, search.Options{Effort: 50})
			if err != nil {
				t.Fatal(err)
			}
			if d != nil && d.Time() < b.Time(budget) {
				t.Fatalf("%d bytes: %v, the bound is %v", budget, d.Time(), b.Time(budget))
			}
		}
	})
}

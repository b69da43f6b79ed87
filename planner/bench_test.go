package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
)

// BenchmarkCompile shows how planning grows with the number of nodes, the
// verification of the plan included.
func BenchmarkCompile(b *testing.B) {
	for _, policy := range []Policy{Vanilla, Thesis} {
		for _, nodes := range []int{1_000, 10_000, 70_000, 100_000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", policy, nodes), func(b *testing.B) {
				m := randgraph.Synthetic(nodes)
				t := Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
				for b.Loop() {
					if _, err := Compile(context.Background(), m.Graph, t,
						Options{Policy: policy}); err != nil {
						b.Fatal(err)
					}
				}
				nodes := float64(b.N) * float64(m.Graph.Len())
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/nodes, "ns/node")
			})
		}
	}
}

// BenchmarkVerify is the share of the verification.
func BenchmarkVerify(b *testing.B) {
	m := randgraph.Synthetic(70_000)
	t := Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	r, err := Compile(context.Background(), m.Graph, t, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := plan.Verify(r.Plan, m.Graph, t.Fetches, t.Updates); err != nil {
			b.Fatal(err)
		}
	}
}

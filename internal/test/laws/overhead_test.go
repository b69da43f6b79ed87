package laws_test

import (
	"context"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/planner"
)

// BenchmarkIssue is what the executor costs: kernels that do nothing, so that
// only queues, events and the copies are left.
func BenchmarkIssue(b *testing.B) {
	m := randgraph.Synthetic(6000)
	ctx := context.Background()
	for name, o := range map[string]planner.Options{"vanilla": {Policy: planner.Vanilla},
		"thesis": {}} {
		b.Run(name, func(b *testing.B) {
			s, err := gomem.Compile(ctx, m.Graph, gomem.Options{}.With(o),
				gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			feeds := gomem.Feeds{m.Inputs[0]: gomem.NewTensor(m.Inputs[0].Type())}
			for b.Loop() {
				if _, err := s.Step(ctx, "train", feeds); err != nil {
					b.Fatal(err)
				}
			}
			steps := len(s.Plan("train").Steps)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
		})
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// growth times the planning of graphs that grow in one respect each: what takes
// n log n takes little more than four times as long for four times as much.
func growth(ctx context.Context, w io.Writer) error {
	const n = 20_000
	fmt.Fprintf(w, "\nGraphs in which there is %d and %d times what there is few of in models:\n\n",
		n, 4*n)
	fmt.Fprintln(w, "| shape | nodes | thesis ms | four times | vanilla ms | four times |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, s := range randgraph.Shapes() {
		var plans []func() error
		small, large := s.Build(n), s.Build(4*n)
		for _, policy := range []planner.Policy{planner.Thesis, planner.Vanilla} {
			for _, m := range []*randgraph.Model{small, large} {
				plans = append(plans, func() error {
					_, err := planner.Compile(ctx, m.Graph, planner.Target{Name: "train",
						Fetches: m.Fetches, Updates: m.Updates}, planner.Options{Policy: policy})
					return err
				})
			}
		}
		t, err := interleaved(ctx, 3, plans...)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %d | %s | ×%.1f | %s | ×%.1f |\n", s.Name, large.Graph.Len(),
			ms(t[1]), t[1].Seconds()/t[0].Seconds(), ms(t[3]), t[3].Seconds()/t[2].Seconds())
	}
	return nil
}

// deepest times every stage of planning the deepest ResNet that is built.
func deepest(ctx context.Context, w io.Writer) error {
	c, err := models.NewResNetConfig("base")
	if err != nil {
		return err
	}
	c.Blocks = [4]int{3, 8, 15_986, 3}
	fmt.Fprintln(w, "\nA ResNet of 16,000 blocks, once, with the memory that the process has "+
		"taken by then:")
	fmt.Fprintln(w, "\n| stage | s | GiB |\n|---|---|---|")
	start := time.Now()
	done := func(stage string) {
		var taken runtime.MemStats
		runtime.ReadMemStats(&taken)
		fmt.Fprintf(w, "| %s | %.1f | %.1f |\n", stage, time.Since(start).Seconds(),
			float64(taken.Sys)/(1<<30))
		start = time.Now()
	}
	m, err := models.ResNet(c)
	if err != nil {
		return err
	}
	done(fmt.Sprintf("building %d nodes, gradients included", m.Graph.Len()))
	training := gomem.Training(m.Graph, m.Objectives[0].Loss)
	for _, policy := range []planner.Policy{planner.Thesis, planner.Vanilla} {
		p, err := gomem.Plan(ctx, m.Graph, gomem.Options{Policy: policy}, training)
		if err != nil {
			return err
		}
		done(fmt.Sprintf("%s, %d steps, fusing and verification included", policy,
			len(p.Results[0].Plan.Steps)))
	}
	return nil
}

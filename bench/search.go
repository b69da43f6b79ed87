package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// searches prints what the policy auto takes to plan graphs of every size, in the time of the
// processor: what else runs on the machine hardly matters for that.
func searches(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "The policy `auto` within so much less memory than `vanilla` needs, and a "+
		"draft of it, the first plan of `--plan-time`: seconds of the processor, verification "+
		"included, the median of three, or of more than 20,000 nodes once; and the simulated step "+
		"over `vanilla`'s.")
	fmt.Fprintln(w, "\n| graph | nodes | less memory | plan s | step | draft s | step "+
		"|\n|---|---|---|---|---|---|---|")
	for _, nodes := range []int{1_000, 8_000, 30_000, 70_000} {
		m := randgraph.Synthetic(nodes)
		target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
		if err := timeSearch(ctx, w, "synthetic", m.Graph, target); err != nil {
			return err
		}
	}
	m, err := build("base", 4, nil)
	if err != nil {
		return err
	}
	return timeSearch(ctx, w, "MoE base", m.Graph, gomem.Training(m.Graph, m.Objectives[0].Loss))
}

// timeSearch prints two rows for a graph.
func timeSearch(ctx context.Context, w io.Writer, name string, g *graph.Graph,
	t gomem.Target) error {
	v, err := planner.Compile(ctx, g, t, planner.Options{Policy: planner.Vanilla})
	if err != nil {
		return err
	}
	rounds := 3
	if g.Len() > 20_000 {
		rounds = 1
	}
	for _, less := range []int64{50, 80} {
		o := planner.Options{Policy: planner.Auto,
			DeviceBytes: v.Plan.Spaces[space.Device].Bytes * (100 - less) / 100}
		fmt.Fprintf(w, "| %s | %d | %d %% |", name, g.Len(), less)
		for _, o.Draft = range []bool{false, true} {
			var took []time.Duration
			var r *planner.Result
			for range rounds {
				start := gauge.CPUTime()
				if r, err = planner.Compile(ctx, g, t, o); err != nil {
					return err
				}
				took = append(took, gauge.CPUTime()-start)
			}
			fmt.Fprintf(w, " %.2f | %.3f |", median(took).Seconds(),
				float64(r.Step)/float64(v.Step))
		}
		fmt.Fprintln(w)
	}
	return nil
}

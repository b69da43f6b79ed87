package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// planning times plans, the verification included.
func planning(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "Passes, lowering, packing and verification; nothing is run. The "+
		"smallest-budget column tries every tuning of the ladder.")
	fmt.Fprintln(w, "\n| graph | nodes | steps | plan ms | µs a node | smallest budget ms "+
		"|\n|---|---|---|---|---|---|")
	for _, sparse := range []bool{false, true} {
		m, err := build("base", 4, func(c *models.MoEConfig) { c.Sparse = sparse })
		if err != nil {
			return err
		}
		name := map[bool]string{false: "MoE base, dense", true: "MoE base, sparse"}[sparse]
		for _, size := range []int{20, 200} {
			if err := timePlan(ctx, w, fmt.Sprintf("%s, partitions of %d", name, size), m.Graph,
				gomem.Training(m.Graph, m.Objectives[0].Loss),
				planner.Options{Partition: size}); err != nil {
				return err
			}
		}
		if err := timePlan(ctx, w, name+", vanilla", m.Graph,
			gomem.Training(m.Graph, m.Objectives[0].Loss),
			planner.Options{Policy: planner.Vanilla}); err != nil {
			return err
		}
	}
	for _, nodes := range []int{1_000, 10_000, 30_000, 70_000, 100_000} {
		m := randgraph.Synthetic(nodes)
		target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
		for _, policy := range []planner.Policy{planner.Thesis, planner.Vanilla} {
			if err := timePlan(ctx, w, fmt.Sprintf("synthetic, %s", policy), m.Graph, target,
				planner.Options{Policy: policy}); err != nil {
				return err
			}
		}
	}
	if err := growth(ctx, w); err != nil {
		return err
	}
	return deepest(ctx, w)
}

func timePlan(ctx context.Context, w io.Writer, name string, g *graph.Graph, t gomem.Target,
	o planner.Options) error {
	var steps int
	times, err := interleaved(ctx, 3, func() error {
		r, err := planner.Compile(ctx, g, t, o)
		if err == nil {
			steps = len(r.Plan.Steps)
		}
		return err
	}, func() error {
		_, err := planner.MinDevice(ctx, g, t, o)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "| %s | %d | %d | %s | %.1f | %s |\n", name, g.Len(), steps, ms(times[0]),
		times[0].Seconds()*1e6/float64(g.Len()), ms(times[1]))
	return nil
}

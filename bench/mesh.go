package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// meshes prints what device shapes come to: the smallest device budget of a training step,
// and what the plan within it takes of the host and copies.
func meshes(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "Policy thesis, planned, not run. Neediest is what a single operation has "+
		"at once. Host and copies\nare those of the plan in the smallest budget of the "+
		"device.\n\n| model | mesh | partitions of | neediest MiB | smallest MiB | host MiB | "+
		"copied in MiB | nodes |\n|---|---|---:|---:|---:|---:|---:|---:|")
	for _, c := range []struct {
		name   string
		meshes []string
		build  func() (*models.Model, error)
	}{
		{"MoE base", []string{"", "batch:2", "batch:4", "experts:4", "batch:2,experts:2"},
			func() (*models.Model, error) {
				return build("base", 8, func(*models.MoEConfig) {})
			}},
		{"MoE s64", []string{"", "batch:2", "batch:4", "experts:2", "experts:4"},
			func() (*models.Model, error) {
				return build("s64", 8, func(*models.MoEConfig) {})
			}},
		{"Transformer base", []string{"", "batch:2", "batch:4", "batch:8"},
			func() (*models.Model, error) {
				c, err := models.NewTransformerConfig("base")
				if err != nil {
					return nil, err
				}
				return models.Transformer(c)
			}},
	} {
		m, err := c.build()
		if err != nil {
			return err
		}
		for _, text := range c.meshes {
			for _, size := range []int{1, 5, 20} {
				if err := meshRow(ctx, w, c.name, m, text, size); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// meshRow prints a row of the table.
func meshRow(ctx context.Context, w io.Writer, name string, m *models.Model, text string,
	size int) error {
	o := gomem.Options{Policy: planner.Thesis, Partition: size}
	if text != "" {
		var err error
		if o.Mesh, err = mesh.Parse(text, ""); err != nil {
			return err
		}
	}
	target := gomem.Training(m.Graph, m.Objectives[0].Loss)
	var err error
	if o.DeviceBytes, err = gomem.MinDevice(ctx, m.Graph, o, target); err != nil {
		return err
	}
	p, err := gomem.Plan(ctx, m.Graph, o, target)
	if err != nil {
		return err
	}
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	of := p.Targets[0]
	needs := split.Needs(p.Graph, of.Fetches, of.Updates)
	_, err = fmt.Fprintf(w, "| %s | %s | %d | %.1f | %.1f | %.0f | %.0f | %d |\n", name,
		text, size, mib(slices.Max(needs)), mib(o.DeviceBytes), mib(p.Peak(space.Host)),
		mib(p.Results[0].Plan.Traffic().In()), p.Graph.Len())
	return err
}

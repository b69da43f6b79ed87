package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/machine"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/space"
)

// reductions of the device's memory, in percent of what vanilla needs.
var reductions = []int64{30, 50, 65, 75, 80, 85, 90}

// curves prints how long a step of the thesis' models takes with less memory, on
// machines that are known by their prices.
func curves(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "The first objective's step within so much less memory than `vanilla` "+
		"needs, planned by `auto` at the thesis' sizes: simulated time of the packed plan, "+
		"waits and all, divided by `vanilla`'s; in brackets what it takes to plan. A dash: "+
		"nothing fits.")
	for _, name := range []string{machine.TitanX, machine.TitanXThesis, machine.H200} {
		profile, err := machine.Named(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\n| %s | operations | GB | ms |", name)
		for _, r := range reductions {
			fmt.Fprintf(w, " %d %% |", r)
		}
		fmt.Fprintln(w, "\n|---|---|---|---|---|---|---|---|---|---|---|")
		for _, m := range thesisModels {
			if err := curve(ctx, w, m.name, m.build, profile); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	return nil
}

// curve prints a row.
func curve(ctx context.Context, w io.Writer, name string, build func() (*models.Model, error),
	profile *machine.Profile) error {
	m, err := build()
	if err != nil {
		return err
	}
	first := m.Objectives[0]
	t := compile.Target{Name: first.Name, Fetches: []graph.Value{first.Loss}}
	for _, n := range first.Updates {
		t.Updates = append(t.Updates, n.ID)
	}
	o := compile.Options{Policy: compile.Vanilla, Machine: profile, Model: name}
	all, err := compile.Compile(ctx, m.Graph, t, o)
	if err != nil {
		return err
	}
	peak := all.Plan.Spaces[space.Device].Bytes
	fmt.Fprintf(w, "| %s | %d | %.2f | %s |", name, all.Plan.Launches(), float64(peak)/1e9,
		ms(all.Step))
	o.Policy = compile.Auto
	for _, r := range reductions {
		o.DeviceBytes = peak * (100 - r) / 100
		got, err := compile.Compile(ctx, m.Graph, t, o)
		if _, refused := errors.AsType[*compile.ErrOutOfMemory](err); refused {
			fmt.Fprint(w, " – |")
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(w, " %.3f (%.1f s) |", float64(got.Step)/float64(all.Step), got.Took.Seconds())
	}
	fmt.Fprintln(w)
	return nil
}

// thesisModels are the models at the sizes and batches of the thesis' table 6.6.
var thesisModels = []struct {
	name  string
	build func() (*models.Model, error)
}{
	{"resnet", func() (*models.Model, error) {
		c, err := models.NewResNetConfig("base")
		c.Images = 57
		return built(c, err, models.ResNet)
	}},
	{"transformer", func() (*models.Model, error) {
		c, err := models.NewTransformerConfig("base")
		c.Pairs, c.Length = 352, 32
		return built(c, err, models.Transformer)
	}},
	{"deepspeech", func() (*models.Model, error) {
		c, err := models.NewDeepSpeechConfig("base")
		c.Frames, c.Labels, c.Unrolled = 165, 40, true
		return built(c, err, models.DeepSpeech)
	}},
	{"wgan", func() (*models.Model, error) {
		c, err := models.NewWGANConfig("base")
		c.Images = 90
		return built(c, err, models.WGAN)
	}},
	{"moe", func() (*models.Model, error) {
		c, err := models.NewMoEConfig("base")
		c.Pairs = 4
		return built(c, err, models.MoE)
	}},
}

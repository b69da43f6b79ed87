package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/machine"
	"github.com/gomem/gomem/machine/calibrate"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/simulate"
	"github.com/gomem/gomem/train"
)

// simulatedRounds is how many steps a median is of.
const simulatedRounds = 21

// simulated compares the steps that the simulation says with those that are measured.
func simulated(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "A training step (every objective once) with everything resident "+
		"(`vanilla`) on the CPU device: simulated with times of its operations that were "+
		"measured one by one, and measured as a whole.")
	fmt.Fprintln(w, "\n| model | size | operations | timed | calibration s | simulated ms | "+
		"measured ms | simulated / measured |\n|---|---|---|---|---|---|---|---|")
	dir, err := os.MkdirTemp("", "gomem-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, size := range []string{"s512", "s64"} {
		for _, kind := range models5 {
			m, err := kind.build(size)
			if err != nil {
				return err
			}
			if err := simulatedOf(ctx, w, m, dir); err != nil {
				return fmt.Errorf("%s %s: %w", kind.name, size, err)
			}
		}
	}
	return nil
}

func simulatedOf(ctx context.Context, w io.Writer, m *models.Model, cache string) error {
	targets := train.Targets(&m.Model)
	targets = targets[:len(targets)-1] // not the evaluation
	o := gomem.Options{Policy: compile.Vanilla}
	p, err := gomem.Plan(ctx, m.Graph, o, targets...)
	if err != nil {
		return err
	}
	began := time.Now()
	local, err := measured(ctx, p.Graph, cache)
	if err != nil {
		return err
	}
	took := time.Since(began)
	prices := local.For("", p.Graph.Nodes())
	var want time.Duration
	operations := 0
	for _, r := range p.Results {
		want += simulate.Simulate(r.Plan, p.Graph, prices).Step
		operations += r.Plan.Launches()
	}
	s, err := gomem.Open(p, o)
	if err != nil {
		return err
	}
	defer s.Close()
	in := thesis.Feeds(m)
	times, err := interleaved(ctx, simulatedRounds, func() error {
		for _, t := range targets {
			if _, err := s.Step(ctx, t.Name, in); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "| %s | %s | %d | %d | %.1f | %s | %s | %.2f |\n", m.Name, m.Size, operations,
		len(local.Measured), took.Seconds(), ms(want), ms(times[0]),
		want.Seconds()/times[0].Seconds())
	return nil
}

// measured is this machine with the operations of a graph timed.
func measured(ctx context.Context, g *graph.Graph, cache string) (*machine.Local, error) {
	c, err := calibrate.Open(ctx, calibrate.Options{Cache: cache, Limit: time.Minute})
	if err != nil {
		return nil, err
	}
	if err := c.Measure(ctx, g.Nodes()); err != nil {
		return nil, err
	}
	return c.Local(), nil
}

// models5 are the five models.
var models5 = []struct {
	name  string
	build func(size string) (*models.Model, error)
}{
	{"transformer", func(size string) (*models.Model, error) {
		c, err := models.NewTransformerConfig(size)
		return built(c, err, models.Transformer)
	}},
	{"moe", func(size string) (*models.Model, error) {
		c, err := models.NewMoEConfig(size)
		return built(c, err, models.MoE)
	}},
	{"resnet", func(size string) (*models.Model, error) {
		c, err := models.NewResNetConfig(size)
		return built(c, err, models.ResNet)
	}},
	{"wgan", func(size string) (*models.Model, error) {
		c, err := models.NewWGANConfig(size)
		return built(c, err, models.WGAN)
	}},
	{"deepspeech", func(size string) (*models.Model, error) {
		c, err := models.NewDeepSpeechConfig(size)
		return built(c, err, models.DeepSpeech)
	}},
}

func built[C any](c C, err error, model func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return model(c)
}

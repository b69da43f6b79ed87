package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/machine/calibrate"
	"github.com/gomem/gomem/planner/simulate"
	"github.com/gomem/gomem/train"
)

// simulatedRounds is how many steps a median is of, and simulatedRuns how many times a machine is
// measured anew: its speed drifts from one minute to the next, and so does what a single
// calibration says.
const (
	simulatedRounds = 21
	simulatedRuns   = 9
)

// simulated compares the steps that the simulation says with those that are measured.
func simulated(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "A training step (every objective once) with everything resident (`vanilla`) "+
		"on the CPU device: simulated with times of its operations that were measured one by one, "+
		"and measured as a whole, %d steps. The models take turns, %d times, and their operations "+
		"are timed anew each time. Milliseconds are medians; simulated over measured is the "+
		"median of the turns, with the middle half of them.\n",
		simulatedRounds, simulatedRuns)
	var rows []*comparison
	for _, size := range []string{"s512", "s64"} {
		for _, kind := range models5 {
			m, err := kind.build(size)
			if err != nil {
				return err
			}
			rows = append(rows, &comparison{model: m})
		}
	}
	for run := range simulatedRuns {
		fmt.Fprintf(os.Stderr, "turn %d of %d\n", run+1, simulatedRuns)
		if err := turn(ctx, rows); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\n| model | size | operations | timed | calibration s | simulated ms | "+
		"measured ms | simulated / measured | middle half |\n|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		r.print(w)
	}
	return nil
}

// turn takes every comparison once more, in a cache of its own.
func turn(ctx context.Context, rows []*comparison) error {
	dir, err := os.MkdirTemp("", "gomem-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, r := range rows {
		if err := r.take(ctx, dir); err != nil {
			return fmt.Errorf("%s %s: %w", r.model.Name, r.model.Size, err)
		}
	}
	return nil
}

// comparison is what the simulation says of a model's step, and what it was measured to be, once
// for each turn.
type comparison struct {
	model                           *models.Model
	operations, timed               int
	calibrated, simulated, measured []time.Duration
	ratios                          []float64
}

// take times the operations and the steps once.
func (c *comparison) take(ctx context.Context, cache string) error {
	targets := train.Targets(&c.model.Model)
	targets = targets[:len(targets)-1] // not the evaluation
	o := gomem.Options{Policy: planner.Vanilla}
	p, err := gomem.Plan(ctx, c.model.Graph, o, targets...)
	if err != nil {
		return err
	}
	began := time.Now()
	local, err := measured(ctx, p.Graph, cache)
	if err != nil {
		return err
	}
	c.calibrated = append(c.calibrated, time.Since(began))
	prices := local.For("", p.Graph.Nodes())
	var want time.Duration
	c.operations, c.timed = 0, len(local.Measured)
	for _, r := range p.Results {
		want += simulate.Simulate(r.Plan, p.Graph, prices).Step
		c.operations += r.Plan.Launches()
	}
	got, err := stepped(ctx, c.model, p, o, targets)
	if err != nil {
		return err
	}
	c.simulated, c.measured = append(c.simulated, want), append(c.measured, got)
	c.ratios = append(c.ratios, want.Seconds()/got.Seconds())
	return nil
}

// stepped is the median time of a step of every target.
func stepped(ctx context.Context, m *models.Model, p *gomem.Planned, o gomem.Options,
	targets []gomem.Target) (time.Duration, error) {
	s, err := gomem.Open(p, o)
	if err != nil {
		return 0, err
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
		return 0, err
	}
	return times[0], nil
}

func (c *comparison) print(w io.Writer) {
	slices.Sort(c.ratios)
	n := len(c.ratios)
	fmt.Fprintf(w, "| %s | %s | %d | %d | %.1f | %s | %s | %.2f | %.2f–%.2f |\n", c.model.Name,
		c.model.Size, c.operations, c.timed, median(c.calibrated).Seconds(),
		ms(median(c.simulated)), ms(median(c.measured)), c.ratios[n/2],
		c.ratios[n/4], c.ratios[n-1-n/4])
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

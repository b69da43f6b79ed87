package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// vocabulary is a loss with its gradients by itself: of so many tokens, of some width, and classes.
type vocabulary struct{ tokens, width, classes int }

// step is a session that takes a step of descent by a loss, and what the plan needs.
type step struct {
	*gomem.Session
	feeds       gomem.Feeds
	peak, least int64
	seconds     []float64 // of processors
	losses      []float32
}

// open makes the step, by logits or without.
func (v vocabulary) open(ctx context.Context, logits bool) (*step, error) {
	g := graph.New()
	x := g.Variable("x", tensor.Of(graph.F32, v.tokens, v.width), graph.Init{Dist: graph.Normal,
		Scale: 1})
	w := g.Variable("w", tensor.Of(graph.F32, v.classes, v.width), graph.Init{Dist: graph.Normal,
		Scale: 0.02})
	labels := g.Input("labels", tensor.Of(graph.I32, v.tokens))
	var losses graph.Value
	if logits {
		losses = ops.CrossEntropy(ops.MatMulT(x, w, false, true), labels, 0)
	} else {
		losses = ops.LinearCrossEntropy(x, w, labels, true, 0)
	}
	loss := ops.Mean(losses)
	rate := g.Constant("rate", gomem.Scalar(0.1))
	var descent []*graph.Node
	for i, d := range autodiff.Grad(loss, x, w) {
		descent = append(descent, ops.SGD([]graph.Value{x, w}[i], d, rate))
	}
	if err := g.Err(); err != nil {
		return nil, err
	}
	target := gomem.Updating("train", descent, loss)
	least, err := planner.LeastOf(ctx, g, planner.Options{Policy: planner.Auto}, space.Device,
		target)
	if err != nil {
		return nil, err
	}
	o := gomem.Options{Seed: 1, Threads: 1}.With(planner.Options{Policy: planner.Vanilla})
	s, err := gomem.Compile(ctx, g, o, target)
	if err != nil {
		return nil, err
	}
	ids := make([]int32, v.tokens)
	for i := range ids {
		ids[i] = int32(i * 7919 % v.classes)
	}
	return &step{Session: s, feeds: gomem.Feeds{labels: tensor.FromI32(ids, v.tokens)},
		peak: s.Usage()[0].Predicted, least: least}, nil
}

// take takes a step.
func (s *step) take(ctx context.Context) error {
	began := gauge.CPUTime()
	out, err := s.Step(ctx, "train", s.feeds)
	if err != nil {
		return err
	}
	s.seconds = append(s.seconds, (gauge.CPUTime() - began).Seconds())
	s.losses = append(s.losses, out[0].F32()[0])
	return nil
}

// vocabularies compares the loss of large vocabularies with that of their logits.
func vocabularies(ctx context.Context, _ *bench, w io.Writer, _ bool) error {
	const rounds = 3
	fmt.Fprintf(w, "\n## The loss of a large vocabulary by itself\n\nWith its gradients, of width "+
		"768, on one thread: %s, %s, load %s. Steps take turns; medians of %d, in seconds of "+
		"processor time.\n\n", runtime.Version(), gauge.Processor(), gauge.Load(), rounds)
	columns(w, "tokens × classes", "by logits", "without", "ratio", "MiB by logits", "without",
		"of it beside the matrix and its gradient", "least of both")
	for _, v := range []vocabulary{{1024, 768, 50257}, {8192, 768, 50257}, {8192, 768, 131072}} {
		if err := v.compare(ctx, w, rounds); err != nil {
			return err
		}
	}
	return nil
}

func (v vocabulary) compare(ctx context.Context, w io.Writer, rounds int) (err error) {
	var sides [2]*step
	for i := range sides {
		if sides[i], err = v.open(ctx, i == 0); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sides[i].Close()) }()
	}
	for range rounds {
		for _, s := range sides {
			if err := s.take(ctx); err != nil {
				return err
			}
		}
	}
	a, b := sides[0], sides[1]
	for i, loss := range a.losses {
		if math.Abs(float64(loss-b.losses[i])) > 1e-4 {
			return fmt.Errorf("losses are %v by logits, and %v without", a.losses, b.losses)
		}
	}
	matrix := 4 * int64(v.width) * int64(v.classes)
	before, now := gauge.Median(a.seconds), gauge.Median(b.seconds)
	row(w, fmt.Sprintf("%d × %d", v.tokens, v.classes), seconds(before), seconds(now),
		seconds(now/before), mib(a.peak), mib(b.peak), mib(b.peak-2*matrix),
		mib(a.least)+", "+mib(b.least))
	return nil
}

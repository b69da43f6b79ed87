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

// vocabulary is a loss with its gradients by itself: of so many tokens, of some width, and classes,
// by a matrix that is trained, or frozen, which may be of a format of few bits.
type vocabulary struct {
	tokens, width, classes int
	frozen                 bool
	format                 string
}

func (v vocabulary) String() string {
	of := fmt.Sprintf("%d × %d", v.tokens, v.classes)
	switch {
	case v.format != "":
		of += ", " + v.format
	case v.frozen:
		of += ", frozen"
	}
	return of
}

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
	labels := g.Input("labels", tensor.Of(graph.I32, v.tokens))
	w, losses := v.losses(g, x, labels, logits)
	loss := ops.Mean(losses)
	rate := g.Constant("rate", gomem.Scalar(0.1))
	trained := []graph.Value{x, w}
	if v.frozen {
		trained = trained[:1]
	}
	var descent []*graph.Node
	for i, d := range autodiff.Grad(loss, trained...) {
		descent = append(descent, ops.SGD(trained[i], d, rate))
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

// losses are those of rows, and the matrix, by logits or without. One of few bits is of zeros.
func (v vocabulary) losses(g *graph.Graph, x, labels graph.Value,
	logits bool) (w, losses graph.Value) {
	t, init := tensor.Of(graph.F32, v.classes, v.width), graph.Init{Dist: graph.Normal, Scale: 0.02}
	if v.format != "" {
		var err error
		if t, err = ops.PackedType(v.classes, v.width, v.format); err != nil {
			g.Fail(err)
		}
		init = graph.Init{}
	}
	w = g.Variable("w", t, init)
	switch {
	case logits && v.format != "":
		return w, ops.CrossEntropy(ops.MatMulPacked(x, w, v.format), labels, 0)
	case logits:
		return w, ops.CrossEntropy(ops.MatMulT(x, w, false, true), labels, 0)
	case v.format != "":
		return w, ops.LinearCrossEntropyPacked(x, w, labels, v.format, 0)
	}
	return w, ops.LinearCrossEntropy(x, w, labels, true, 0)
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
		"of it beside the matrix and its gradient, if it has one", "least of both")
	for _, v := range []vocabulary{{1024, 768, 50257, false, ""}, {1024, 768, 50257, true, ""},
		{1024, 768, 50257, true, "q6_k"}, {8192, 768, 50257, false, ""},
		{8192, 768, 131072, false, ""}} {
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
	matrix := 8 * int64(v.width) * int64(v.classes) // with its gradient
	if v.frozen {
		matrix /= 2
	}
	if v.format != "" {
		t, err := ops.PackedType(v.classes, v.width, v.format)
		if err != nil {
			return err
		}
		matrix = t.Bytes()
	}
	before, now := gauge.Median(a.seconds), gauge.Median(b.seconds)
	row(w, v.String(), seconds(before), seconds(now),
		seconds(now/before), mib(a.peak), mib(b.peak), mib(b.peak-matrix),
		mib(a.least)+", "+mib(b.least))
	return nil
}

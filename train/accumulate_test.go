package train

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// TestAccumulation: a run whose steps are several executions with a part of a batch each
// has the losses, metrics and units of one whose steps have the whole batch.
func TestAccumulation(t *testing.T) {
	const n, width, batch = 240, 5, 12
	x, y := tensor.New(tensor.Of(graph.F32, n, width)), tensor.New(tensor.Of(graph.I32, n))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x.F32() {
		x.F32()[i] = float32(rng.NormFloat64()) + float32(i/width%3)
		y.I32()[i/width] = int32(i / width % 3)
	}
	train := func(parts int) ([]Event, Summary) {
		t.Helper()
		m := nn.NewModel()
		x0, y0 := m.Input("x", graph.F32, batch/parts, width), m.Input("y", graph.I32, batch/parts)
		net := func(c *nn.Ctx) graph.Value { return nn.Linear(c.In("out"), x0, 3) }
		logits := net(m.Training())
		m.Minimize(nn.CrossEntropy(logits, y0), nn.Adam{}, nn.MinimizeOptions{
			Rate: nn.Constant(0.1), Accumulate: parts,
			Metrics: []nn.Metric{nn.Accuracy(logits, y0)}})
		m.Evaluate(nn.CrossEntropy(net(m.Evaluation()), y0))
		l, err := data.FromTensors(data.ExamplesOptions{Batch: batch / parts, HeldOut: 24}, x, y)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Model: m, Loader: l, Epochs: 2, Session: gomem.Options{Threads: 1}, Seed: 5}
		events := watch(&o)
		s, err := Run(t.Context(), o)
		if err != nil || len(*events) == 0 {
			t.Fatalf("%d events, %v", len(*events), err)
		}
		return *events, s
	}
	whole, want := train(1)
	for _, parts := range []int{2, 3, 4} {
		have, s := train(parts)
		if len(have) != len(whole) || s.Steps != want.Steps {
			t.Fatalf("%d parts: %d events, want %d", parts, len(have), len(whole))
		}
		for i, e := range whole {
			h := have[i]
			if h.Kind != e.Kind || h.Units != e.Units || h.Step != e.Step ||
				math.Abs(h.Loss-e.Loss) > 1e-3 ||
				math.Abs(h.Metrics["accuracy"]-e.Metrics["accuracy"]) > 1e-3 {
				t.Errorf("%d parts: %+v, at once %+v", parts, h, e)
			}
		}
	}
}

// words are texts of different lengths, of which label 0 is none.
type words struct {
	data.Batches
	batch, of int
}

const wordsLength = 4

func (w words) StepsPerEpoch() int { return w.of / w.batch }

// Train has more and more labels, and in some batches none.
func (w words) Train(step int) data.Batch {
	x := tensor.New(tensor.Of(graph.F32, w.batch, wordsLength, 3))
	y := tensor.New(tensor.Of(graph.I32, w.batch, wordsLength))
	b := data.Batch{Inputs: []gomem.Tensor{x, y}}
	first := step * w.batch
	for i := range x.F32() {
		x.F32()[i] = float32(math.Sin(float64(3*wordsLength*first + i)))
	}
	for i := range y.I32() {
		if e := first + i/wordsLength; e%7 > 1 && i%wordsLength < e%7-1 {
			y.I32()[i] = int32(1 + (e+i%wordsLength)%3)
			b.Units++
		}
	}
	return b
}

// texting is a run on words, so many of them in an update, in parts.
func texting(t *testing.T, whole, parts int) Options {
	t.Helper()
	m, batch := nn.NewModel(), whole/parts
	x := m.Input("x", graph.F32, batch, wordsLength, 3)
	y := m.Input("y", graph.I32, batch, wordsLength)
	counted := nn.CrossEntropyOptions{Padding: true}
	net := func(c *nn.Ctx) graph.Value { return nn.Linear(c.In("out"), x, 4) }
	logits := net(m.Training())
	m.Minimize(nn.CrossEntropy(logits, y, counted), nn.SGD{}, nn.MinimizeOptions{
		Rate: nn.Constant(0.5), Accumulate: parts,
		Metrics: []nn.Metric{nn.Accuracy(logits, y, counted)}})
	m.Evaluate(nn.CrossEntropy(net(m.Evaluation()), y, counted))
	l := words{Batches: noneHeld{}, batch: batch, of: 10 * whole}
	return Options{Model: m, Loader: l, Steps: 6, Session: gomem.Options{Threads: 1}, Seed: 5}
}

// TestUnequalParts: steps of several batches in which different numbers of units count have
// the losses, metrics and units of those of one, in one worker that adds up and in several.
func TestUnequalParts(t *testing.T) {
	const whole = 12
	losses := func(o Options) []Event {
		events := watch(&o)
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return *events
	}
	want := losses(texting(t, whole, 1))
	compare := func(name string, have []Event) {
		t.Helper()
		for i, e := range want {
			if h := have[i]; h.Kind != e.Kind || h.Units != e.Units ||
				math.Abs(h.Loss-e.Loss) > 1e-5 ||
				math.Abs(h.Metrics["accuracy"]-e.Metrics["accuracy"]) > 1e-5 {
				t.Fatalf("%s: %+v, at once %+v", name, h, e)
			}
		}
	}
	for _, parts := range []int{2, 6} {
		compare("in parts", losses(texting(t, whole, parts)))
	}
	first := abreast(3, 0, func(int) (context.Context, Options) {
		o := texting(t, whole/3, 1)
		o.Steps = 1
		return t.Context(), o
	})
	if err := errors.Join(first.errs...); err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want[:2], func(e Event) bool { return e.Kind != Step })
	compare("workers", slices.DeleteFunc(first.events[0],
		func(e Event) bool { return e.Kind != Step }))
}

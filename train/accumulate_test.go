package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/tensor"
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

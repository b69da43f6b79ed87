package laws_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// tagger has a class for each of some positions, of which those of class 0 do not count.
func tagger(batch int, tr models.Training) (*models.Model, error) {
	m := nn.NewModel()
	m.Workers, m.Factoring = tr.Workers, tr.Factoring
	x, y := m.Input("x", graph.F32, batch, 3), m.Input("y", graph.I32, batch)
	logits := nn.Linear(m.Training().In("out"), x, 4)
	m.Minimize(nn.CrossEntropy(logits, y, nn.CrossEntropyOptions{Padding: true}), nn.SGD{},
		nn.MinimizeOptions{Accumulate: tr.Accumulate})
	return &models.Model{Model: *m}, m.Err()
}

// tagged are the examples from one on, of which more and more count: none of the first two.
func tagged(m *models.Model, from, step int) gomem.Feeds {
	x, y := m.Data[0], m.Data[1]
	feeds := gomem.Feeds{m.Seed: gomem.Pair(1, 2), m.LearningRate: gomem.Scalar(0.5),
		m.Step: gomem.Scalar(float32(step)),
		x:      gomem.NewTensor(x.Type()), y: gomem.NewTensor(y.Type())}
	for i := range feeds[x].F32() {
		feeds[x].F32()[i] = float32(math.Sin(float64(3*from + i)))
	}
	for i := range feeds[y].I32() {
		if e := from + i; e > 1 && e*e%5 < 4 {
			feeds[y].I32()[i] = int32(1 + e%3)
		}
	}
	return feeds
}

// everyFactor exchanges factors wherever there are some.
type everyFactor struct{}

func (everyFactor) Factors(_, _ int64) bool { return true }

// TestWorkersOfUnequalBatches: workers in whose batches different numbers of positions count,
// also none, make the update of one with all positions in its batch; with gradients or factors,
// and where each of them adds up several batches.
func TestWorkersOfUnequalBatches(t *testing.T) {
	const batch, workers, steps = 2, 3, 2
	for name, tr := range map[string]models.Training{"gradients": {Workers: workers},
		"factors":     {Workers: workers, Factoring: everyFactor{}},
		"accumulated": {Workers: workers, Accumulate: 2}} {
		t.Run(name, func(t *testing.T) {
			each := max(1, tr.Accumulate)
			one, err := tagger(batch*workers*each, models.Training{})
			if err != nil {
				t.Fatal(err)
			}
			want := steppedBy(t, one, gomem.Options{}, steps, 0, 1, batch*workers*each)
			m, err := tagger(batch, tr)
			if err != nil {
				t.Fatal(err)
			}
			have := make([]map[string]gomem.Tensor, workers)
			work := func(_ context.Context, o gomem.Options, rank int) error {
				have[rank] = steppedBy(t, m, o, steps*each, rank, workers, batch)
				return nil
			}
			side(t, make([]gomem.Options, workers), work)
			for rank := range have {
				for name, x := range want {
					for i, v := range x.F32() {
						if y := have[rank][name].F32()[i]; math.Abs(float64(y-v)) > 1e-6 {
							t.Fatalf("worker %d: %s[%d] is %v, of one batch %v", rank, name, i,
								y, v)
						}
					}
				}
			}
		})
	}
}

// steppedBy trains as one of several workers, and returns the parameters.
func steppedBy(t *testing.T, m *models.Model, o gomem.Options, steps, rank, workers,
	batch int) map[string]gomem.Tensor {
	o.Seed, o.Threads = 3, 1
	s, err := gomem.Compile(t.Context(), m.Graph, o, train.Targets(&m.Model)[0])
	if err != nil {
		t.Error(err)
		return nil
	}
	defer s.Close()
	for step := range steps {
		feeds := tagged(m, (step*workers+rank)*batch, step+1)
		if _, err := s.Step(t.Context(), "train", feeds); err != nil {
			t.Error(err)
			return nil
		}
	}
	out := map[string]gomem.Tensor{}
	for _, v := range m.Parameters() {
		if out[v.Node.Name], err = s.Get(v); err != nil {
			t.Error(err)
		}
	}
	return out
}

// TestWorkersAreExecutions: after a step, N workers have the variables of one that accumulates N
// executions, running averages included, up to rounding.
func TestWorkersAreExecutions(t *testing.T) {
	const n = 2
	all := exchanging(models.Training{Workers: n})
	for name, build := range exchanging(models.Training{Accumulate: n}) {
		if name != "resnet" && name != "transformer" { // norms of batches, unequal texts
			continue
		}
		t.Run(name, func(t *testing.T) {
			one, err := build()
			if err != nil {
				t.Fatal(err)
			}
			want, err := work(t.Context(), one, gomem.Options{}, 0, 1, n)
			if err != nil {
				t.Fatal(err)
			}
			m, err := all[name]()
			if err != nil {
				t.Fatal(err)
			}
			averages := 0
			for name, x := range together(t, m, 1, make([]gomem.Options, n)...)[0] {
				if strings.HasSuffix(name, "/mean") {
					averages++
				}
				for i, have := range x.F32() {
					w := want[name].F32()[i]
					if d := math.Abs(float64(have - w)); d > 1e-4*(1+math.Abs(float64(w))) {
						t.Fatalf("%s[%d] is %v, of one worker %v", name, i, have, w)
					}
				}
			}
			if (averages > 0) != (name == "resnet") {
				t.Errorf("%d running averages", averages)
			}
		})
	}
}

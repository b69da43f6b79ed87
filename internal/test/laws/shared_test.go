package laws_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/planner"
)

// sharing is a model whose parameters workers share, with an evaluation.
func sharing(t *testing.T) (m *nn.Model, x, y graph.Value, targets []gomem.Target) {
	t.Helper()
	m = nn.NewModel()
	x, y = m.Input("x", graph.F32, 4, 3), m.Input("y", graph.F32, 4, 2)
	build := func(c *nn.Ctx) graph.Value {
		h := nn.Tanh(nn.Linear(c.In("a"), x, 5))
		return nn.MSE(nn.Linear(c.In("b"), h, 2), y)
	}
	m.Minimize(build(m.Training()), nn.Momentum{})
	eval := build(m.Evaluation())
	for _, p := range m.Parameters() {
		m.Graph.Share(p, graph.How{})
	}
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	return m, x, y, []gomem.Target{training(m), {Name: "eval", Fetches: []graph.Value{eval}}}
}

// ownBatch is a worker's at a step.
func ownBatch(m *nn.Model, x, y graph.Value, rank, step int) gomem.Feeds {
	data := gomem.NewTensor(x.Type())
	for i := range data.F32() {
		data.F32()[i] = float32((i*7+rank*3+step)%11)/4 - 1
	}
	return gomem.Feeds{x: data, y: gomem.NewTensor(y.Type()), m.LearningRate: gomem.Scalar(0.1)}
}

// TestSharedVariables: workers that share variables have the mean of what each has made of
// them when the next step reads them, whatever their plans; evaluations await it too; and
// nothing else of the host is taken.
func TestSharedVariables(t *testing.T) {
	m, x, y, targets := sharing(t)
	options := []gomem.Options{{Policy: planner.Vanilla}, {Policy: planner.Thesis, Partition: 1},
		{Policy: planner.Auto, NoFusion: true}}
	h := newHub(len(options))
	losses := make([][]float32, len(options))
	got := make([]map[string]string, len(options))
	var all sync.WaitGroup
	for rank, o := range options {
		all.Go(func() {
			o.Network = h.workers[rank]
			s, err := gomem.Compile(t.Context(), m.Graph, o, targets...)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for step := range 4 {
				feeds := ownBatch(m, x, y, rank, step)
				if _, err := s.Step(t.Context(), "train", feeds); err != nil {
					t.Error(err)
					return
				}
				if step%2 == 0 {
					out, err := s.Step(t.Context(), "eval", ownBatch(m, x, y, 0, 99))
					if err != nil {
						t.Error(err)
						return
					}
					losses[rank] = append(losses[rank], out[0].F32()[0])
				}
			}
			got[rank] = map[string]string{}
			for _, p := range m.Parameters() {
				v, err := s.Get(p)
				if err != nil {
					t.Error(err)
				}
				got[rank][p.Node.Name] = fmt.Sprint(v.F32())
			}
			for _, u := range s.Usage() {
				if u.Actual != u.Predicted {
					t.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
				}
			}
		})
	}
	all.Wait()
	for rank := range options {
		if fmt.Sprint(got[rank]) != fmt.Sprint(got[0]) || !slices.Equal(losses[rank], losses[0]) ||
			len(got[rank]) != 4 || h.workers[rank].sent != 16 {
			t.Errorf("worker %d has %v, losses %v; worker 0 %v, %v", rank, got[rank], losses[rank],
				got[0], losses[0])
		}
	}
}

// TestSharingIsAveraging: sharing weights that plain descent has moved is exchanging the
// gradients that move them.
func TestSharingIsAveraging(t *testing.T) {
	after := func(shared bool) [][]float32 {
		m := nn.NewModel()
		x, y := m.Input("x", graph.F32, 4, 3), m.Input("y", graph.F32, 4, 2)
		if !shared {
			m.Workers = 2
		}
		m.Minimize(nn.MSE(nn.Linear(m.Training().In("a"), x, 2), y), nn.SGD{})
		for _, p := range m.Parameters() {
			if shared {
				m.Graph.Share(p, graph.How{})
			}
		}
		h, out := newHub(2), make([][]float32, 2)
		var all sync.WaitGroup
		for rank := range out {
			all.Go(func() {
				s, err := gomem.Compile(t.Context(), m.Graph,
					gomem.Options{Network: h.workers[rank]}, training(m))
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				for step := range 5 {
					feeds := ownBatch(m, x, y, rank, step)
					if _, err := s.Step(t.Context(), "train", feeds); err != nil {
						t.Error(err)
					}
				}
				for _, p := range m.Parameters() {
					v, err := s.Get(p)
					if err != nil {
						t.Error(err)
					}
					out[rank] = append(out[rank], v.F32()...)
				}
			})
		}
		all.Wait()
		return out
	}
	a, b := after(true), after(false)
	for i, x := range a[0] {
		if d := x - b[0][i]; d > 1e-5 || d < -1e-5 || a[1][i] != x || b[1][i] != b[0][i] {
			t.Fatalf("element %d is %v and %v if shared, %v and %v if gradients are exchanged", i,
				x, a[1][i], b[0][i], b[1][i])
		}
	}
}

// TestSharedFails: a variable that does not come back is named, and torn; setting it mends
// the session; closing one whose variables are away has the network let go first.
func TestSharedFails(t *testing.T) {
	m, x, y, targets := sharing(t)
	h := newHub(1)
	w := h.workers[0]
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{Network: w}, targets...)
	if err != nil {
		t.Fatal(err)
	}
	feeds := ownBatch(m, x, y, 0, 0)
	if _, err := s.Step(t.Context(), "train", feeds); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost node 1")
	w.onAwait = func(name string) error {
		if name == "b/weight" {
			return lost
		}
		return nil
	}
	_, err = s.Step(t.Context(), "train", feeds)
	failed, ok := errors.AsType[*gomem.StepError](err)
	if !ok || !errors.Is(err, lost) || !strings.Contains(err.Error(), "b/weight") ||
		!slices.Contains(failed.Torn, "b/weight") || w.gone != 1 {
		t.Fatalf("error is %v, torn %v, abandoned %d times", err, failed, w.gone)
	}
	w.onAwait, h.rounds, w.sent = nil, nil, 0
	for _, v := range s.Variables() {
		if slices.Contains(failed.Torn, v.Node.Name) {
			if err := s.Set(v, gomem.NewTensor(v.Type())); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if _, err := s.Step(t.Context(), "train", feeds); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil || w.gone != 2 || len(w.flying) > 0 {
		t.Errorf("closed with %v, abandoned %d times, %d in flight", err, w.gone, len(w.flying))
	}
}

// TestShareErrors: only variables f32 can be shared, by ways that there are.
func TestShareErrors(t *testing.T) {
	for want, share := range map[string]func(g *graph.Graph){
		"is no variable": func(g *graph.Graph) {
			g.Share(g.Input("x", graph.Of(graph.F32, 2)), graph.How{})
		},
		"want f32": func(g *graph.Graph) {
			g.Share(g.Variable("w", graph.Of(graph.I32, 2), graph.Init{}), graph.How{})
		},
		"is no way": func(g *graph.Graph) {
			w := g.Variable("w", graph.Of(graph.F32, 2), graph.Init{})
			g.Share(w, graph.How{Via: "a way"})
		},
	} {
		g := graph.New()
		share(g)
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestSharedStop: a context that ends while a variable is awaited ends the step.
func TestSharedStop(t *testing.T) {
	m, x, y, targets := sharing(t)
	h := newHub(2)
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{Network: h.workers[0]}, targets...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	feeds := ownBatch(m, x, y, 0, 0)
	if _, err := s.Step(t.Context(), "train", feeds); err != nil {
		t.Fatal(err) // nothing is awaited in the first
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.workers[0].onAwait = func(string) error {
		cancel()
		return nil
	}
	if _, err := s.Step(ctx, "eval", feeds); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

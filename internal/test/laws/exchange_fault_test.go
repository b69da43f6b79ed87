package laws_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// pair is a model of two layers for two workers, and feeds for it.
func pair(t *testing.T) (*nn.Model, gomem.Feeds) {
	t.Helper()
	m := nn.NewModel()
	m.Workers = 2
	x, y := m.Input("x", graph.F32, 4, 3), m.Input("y", graph.F32, 4, 2)
	c := m.Training()
	h := nn.Tanh(nn.Linear(c.In("a"), x, 5))
	m.Minimize(nn.MSE(nn.Linear(c.In("b"), h, 2), y), nn.SGD{})
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	data := gomem.NewTensor(x.Type())
	for i := range data.F32() {
		data.F32()[i] = float32(i%5) - 2
	}
	return m, gomem.Feeds{x: data, y: gomem.NewTensor(y.Type()),
		m.LearningRate: gomem.Scalar(0.1)}
}

// training is the one objective of a model as a target.
func training(m *nn.Model) gomem.Target {
	o := m.Objectives[0]
	target := gomem.Target{Name: o.Name, Fetches: []graph.Value{o.Loss}}
	for _, u := range o.Updates {
		target.Updates = append(target.Updates, u.ID)
	}
	return target
}

// variablesOf are all variables of a session that are not torn.
func variablesOf(t *testing.T, s *gomem.Session, torn []string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range s.Variables() {
		if slices.Contains(torn, v.Node.Name) {
			continue
		}
		x, err := s.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		out[v.Node.Name] = fmt.Sprint(x.F32())
	}
	return out
}

// TestExchangeFails: wherever the network fails, the step's error names the exchange, its
// type and its line; variables whose update had not begun are as they were; the network
// lets go; and the session goes on once it is mended.
func TestExchangeFails(t *testing.T) {
	lost := errors.New("lost node 1 in epoch 3")
	for _, c := range []struct {
		name, at string
		send     bool
	}{{"send", "b/bias", true}, {"send", "b/weight", true}, {"send", "a/bias", true},
		{"await", "b/bias", false}, {"await", "a/bias", false}} {
		t.Run(c.name+" "+c.at, func(t *testing.T) {
			m, feeds := pair(t)
			h := newHub(1)
			w, broken := h.workers[0], true
			fail := func(name string) error {
				if broken && name == c.at {
					return lost
				}
				return nil
			}
			if w.onAwait = fail; c.send {
				w.onSend, w.onAwait = fail, nil
			}
			s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{Network: w}, training(m))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			before := variablesOf(t, s, nil)
			for range 3 {
				_, err := s.Step(t.Context(), "train", feeds)
				failed, ok := errors.AsType[*gomem.StepError](err)
				if !ok || !errors.Is(err, lost) {
					t.Fatalf("error is %v", err)
				}
				for _, want := range []string{c.name, "f32[", "exchange_fault_test.go:"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v does not name %s", err, want)
					}
				}
				if slices.Contains(failed.Torn, c.at) {
					t.Errorf("%s is torn, whose gradient has not come: %v", c.at, failed.Torn)
				}
				for name, x := range variablesOf(t, s, failed.Torn) {
					if x != before[name] {
						t.Errorf("%s is %s, was %s", name, x, before[name])
					}
				}
				for _, v := range s.Variables() {
					if slices.Contains(failed.Torn, v.Node.Name) {
						if err := s.Set(v, gomem.NewTensor(v.Type())); err != nil {
							t.Fatal(err)
						}
						before[v.Node.Name] = fmt.Sprint(gomem.NewTensor(v.Type()).F32())
					}
				}
				if len(w.flying) > 0 {
					t.Errorf("%d values are in flight", len(w.flying))
				}
			}
			if w.gone != 3 {
				t.Errorf("abandoned %d times in 3 steps", w.gone)
			}
			broken, h.rounds, w.sent = false, nil, 0
			if _, err := s.Step(t.Context(), "train", feeds); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExchangeIsInterrupted: a step that waits for a worker which does not come ends with
// its context, whole; and with the error of a send, if that is what goes wrong meanwhile.
func TestExchangeIsInterrupted(t *testing.T) {
	m, feeds := pair(t)
	h := newHub(2)
	w := h.workers[0]
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{Network: w}, training(m))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := variablesOf(t, s, nil)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.onAwait = func(string) error {
		cancel(enough)
		return nil
	}
	_, err = s.Step(ctx, "train", feeds)
	if failed, ok := errors.AsType[*gomem.StepError](err); !ok || !failed.Intact() ||
		!errors.Is(err, enough) || !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if got := variablesOf(t, s, nil); fmt.Sprint(got) != fmt.Sprint(before) || w.gone != 1 {
		t.Errorf("the variables are %v, were %v; abandoned %d times", got, before, w.gone)
	}
}

// TestExchangeOfOne: without a network, and where nothing computes, steps of a model for
// two workers run, and nobody is called.
func TestExchangeOfOne(t *testing.T) {
	m, feeds := pair(t)
	nobody := newHub(1).workers[0]
	nobody.onSend = func(string) error { return errors.New("called") }
	for _, o := range []gomem.Options{{}, {Device: gomem.Null, Network: nobody},
		{Device: gomem.Sim + "titanx", Network: nobody}} {
		s, err := gomem.Compile(t.Context(), m.Graph, o, training(m))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Step(t.Context(), "train", feeds); err != nil {
			t.Errorf("%s: %v", o.Device, err)
		}
		for _, u := range s.Usage() {
			if u.Actual != u.Predicted {
				t.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// gathering is a worker whose values are only awaited when all have come.
type gathering struct {
	*worker
	sends    int
	gathered error
}

func (g *gathering) Gather(context.Context) error {
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	if g.gone == 0 && g.sent%g.sends != 0 {
		return fmt.Errorf("%d of %d values are sent, and one is awaited", g.sent, g.sends)
	}
	return g.gathered
}

// TestGathered: where the network says when all has come, nothing is awaited before all is
// sent, and whatever breaks before that tears nothing: the step can be done again.
func TestGathered(t *testing.T) {
	m, feeds := pair(t)
	h := newHub(1)
	g := &gathering{worker: h.workers[0], sends: 4}
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{Network: g}, training(m))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	plain := func() map[string]string {
		w := newHub(1).workers[0]
		s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{Network: w}, training(m))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 6 {
			if _, err := s.Step(t.Context(), "train", feeds); err != nil {
				t.Fatal(err)
			}
		}
		return variablesOf(t, s, nil)
	}()
	for range 3 {
		if _, err := s.Step(t.Context(), "train", feeds); err != nil {
			t.Fatal(err)
		}
	}
	g.gathered = errors.New("lost node 1 in epoch 3")
	before := variablesOf(t, s, nil)
	_, err = s.Step(t.Context(), "train", feeds)
	failed, ok := errors.AsType[*gomem.StepError](err)
	if !ok || !failed.Intact() || !errors.Is(err, g.gathered) {
		t.Fatalf("%v", err)
	}
	if after := variablesOf(t, s, nil); !maps.Equal(before, after) {
		t.Errorf("variables are %v, were %v", after, before)
	}
	g.gathered, g.sent, h.rounds = nil, 0, nil
	for range 3 {
		if _, err := s.Step(t.Context(), "train", feeds); err != nil {
			t.Fatal(err)
		}
	}
	if after := variablesOf(t, s, nil); !maps.Equal(plain, after) {
		t.Errorf("variables are %v, without a failure %v", after, plain)
	}
}

// TestGatherersNeedTheirPlans: a network that gathers is refused for plans that were made without
// it, unless they were asked to gather; no other network is.
func TestGatherersNeedTheirPlans(t *testing.T) {
	m, _ := pair(t)
	net := &gathering{worker: newHub(1).workers[0], sends: 4}
	for _, gathers := range []bool{false, true} {
		p, err := gomem.Plan(t.Context(), m.Graph, gomem.Options{Gathers: gathers}, training(m))
		if err != nil {
			t.Fatal(err)
		}
		s, err := gomem.Open(p, gomem.Options{Network: net})
		if gathers != (err == nil) || err != nil &&
			!strings.Contains(err.Error(), "set Options.Gathers for Plan") {
			t.Errorf("planned with Gathers %v: %v", gathers, err)
		}
		if err == nil {
			s.Close()
		}
		if s, err = gomem.Open(p, gomem.Options{Network: newHub(1).workers[0]}); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

// TestCancelledLast: a step that is cancelled while its last operation waits for others has
// failed, although all of it had begun.
func TestCancelledLast(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 2))
	y := ops.Await(ops.Send(ops.Tanh(x), "x", graph.How{}))
	w := newHub(2).workers[0] // the other one never sends
	s, err := gomem.Compile(t.Context(), g, gomem.Options{Network: w},
		gomem.Target{Name: "t", Fetches: []graph.Value{y}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	w.onAwait = func(string) error { cancel(); return nil }
	out, err := s.Step(ctx, "t", gomem.Feeds{x: gomem.NewTensor(x.Type())})
	if !errors.Is(err, context.Canceled) || out != nil {
		t.Errorf("%v, %v", out, err)
	}
}

// TestNamesOfExchanges: what is sent has a name that nothing else of the graph is sent by.
func TestNamesOfExchanges(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 2))
	v := g.Variable("v", graph.Of(graph.F32, 2), graph.Init{})
	g.Share(v, graph.How{})
	y := ops.Await(ops.Send(ops.Tanh(x), "v", graph.How{}))
	_, err := gomem.Compile(t.Context(), g, gomem.Options{},
		gomem.Target{Name: "t", Fetches: []graph.Value{y}})
	if err == nil || !strings.Contains(err.Error(), `"v" is sent by v (`) {
		t.Errorf("%v", err)
	}
}

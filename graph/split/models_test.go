package split_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// five are the models of the thesis: small, or in the long form of their tests' size.
func five() map[string]func() (*models.Model, error) {
	size := "s512"
	if longtest.Enabled() {
		size = "s64"
	}
	return map[string]func() (*models.Model, error){
		"transformer": func() (*models.Model, error) {
			c, err := models.NewTransformerConfig(size)
			return built(c, err, models.Transformer)
		},
		"moe": func() (*models.Model, error) {
			c, err := models.NewMoEConfig(size)
			return built(c, err, models.MoE)
		},
		"resnet": func() (*models.Model, error) {
			c, err := models.NewResNetConfig(size)
			return built(c, err, models.ResNet)
		},
		"wgan": func() (*models.Model, error) {
			c, err := models.NewWGANConfig(size)
			return built(c, err, models.WGAN)
		},
		"deepspeech": func() (*models.Model, error) {
			c, err := models.NewDeepSpeechConfig(size)
			c.Unrolled = true
			return built(c, err, models.DeepSpeech)
		},
	}
}

func built[C any](c C, err error, build func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return build(c)
}

// TestModels: every objective of the five models gives the same losses and weights,
// split at two limits and with sums that take over products; and so do all of them
// together with the evaluation.
func TestModels(t *testing.T) {
	longtest.Skip(t)
	for name, build := range five() {
		t.Run(name, func(t *testing.T) {
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			all := step{g: m.Graph, fetches: slices.Clone(m.EvalOutputs)}
			if m.EvalLoss.Valid() {
				all.fetches = append(all.fetches, m.EvalLoss)
			}
			for _, metric := range m.EvalMetrics {
				all.fetches = append(all.fetches, metric.Value)
			}
			for _, o := range m.Objectives {
				s := step{g: m.Graph, fetches: []graph.Value{o.Loss}}
				for _, metric := range o.Metrics {
					s.fetches = append(s.fetches, metric.Value)
				}
				for _, n := range o.Updates {
					s.updates = append(s.updates, n.ID)
				}
				all.fetches = append(all.fetches, s.fetches...)
				all.updates = append(all.updates, s.updates...)
				checkStep(t, m, o.Name, s)
			}
			checkStep(t, m, "all", all)
		})
	}
}

func checkStep(t *testing.T, m *models.Model, name string, s step) {
	t.Helper()
	s = s.fused(t)
	feeds := map[string][]byte{}
	for v, x := range thesis.Feeds(m) {
		feeds[v.Node.Name] = x.Data
	}
	want := s.trained(t, feeds)
	sums := s.accumulated(t)
	if sums.most() > s.most() || !bytes.Equal(want, sums.trained(t, feeds)) {
		t.Errorf("%s: with sums in place, the losses or weights are others", name)
	}
	for _, part := range []int64{3, 8} {
		after := sums.split(t, s.most()/part)
		if after.most() > s.most() || !bytes.Equal(want, after.trained(t, feeds)) {
			t.Errorf("%s: with a %dth of %d bytes, the losses or weights are others", name, part,
				s.most())
		}
		t.Logf("%s: %d operations that need %d bytes, before %d of %d", name, executed(after.g),
			after.most(), executed(s.g), s.most())
	}
}

// trained are the fetches of two steps, and the variables after them.
func (s step) trained(t fatal, feeds map[string][]byte) []byte {
	t.Helper()
	live := make([]bool, s.g.Len())
	for i := range live {
		live[i] = true
	}
	machine, err := reference.New(s.g, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.g.Inputs() {
		copy(machine.Value(n.Value(0)).Data, feeds[n.Name])
	}
	for _, n := range s.g.Variables() {
		if x := machine.Value(n.Value(0)); x.Type.DType == graph.F32 {
			start(x.F32(), n.Init, rand.New(rand.NewPCG(uint64(n.ID), 3)))
		}
	}
	var out []byte
	for range 2 {
		if err := machine.Step(); err != nil {
			t.Fatal(err)
		}
		for _, v := range s.fetches {
			out = append(out, machine.Value(v).Data...)
		}
	}
	for _, n := range s.g.Variables() {
		out = append(out, machine.Value(n.Value(0)).Data...)
	}
	return out
}

// start gives a variable its first values, much as a session does.
func start(x []float32, init graph.Init, rng *rand.Rand) {
	for i, part := range init.Each {
		n := len(x) / len(init.Each)
		start(x[i*n:(i+1)*n], part, rng)
	}
	if init.Each != nil {
		return
	}
	for i := range x {
		if x[i] = float32(init.Scale); init.Dist != graph.Constant {
			x[i] *= rng.Float32()*2 - 1
		}
	}
}

// TestPlans: under every policy, at its smallest budget, a step of a split model gives
// the losses and weights of the whole one, and takes the memory that was planned.
func TestPlans(t *testing.T) {
	longtest.Skip(t)
	for _, name := range []string{"deepspeech", "transformer"}[:longtest.Count(1, 2)] {
		m, err := five()[name]()
		if err != nil {
			t.Fatal(err)
		}
		o := m.Objectives[0]
		s := step{g: m.Graph, fetches: []graph.Value{o.Loss}}
		for _, n := range o.Updates {
			s.updates = append(s.updates, n.ID)
		}
		want, least := s.planned(t, m, planner.Thesis)
		after := s.accumulated(t).split(t, s.most()/5)
		for _, p := range []planner.Policy{planner.Vanilla, planner.Thesis, planner.Auto} {
			got, budget := after.planned(t, m, p)
			if !bytes.Equal(want, got) {
				t.Errorf("%s: %s gives other losses or weights", name, p)
			}
			t.Logf("%s: %s takes %d bytes, the whole model thesis %d", name, p, budget, least)
		}
	}
}

// planned are the fetches of three steps, and the variables after them, at the
// smallest budget of a policy, which is the second result.
func (s step) planned(t *testing.T, m *models.Model, p planner.Policy) ([]byte, int64) {
	t.Helper()
	ctx := context.Background()
	target := gomem.Target{Name: "train", Fetches: s.fetches, Updates: s.updates}
	options := gomem.Options{Policy: p, Seed: 3, NoFusion: true}
	var err error
	if options.DeviceBytes, err = gomem.MinDevice(ctx, s.g, options, target); err != nil {
		t.Fatal(err)
	}
	session, err := gomem.Compile(ctx, s.g, options, target)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	inputs := map[string]tensor.View{}
	for v, x := range thesis.Feeds(m) {
		inputs[v.Node.Name] = x
	}
	feeds := gomem.Feeds{}
	for _, n := range s.g.Inputs() {
		feeds[n.Value(0)] = inputs[n.Name]
	}
	var out []byte
	for range 3 {
		fetched, err := session.Step(ctx, "train", feeds)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fetched[0].Data...)
	}
	for _, u := range session.Usage() {
		if u.Actual != u.Predicted {
			t.Fatalf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	variables := session.Variables()
	slices.SortFunc(variables, func(v, w graph.Value) int {
		return strings.Compare(v.Node.Name, w.Node.Name)
	})
	for _, v := range variables {
		value, err := session.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, value.Data...)
	}
	return out, options.DeviceBytes
}

func executed(g *graph.Graph) (n int) {
	for _, node := range g.Nodes() {
		if node.Executes() {
			n++
		}
	}
	return n
}

package candidates

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// anyOptions draws options of every policy.
func anyOptions(t *rapid.T) Options {
	return Options{
		Policy:      rapid.SampledFrom(Policies()).Draw(t, "policy"),
		Strategy:    rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy"),
		Partition:   rapid.SampledFrom([]int{1, 2, 3, 5, 20, 200}).Draw(t, "partition"),
		Lookahead:   rapid.IntRange(1, 4).Draw(t, "lookahead"),
		NoPlacement: rapid.IntRange(0, 3).Draw(t, "placement") == 0,
		NoSwap:      rapid.IntRange(0, 3).Draw(t, "swap") == 0,
		Streams:     rapid.IntRange(1, 3).Draw(t, "streams"),
		Effort:      40, // what is granted does not depend on it
	}
}

// anyTargets draws a graph, and a training step of it, often with an evaluation.
func anyTargets(t *rapid.T) (*graph.Graph, []Target) {
	var m *randgraph.Model
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		m = randgraph.Exchanging(pick, 20)
	case 1:
		m = randgraph.Random(pick, 20)
	default:
		m = randgraph.Synthetic(rapid.IntRange(20, 300).Draw(t, "nodes"))
	}
	targets := []Target{training(m)}
	if rapid.Bool().Draw(t, "evaluation") {
		targets = append(targets, Target{Name: "eval", Fetches: m.Fetches})
	}
	return m.Graph, targets
}

// draws is how many random cases a test of this file checks.
func draws(t *testing.T, short, long int, check func(*rapid.T)) {
	t.Helper()
	for round := range longtest.Count(short, long) {
		longtest.Check(t, round, check)
	}
}

// training is a step of a model.
func training(m *randgraph.Model) Target {
	return Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
}

// copies is how many bytes a plan copies.
func copies(p *plan.Plan) int64 { return p.Traffic().In() + p.Traffic().Out() }

// modelTargets are a training step of a model of a size.
func modelTargets(t *testing.T, name, size string) (*graph.Graph, []Target) {
	t.Helper()
	m, err := sized(name, size)
	if err != nil {
		t.Fatal(err)
	}
	step := Target{Name: "train", Fetches: []graph.Value{m.Objectives[0].Loss}}
	for _, n := range m.Objectives[0].Updates {
		step.Updates = append(step.Updates, n.ID)
	}
	return m.Graph, []Target{step}
}

// sized builds a model of a size.
func sized(name, size string) (*models.Model, error) {
	switch name {
	case "resnet":
		c, err := models.NewResNetConfig(size)
		if err != nil {
			return nil, err
		}
		return models.ResNet(c)
	case "transformer":
		c, err := models.NewTransformerConfig(size)
		if err != nil {
			return nil, err
		}
		return models.Transformer(c)
	}
	c, err := models.NewDeepSpeechConfig(size)
	if err != nil {
		return nil, err
	}
	c.Unrolled = true
	return models.DeepSpeech(c)
}

// span is what targets need at least of the device, and what vanilla needs.
func span(t rapid.TB, g *graph.Graph, o Options, targets []Target) (fewest, most int64) {
	t.Helper()
	plain := o
	plain.Policy = Vanilla
	return least(t, g, o, targets), least(t, g, plain, targets)
}

// least is what targets need at least of the device.
func least(t rapid.TB, g *graph.Graph, o Options, targets []Target) int64 {
	t.Helper()
	o.DeviceBytes = 0
	s, err := New(context.Background(), g, o, targets)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Minimum(space.Device)
	if err != nil {
		t.Fatal(err)
	}
	return l.Bytes
}

// compiled is the plan of a target that is granted.
func compiled(t rapid.TB, g *graph.Graph, target Target, o Options) *Result {
	t.Helper()
	s, err := New(context.Background(), g, o, []Target{target})
	if err != nil {
		t.Fatal(err)
	}
	results, err := s.Results()
	if results == nil || err != nil {
		t.Fatalf("no plan: %v", err)
	}
	return results[0]
}

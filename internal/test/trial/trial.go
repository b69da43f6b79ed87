// Package trial trains random models under options, and without plans: what the laws and the tests
// of the façade share.
package trial

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner"
)

// Steps is how long the random models train: long enough for an update to be
// seen by later steps.
const Steps = 3

// Feeds are a model's inputs at a step.
func Feeds(m *randgraph.Model, step int) gomem.Feeds {
	rng := rand.New(rand.NewPCG(9, uint64(step)))
	x := gomem.NewTensor(m.Inputs[0].Type())
	for i := range x.F32() {
		x.F32()[i] = float32(rng.NormFloat64())
	}
	return gomem.Feeds{
		m.Inputs[0]: x,
		m.Inputs[1]: gomem.Pair(42, int32(step)),
		m.Inputs[2]: gomem.Scalar(0.01),
		m.Inputs[3]: gomem.Scalar(float32(step + 1)),
	}
}

// Outcome is everything a training run leaves behind: fetches of every step and
// the variables at the end.
type Outcome [][]byte

// Equal says whether two outcomes have the same bits.
func (o Outcome) Equal(p Outcome) bool { return slices.EqualFunc(o, p, slices.Equal[[]byte]) }

// Trained runs a model under options.
func Trained(m *randgraph.Model, o gomem.Options) (Outcome, error) {
	ctx := context.Background()
	o.Seed, o.Network = 1, &Echo{}
	s, err := gomem.Compile(ctx, m.Graph, o,
		gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out Outcome
	for step := range Steps {
		fetched, err := s.Step(ctx, "train", Feeds(m, step))
		if err != nil {
			return nil, err
		}
		for _, v := range fetched {
			out = append(out, v.Data)
		}
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return nil, fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	for _, v := range s.Variables() {
		value, err := s.Get(v)
		if err != nil {
			return nil, err
		}
		out = append(out, value.Data)
	}
	return out, nil
}

// Plain runs the same model in the plainest way, without plans.
func Plain(m *randgraph.Model) (Outcome, error) {
	return PlainFrom(m, func(x float32) float32 { return x })
}

// Nudged is [Plain] from variables that begin a unit in the last place above.
func Nudged(m *randgraph.Model) (Outcome, error) {
	return PlainFrom(m, func(x float32) float32 {
		return math.Nextafter32(x, float32(math.Inf(1)))
	})
}

// PlainFrom runs a model from variables of which a function is taken.
func PlainFrom(m *randgraph.Model, begin func(float32) float32) (Outcome, error) {
	roots := slices.Clone(m.Updates)
	for _, f := range m.Fetches {
		roots = append(roots, f.Node.ID)
	}
	live := m.Graph.Ancestors(roots)
	for _, n := range append(m.Graph.Variables(), m.Graph.Inputs()...) {
		live[n.ID] = true
	}
	machine, err := reference.New(m.Graph, live, nil)
	if err != nil {
		return nil, err
	}
	// Initial values are the session's business: take them from one.
	s, err := gomem.Compile(context.Background(), m.Graph, gomem.Options{Seed: 1, Network: &Echo{}},
		gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, v := range s.Variables() {
		value, err := s.Get(v)
		if err != nil {
			return nil, err
		}
		start(machine.Value(v), value, begin)
	}
	var out Outcome
	for step := range Steps {
		for v, data := range Feeds(m, step) {
			copy(machine.Value(v).Data, data.Data)
		}
		if err := machine.Step(); err != nil {
			return nil, err
		}
		for _, f := range m.Fetches {
			out = append(out, slices.Clone(machine.Value(f).Data))
		}
	}
	for _, v := range s.Variables() {
		out = append(out, machine.Value(v).Data)
	}
	return out, nil
}

// start gives a variable its first value: of numbers in f32 a function is taken.
func start(to, from gomem.Tensor, begin func(float32) float32) {
	copy(to.Data, from.Data)
	if from.Type.DType != graph.F32 {
		return
	}
	for i, x := range from.F32() {
		to.F32()[i] = begin(x)
	}
}

// RandomOptions draws any options that a user may give.
func RandomOptions(t *rapid.T) gomem.Options {
	return gomem.Options{
		Policy: rapid.SampledFrom([]planner.Policy{planner.Vanilla, planner.Thesis,
			planner.Thesis, planner.Auto, planner.Grappler}).Draw(t, "policy"),
		Strategy:    rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy"),
		Partition:   rapid.SampledFrom([]int{1, 2, 5, 20, 200}).Draw(t, "partition"),
		Lookahead:   rapid.IntRange(1, 4).Draw(t, "lookahead"),
		NoPlacement: rapid.IntRange(0, 3).Draw(t, "placement") == 0,
		NoSwap:      rapid.IntRange(0, 3).Draw(t, "swap") == 0,
		Streams:     rapid.IntRange(1, 3).Draw(t, "streams"),
		Threads:     rapid.IntRange(1, 3).Draw(t, "threads"),
	}
}

// Values are the bits of all variables.
func Values(t *testing.T, s *gomem.Session) [][]byte {
	t.Helper()
	var all [][]byte
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x.Data)
	}
	return all
}

// SameBits says whether two lists of values have the same bits.
func SameBits(a, b [][]byte) bool { return slices.EqualFunc(a, b, slices.Equal[[]byte]) }

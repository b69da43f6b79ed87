package nn_test

import (
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/nn"
)

// machine executes values of a model, or an objective, in a plain loop.
type machine struct {
	*reference.Machine
	t     testing.TB
	model *nn.Model
	steps int
}

// run makes a machine for values, with all updates of all objectives if train.
func run(t testing.TB, m *nn.Model, train bool, values ...graph.Value) *machine {
	t.Helper()
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	roots := []graph.NodeID{m.Seed.Node.ID, m.LearningRate.Node.ID, m.Step.Node.ID}
	for _, v := range append(append([]graph.Value{}, values...), m.Data...) {
		roots = append(roots, v.Node.ID)
	}
	for _, n := range m.Graph.Variables() {
		roots = append(roots, n.ID)
	}
	for _, o := range m.Objectives {
		roots = append(roots, o.Loss.Node.ID)
		for _, n := range o.Updates {
			if train {
				roots = append(roots, n.ID)
			}
		}
	}
	threads := pool.New(1)
	t.Cleanup(threads.Close)
	r, err := reference.New(m.Graph, m.Graph.Ancestors(roots), threads)
	if err != nil {
		t.Fatal(err)
	}
	x := &machine{Machine: r, t: t, model: m}
	for _, n := range m.Graph.Variables() {
		h := fnv.New64a()
		h.Write([]byte(n.Name))
		rng := rand.New(rand.NewPCG(1, h.Sum64()))
		switch v := x.Value(n.Value(0)); n.Out[0].DType {
		case graph.F32:
			draw(v.F32(), n.Init, rng)
		case graph.BF16:
			wide := make([]float32, len(v.U16()))
			draw(wide, n.Init, rng)
			for i, y := range wide {
				v.U16()[i] = tensor.ToBF16(y)
			}
		} // others are state, which starts as zeros
	}
	return x
}

// draw gives a variable the values that it starts with.
func draw(x []float32, init graph.Init, rng *rand.Rand) {
	for i := range x {
		switch init.Dist {
		case graph.Normal, graph.Truncated:
			x[i] = float32(init.Scale * rng.NormFloat64())
		case graph.Uniform:
			x[i] = float32(init.Scale * (2*rng.Float64() - 1))
		default:
			x[i] = float32(init.Scale)
		}
	}
}

// f32 is the elements of a value, to read or to write.
func (x *machine) f32(v graph.Value) []float32 { return x.Value(v).F32() }

// step executes everything once, and counts.
func (x *machine) step() {
	x.t.Helper()
	copy(x.Value(x.model.Seed).I32(), []int32{7, int32(x.steps)})
	if x.model.Schedule != nil {
		x.f32(x.model.LearningRate)[0] = x.model.Schedule.At(x.steps)
	}
	x.steps++
	x.f32(x.model.Step)[0] = float32(x.steps)
	if err := x.Step(); err != nil {
		x.t.Fatal(err)
	}
}

// noise fills elements with normal numbers.
func noise(seed uint64, x []float32) []float32 {
	rng := rand.New(rand.NewPCG(seed, 9))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

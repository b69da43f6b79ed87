package nn_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/planner"
)

// deep is a network with everything that an objective can have.
func deep(t *testing.T, o nn.MinimizeOptions) (m *nn.Model, x, y graph.Value) {
	t.Helper()
	m = nn.NewModel()
	x, y = m.Input("x", graph.F32, 8, 32), m.Input("y", graph.I32, 8)
	c := m.Training()
	h := x
	for _, name := range []string{"1", "2", "3", "4"} {
		h = nn.Dropout(c.In(name), nn.Relu(nn.Linear(c.In(name), h, 32)), 0.1)
		h = nn.BatchNorm(c.In(name).In("norm"), h)
	}
	m.Minimize(nn.CrossEntropy(nn.Linear(c.In("out"), h, 10), y), nn.AdamW{Exempt: nn.Vectors}, o)
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	return m, x, y
}

// target is an objective as a session takes it.
func target(m *nn.Model) gomem.Target {
	o := m.Objectives[0]
	t := gomem.Target{Name: o.Name, Fetches: []graph.Value{o.Loss}}
	for _, n := range o.Updates {
		t.Updates = append(t.Updates, n.ID)
	}
	return t
}

// TestPlansDoNotAffectResults: with gradients that are accumulated and clipped, every
// policy and budget gives the same losses and weights, to the bit, with the peak that
// was predicted in every execution.
func TestPlansDoNotAffectResults(t *testing.T) {
	m, x, y := deep(t, nn.MinimizeOptions{Clip: 0.5, Accumulate: 3})
	samePlans(t, m, x, y)
}

// samePlans holds a model that classifies to the first law: by every policy, and within the least
// budget, it has the losses and variables of vanilla's plan.
func samePlans(t *testing.T, m *nn.Model, x, y graph.Value) {
	t.Helper()
	want := planned(t, m, x, y, gomem.Options{Policy: planner.Vanilla})
	least, err := gomem.MinDevice(context.Background(), m.Graph,
		gomem.Options{Policy: planner.Auto}, target(m))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []gomem.Options{{Policy: planner.Thesis},
		{Policy: planner.Auto, DeviceBytes: least}} {
		have := planned(t, m, x, y, o)
		for i := range want {
			if !bytes.Equal(have[i], want[i]) {
				t.Fatalf("%s: value %d is %v, vanilla has %v", o.Policy, i, have[i], want[i])
			}
		}
	}
}

// planned is the losses of seven executions under options, and then all variables.
func planned(t *testing.T, m *nn.Model, x, y graph.Value, o gomem.Options) (out [][]byte) {
	t.Helper()
	ctx := context.Background()
	o.Seed = 1
	s, err := gomem.Compile(ctx, m.Graph, o, target(m))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for step := range 7 {
		images, labels := tensor.New(x.Type()), tensor.New(y.Type())
		noise(uint64(step), images.F32())
		for i := range labels.I32() {
			labels.I32()[i] = int32(i % 10)
		}
		fetched, err := s.Step(ctx, "train", gomem.Feeds{x: images, y: labels,
			m.Seed:         gomem.Pair(3, int32(step)),
			m.LearningRate: gomem.Scalar(m.Schedule.At(step / 3)),
			m.Step:         gomem.Scalar(float32(step + 1))})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Clone(fetched[0].Data))
		for _, u := range s.Usage() {
			if u.Actual > u.Predicted {
				t.Errorf("%+v", u)
			}
		}
	}
	for _, n := range m.Graph.Variables() {
		v, err := s.Get(n.Value(0))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v.Data)
	}
	return out
}

// TestClippingNeedsNoDevice: gradients that wait for their common norm wait on the
// host.
func TestClippingNeedsNoDevice(t *testing.T) {
	least := func(o nn.MinimizeOptions) int64 {
		m, _, _ := deep(t, o)
		n, err := gomem.MinDevice(context.Background(), m.Graph,
			gomem.Options{Policy: planner.Thesis}, target(m))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	free, clipped := least(nn.MinimizeOptions{}), least(nn.MinimizeOptions{Clip: 1})
	accumulated := least(nn.MinimizeOptions{Clip: 1, Accumulate: 4})
	const gradient = 4 * 32 * 32 // bytes of one, of five
	if clipped > free+gradient/4 || accumulated > free+gradient/4 {
		t.Errorf("the device needs %d bytes, clipped %d, accumulated %d", free, clipped,
			accumulated)
	}
}

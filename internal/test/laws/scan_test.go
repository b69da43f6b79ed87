package laws_test

import (
	"bytes"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// speech is DeepSpeech in one of its forms, of some frames.
func speech(t *testing.T, frames int, form func(c *models.DeepSpeechConfig)) *models.Model {
	t.Helper()
	c, err := models.NewDeepSpeechConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	c.Frames = frames
	form(&c)
	m, err := models.DeepSpeech(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func unrolled(c *models.DeepSpeechConfig) { c.Unrolled = true }
func scanned(c *models.DeepSpeechConfig)  { c.Scanned = true }

// heard is the losses of three steps, and what they leave of the variables.
func heard(t *testing.T, m *models.Model, o gomem.Options) (out [][]byte) {
	t.Helper()
	o.Seed = 3
	s, err := gomem.Compile(t.Context(), m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	feeds := gomem.Feeds{}
	for k, n := range m.Graph.Inputs() {
		x := gomem.NewTensor(n.Out[0])
		switch {
		case x.Type.DType == graph.F32:
			for i := range x.F32() {
				x.F32()[i] = float32((i*7+k)%13)/6 - 1
			}
		case x.Type.Rank() == 2: // labels
			for i := range x.I32() {
				x.I32()[i] = int32(i % 28)
			}
		default: // how many there are of them, and of frames
			for i := range x.I32() {
				x.I32()[i] = 4
				if n.Name == "frames" {
					x.I32()[i] = 18
				}
			}
		}
		feeds[n.Value(0)] = x
	}
	feeds[m.LearningRate] = gomem.Scalar(0.01)
	for step := range 3 {
		feeds[m.Seed], feeds[m.Step] = gomem.Pair(3, int32(step)), gomem.Scalar(float32(step+1))
		got, err := s.Step(t.Context(), m.Objectives[0].Name, feeds)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(got[0].Data))
	}
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x.Data)
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			t.Errorf("%d bytes of %s are used, %d were predicted", u.Actual, u.Space, u.Predicted)
		}
	}
	return out
}

// TestScannedDeepSpeech: the LSTM as a loop has the bits of the unrolled one in training, also
// within half of vanilla's memory, and a plan that does not grow with the frames.
func TestScannedDeepSpeech(t *testing.T) {
	t.Parallel()
	want := heard(t, speech(t, 20, unrolled), gomem.Options{Policy: planner.Vanilla})
	for _, o := range []gomem.Options{{Policy: planner.Vanilla}, {Policy: planner.Thesis},
		{Policy: planner.Auto, Draft: true}} {
		m := speech(t, 20, scanned)
		if o.Policy != planner.Vanilla {
			least, err := gomem.MinDevice(t.Context(), m.Graph, o, train.Targets(&m.Model)...)
			if err != nil {
				t.Fatal(err)
			}
			o.DeviceBytes = least
		}
		for i, got := range heard(t, m, o) {
			if !bytes.Equal(got, want[i]) {
				t.Errorf("%s: value %d differs", o.Policy, i)
			}
		}
	}
	var steps []int
	for _, frames := range []int{20, 40} {
		m := speech(t, frames, scanned)
		p, err := planner.Compile(t.Context(), m.Graph, train.Targets(&m.Model)[0],
			planner.Options{Policy: planner.Vanilla})
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, len(p.Plan.Steps))
	}
	if windows := 20; steps[1]-steps[0] > 2*windows {
		t.Errorf("plans of %v steps", steps)
	}
}

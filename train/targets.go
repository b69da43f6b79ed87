package train

import (
	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// evaluation is the name of the target that changes nothing.
const evaluation = "eval"

// Targets are what a run of a model computes: its objectives, by their names,
// each a loss and metrics with its updates; and "eval", the held-out loss,
// metrics and outputs.
func Targets(m *nn.Model) []gomem.Target {
	var targets []gomem.Target
	for _, o := range m.Objectives {
		t := gomem.Target{Name: o.Name, Fetches: fetches(o.Loss, o.Metrics)}
		for _, f := range o.Factors {
			t.Fetches = append(t.Fetches, f.Left, f.Right, f.Scale)
		}
		for _, n := range o.Updates {
			t.Updates = append(t.Updates, n.ID)
		}
		targets = append(targets, t)
	}
	return append(targets, EvalTarget(m))
}

// fetches is the loss, then the metrics.
func fetches(loss graph.Value, metrics []nn.Metric) []graph.Value {
	out := []graph.Value{loss}
	for _, m := range metrics {
		out = append(out, m.Value)
	}
	return out
}

// moment says which execution inputs are for.
type moment struct {
	step      int  // of training, from 0
	pace      int  // of the learning rate
	execution int  // of any objective, from 0: with a batch and noise of its own
	turn      int  // of this objective, from 0
	masked    bool // nothing is to be learnt from its batch
}

// feeds are the inputs of an execution. They depend on nothing else, so that a
// resumed run is fed what an uninterrupted one would have been.
func feeds(m *nn.Model, inputs []gomem.Tensor, seed uint64, at moment) gomem.Feeds {
	folded := int32(uint32(seed) ^ uint32(seed>>32))
	f := gomem.Feeds{
		m.Seed:         gomem.Pair(folded, int32(at.execution)),
		m.LearningRate: gomem.Scalar(m.Schedule.At(at.pace)),
		m.Step:         gomem.Scalar(float32(at.turn + 1)),
	}
	for i, v := range m.Data {
		f[v] = inputs[i]
	}
	return f
}

// fits reports whether a batch has the inputs of a model.
func fits(m *nn.Model, b data.Batch) bool {
	if len(b.Inputs) != len(m.Data) {
		return false
	}
	for i, v := range m.Data {
		if !b.Inputs[i].Type.Equal(v.Type()) {
			return false
		}
	}
	return true
}

// scalars are fetched numbers.
func scalars(ts []gomem.Tensor) []float64 {
	out := make([]float64, len(ts))
	for i, t := range ts {
		out[i] = float64(t.F32()[0])
	}
	return out
}

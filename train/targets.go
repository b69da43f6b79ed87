package train

import (
	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
)

// Targets are what a run of a model computes: "train", its loss and metrics
// with all updates, and "eval", its held-out loss and metrics.
func Targets(m *models.Model) []gomem.Target {
	return []gomem.Target{
		gomem.Training(m.Graph, fetches(m.Loss, m.TrainMetrics)...),
		gomem.Evaluation(fetches(m.EvalLoss, m.EvalMetrics)...),
	}
}

// fetches is the loss, then the metrics.
func fetches(loss graph.Value, metrics []models.Metric) []graph.Value {
	out := []graph.Value{loss}
	for _, m := range metrics {
		out = append(out, m.Value)
	}
	return out
}

// feeds are the inputs of a step, from 0. They depend on nothing else, so that
// a resumed run is fed what an uninterrupted one would have been.
func feeds(m *models.Model, b data.Batch, seed uint64, step int) gomem.Feeds {
	folded := int32(uint32(seed) ^ uint32(seed>>32))
	return gomem.Feeds{
		m.Source:       gomem.I32(b.Source, b.Pairs, b.Length),
		m.Target:       gomem.I32(b.Target, b.Pairs, b.Length),
		m.Seed:         gomem.I32([]int32{folded, int32(step)}, 2),
		m.LearningRate: gomem.F32([]float32{m.Schedule.At(step)}),
		m.Step:         gomem.F32([]float32{float32(step + 1)}),
	}
}

// scalar is a fetched number.
func scalar(t gomem.Tensor) float64 { return float64(t.F32()[0]) }

// named gives fetched metrics their names.
func named(metrics []models.Metric, values []float64) map[string]float64 {
	out := map[string]float64{}
	for i, m := range metrics {
		out[m.Name] = values[i]
	}
	return out
}

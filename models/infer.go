package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// Evaluation is what of a model evaluates, in a graph of its own: the inputs, and
// what the held-out loss, the metrics and the outputs are computed of. It has the
// parameters and running averages by their names, no optimizer's state, no
// gradients and no objectives, so that its plans take a small part of training's
// memory. The results are the model's to the bit.
func (m *Model) Evaluation() (*Model, error) {
	roots := append([]graph.Value{m.EvalLoss}, m.EvalOutputs...)
	for _, metric := range m.EvalMetrics {
		roots = append(roots, metric.Value)
	}
	x, err := extract(m.Graph, roots)
	if err != nil {
		return nil, err
	}
	e := m.on(x)
	e.EvalLoss, e.EvalOutputs = x.of(m.EvalLoss), x.all(m.EvalOutputs)
	e.EvalMetrics = nil
	for _, metric := range m.EvalMetrics {
		e.EvalMetrics = append(e.EvalMetrics, Metric{Name: metric.Name, Value: x.of(metric.Value)})
	}
	return e, nil
}

// Predictor is a model that predicts and can do nothing else: its graph has what
// the output is computed of, and no other variables. Of its inputs only those that
// the output depends on have to be fed.
type Predictor struct {
	*Model
	Output graph.Value
}

// ResNetPredictor is the classifier of [ResNet]. Its input is images, f32[batch 3
// pixels pixels], and its output their logits, f32[batch classes]. Rows do not
// depend on each other.
func ResNetPredictor(c ResNetConfig) (*Predictor, error) {
	m, err := ResNet(c)
	if err != nil {
		return nil, err
	}
	return m.predictor(m.EvalOutputs[0].Node.In[0]) // what the best class is the best of
}

// DeepSpeechPredictor is the recogniser of [DeepSpeech]. Its input is features,
// f32[frames batch coefficients], and its output the logits of each frame's symbol,
// f32[frames batch symbols]. Utterances do not depend on each other, nor frames on
// later ones but for the context that each is seen with: there may be more of both
// than in training.
func DeepSpeechPredictor(c DeepSpeechConfig) (*Predictor, error) {
	m, err := DeepSpeech(c)
	if err != nil {
		return nil, err
	}
	return m.predictor(m.EvalOutputs[0])
}

// WGANPredictor is the generator of [WGAN]. Its input is the seed, of which the
// second number does not count, and its output images f32[batch 3 pixels pixels],
// about from −1 to 1. They are those that an evaluation in training shows, if the
// seed is the run's. The images of a batch depend on each other: norms are of the
// batch's statistics.
func WGANPredictor(c WGANConfig) (*Predictor, error) {
	m, err := WGAN(c)
	if err != nil {
		return nil, err
	}
	return m.predictor(m.EvalOutputs[0])
}

// predictor is the model with one output.
func (m *Model) predictor(output graph.Value) (*Predictor, error) {
	x, err := extract(m.Graph, []graph.Value{output})
	if err != nil {
		return nil, err
	}
	return &Predictor{m.on(x), x.of(output)}, nil
}

// on is the model without anything to compute, on a part of its graph.
func (m *Model) on(x *extraction) *Model {
	e := *m
	e.Graph, e.Data = x.graph, x.all(m.Data)
	e.Seed, e.LearningRate, e.Step = x.of(m.Seed), x.of(m.LearningRate), x.of(m.Step)
	e.Objectives, e.EvalLoss, e.EvalMetrics, e.EvalOutputs = nil, graph.Value{}, nil, nil
	return &e
}

// extraction is a part of a graph, copied.
type extraction struct {
	graph  *graph.Graph
	copies []*graph.Node // by the number of the node that was copied
}

// extract copies what roots depend on, and all inputs, in their order.
func extract(g *graph.Graph, roots []graph.Value) (*extraction, error) {
	var ids []graph.NodeID
	for _, v := range roots {
		ids = append(ids, v.Node.ID)
	}
	live := g.Ancestors(ids)
	x := &extraction{graph.New(), make([]*graph.Node, g.Len())}
	for _, n := range g.Nodes() {
		if !live[n.ID] && n.Kind != graph.KindInput {
			continue
		}
		c, err := x.graph.Copy(n, n.Op, x.all(n.In)...)
		if err != nil {
			return nil, fmt.Errorf("part of a model: %w", err)
		}
		x.copies[n.ID] = c
	}
	return x, nil
}

// of is the copy of a value.
func (x *extraction) of(v graph.Value) graph.Value { return x.copies[v.Node.ID].Value(v.Index) }

func (x *extraction) all(vs []graph.Value) []graph.Value {
	var out []graph.Value
	for _, v := range vs {
		out = append(out, x.of(v))
	}
	return out
}

// MaxFrames is the longest recording that a graph can be built for, in frames.
const MaxFrames = maxFrames

// Budget is the memory that a size of the models is meant for, in bytes.
func Budget(size string) (device, host int64) { return replicaBudget(size) }

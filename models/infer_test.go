package models

import (
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
)

// smallModels are all models at their smallest size.
func smallModels(t *testing.T) []*Model {
	t.Helper()
	var all []*Model
	add := func(m *Model, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	moe, _ := NewMoEConfig("s512")
	add(MoE(moe))
	transformer, _ := NewTransformerConfig("s512")
	add(Transformer(transformer))
	resnet, _ := NewResNetConfig("s512")
	add(ResNet(resnet))
	wgan, _ := NewWGANConfig("s512")
	add(WGAN(wgan))
	speech, _ := NewDeepSpeechConfig("s512")
	add(DeepSpeech(speech))
	recurrent, _ := NewLSTMLMConfig("s512")
	add(LSTMLM(recurrent))
	return all
}

// TestEvaluationHasNoTraining: an evaluation has the parameters that the held-out
// pass reads, and nothing that only training needs.
func TestEvaluationHasNoTraining(t *testing.T) {
	for _, m := range smallModels(t) {
		e, err := m.Evaluation()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := e.Graph.Parameters(), m.Graph.Parameters(); got != want {
			t.Errorf("%s: %d parameters, the model has %d", m.Name, got, want)
		}
		if n := len(e.Graph.Updates()); n > 0 || len(e.Objectives) > 0 {
			t.Errorf("%s: %d updates, %d objectives", m.Name, n, len(e.Objectives))
		}
		stateful := slices.ContainsFunc(m.Graph.Variables(),
			func(n *graph.Node) bool { return n.State })
		if stateful && len(e.Graph.Variables()) >= len(m.Graph.Variables()) ||
			e.Graph.Len() >= m.Graph.Len() {
			t.Errorf("%s: %d nodes of %d", m.Name, e.Graph.Len(), m.Graph.Len())
		}
		for i, v := range e.Data {
			if v.Graph() != e.Graph || v.Node.Name != m.Data[i].Node.Name {
				t.Errorf("%s: data %s", m.Name, v)
			}
		}
		if len(e.EvalMetrics) != len(m.EvalMetrics) || len(e.EvalOutputs) != len(m.EvalOutputs) {
			t.Errorf("%s: %d metrics, %d outputs", m.Name, len(e.EvalMetrics), len(e.EvalOutputs))
		}
		if err := e.Graph.Verify(); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if m.EvalLoss.Graph() != m.Graph || len(m.Objectives) == 0 {
			t.Errorf("%s: the model itself has changed", m.Name)
		}
	}
}

// TestPredictors: what predicts has what it predicts by, and the output's type.
func TestPredictors(t *testing.T) {
	resnet, _ := NewResNetConfig("s512")
	wgan, _ := NewWGANConfig("s512")
	speech, _ := NewDeepSpeechConfig("s512")
	speech.Frames = 2 * speech.Frames
	for _, c := range []struct {
		build func() (*Predictor, error)
		want  []int
		reads string
	}{
		{func() (*Predictor, error) { return ResNetPredictor(resnet) },
			[]int{resnet.Images, resnet.Classes}, "images"},
		{func() (*Predictor, error) { return WGANPredictor(wgan) },
			[]int{wgan.Images, 3, wgan.Pixels, wgan.Pixels}, "seed"},
		{func() (*Predictor, error) { return DeepSpeechPredictor(speech) },
			[]int{speech.Frames, speech.Utterances, speech.Symbols}, "features"},
	} {
		p, err := c.build()
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Output.Type(); !slices.Equal(got.Sizes(), c.want) {
			t.Errorf("%s: output %s, want %v", p.Name, got, c.want)
		}
		live := p.Graph.Ancestors([]graph.NodeID{p.Output.Node.ID})
		for _, n := range p.Graph.Nodes() {
			switch {
			case n.Kind == graph.KindInput && live[n.ID] != (n.Name == c.reads):
				t.Errorf("%s reads %s: %t", p.Name, n.Name, live[n.ID])
			case n.Kind != graph.KindInput && !live[n.ID]:
				t.Errorf("%s: nobody needs %s", p.Name, n.Name)
			}
		}
	}
}

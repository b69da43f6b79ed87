package models

import (
	"path"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// TestUpdatesAreCommon: of a model for several workers, every update depends only on what
// is the same on all of them: what has been exchanged, variables, constants, the learning
// rate and the step. Gradients that are being accumulated are each worker's own.
func TestUpdatesAreCommon(t *testing.T) {
	tr := Training{Workers: 2, Accumulate: 2, Clip: 1}
	resNet, transformer := resNetConfig(t, "s512"), transformerConfig(t, "s512")
	speech, gan := deepSpeechConfig(t, "s512"), wganConfig(t, "s512")
	gpt := gptConfig(t, "s512", LlamaBlocks)
	moe, err := NewMoEConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	recurrent, err := NewLSTMLMConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := NewTopicConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	recurrent.Training, topic.Training = tr, tr
	resNet.Training, transformer.Training, moe.Training = tr, tr, tr
	speech.Training, gan.Training, gpt.Training = tr, tr, tr
	for name, build := range map[string]func() (*Model, error){
		"resnet":      func() (*Model, error) { return ResNet(resNet) },
		"transformer": func() (*Model, error) { return Transformer(transformer) },
		"deepspeech":  func() (*Model, error) { return DeepSpeech(speech) },
		"wgan":        func() (*Model, error) { return WGAN(gan) },
		"gpt":         func() (*Model, error) { return GPT(gpt) },
		"lstm-lm":     func() (*Model, error) { return LSTMLM(recurrent) },
		"topic":       func() (*Model, error) { return Topic(topic) },
		"moe":         func() (*Model, error) { return MoE(moe) },
	} {
		m, err := build()
		if err != nil {
			t.Fatal(err)
		}
		updates := 0
		for _, o := range m.Objectives {
			for _, n := range o.Updates {
				if updates++; !isPartial(n.In[0].Node.Name) {
					mustBeCommon(t, name, &m.Model, n)
				}
			}
		}
		if updates == 0 {
			t.Errorf("%s has no updates", name)
		}
	}
}

// mustBeCommon walks from an update to leaves, and no further than to what is exchanged.
func mustBeCommon(t *testing.T, name string, m *nn.Model, update *graph.Node) {
	t.Helper()
	seen := map[*graph.Node]bool{}
	todo := []*graph.Node{update}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[n] || n.Awaits() {
			continue
		}
		seen[n] = true
		own := n.Kind == graph.KindInput && n != m.LearningRate.Node && n != m.Step.Node
		if own || isPartial(n.Name) {
			t.Fatalf("%s: update %s depends on %s, %s", name, update.Name, n.Kind, n.Name)
		}
		for _, v := range n.In {
			todo = append(todo, v.Node)
		}
	}
}

// isPartial reports whether a variable adds up what is a worker's own until it is exchanged:
// gradients, what batches weigh, and what running averages fold in.
func isPartial(name string) bool {
	switch path.Base(name) {
	case "gradient", "counted", "sum0", "sum1":
		return true
	}
	return false
}

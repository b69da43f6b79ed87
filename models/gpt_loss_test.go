package models

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// TestLongTextsHaveNoLogits: where there are many tokens no training has logits, whatever is
// trained and however the matrix is stored, and its losses have the bits of an evaluation, which
// has logits.
func TestLongTextsHaveNoLogits(t *testing.T) {
	adapters := &nn.Adapters{Rank: 2, Alpha: 2}
	for name, change := range map[string]func(c *GPTConfig){
		"whole":    func(*GPTConfig) {},
		"adapters": func(c *GPTConfig) { c.Training.Adapters = adapters },
		"frozen": func(c *GPTConfig) {
			c.Training.Frozen = []string{"model/embed_tokens"}
		},
		"few bits": func(c *GPTConfig) { c.Store = "q8_0" },
		"few bits and adapters": func(c *GPTConfig) {
			c.Store, c.Training.Adapters = "q4_0", adapters
		},
		"bfloat16": func(c *GPTConfig) {
			c.Store, c.Untied, c.Training.Adapters = "bf16", true, adapters
		},
	} {
		c := gptConfig(t, "s512", LlamaBlocks)
		c.Texts, c.Length, c.Layers, c.Dropout = 1, c.Width+lossRows+1, 1, 0
		change(&c)
		if c.Training.Adapters != nil || c.Store != "" {
			c.Length = lossRows + 1
		}
		m := buildGPT(t, c)
		loss := m.Objectives[0].Loss
		logits := graph.Of(graph.F32, c.Texts, c.Length, c.Vocab)
		for id, needed := range m.Graph.Ancestors([]graph.NodeID{loss.Node.ID}) {
			for _, out := range m.Graph.Node(graph.NodeID(id)).Out {
				if needed && out.SameShape(logits) {
					t.Errorf("%s: the loss needs %s", name, m.Graph.Node(graph.NodeID(id)).Name)
				}
			}
		}
		x := newMachine(t, m, false, loss, m.EvalLoss)
		for i := range c.Length {
			x.Value(m.Data[0]).I32()[i] = int32(i % c.Vocab)
			x.Value(m.Data[1]).I32()[i] = int32(7 * i % c.Vocab)
		}
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		if got, want := x.Value(loss).F32()[0], x.Value(m.EvalLoss).F32()[0]; got != want {
			t.Errorf("%s: the loss is %v, by logits %v", name, got, want)
		}
	}
}

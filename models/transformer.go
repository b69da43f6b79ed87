package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// TransformerConfig is one Transformer. [NewTransformerConfig] fills it in; every
// number may be changed afterwards.
type TransformerConfig struct {
	Size string // s512, s64 or base

	Pairs  int // pairs of texts a step
	Length int // tokens of a source and of a target text

	Layers int // layers of the encoder, and of the decoder
	Width  int // d, the size of a token's representation
	Hidden int // hidden units of a feed-forward sublayer
	Heads  int // attention heads, of Width/Heads each
	Vocab  int // sub-words, those that a tokenizer leaves unused included

	Dropout   float32 // of residual branches, embeddings, attention weights and hidden units
	Smoothing float32 // of labels, over all sub-words
	Fine      bool    // norms, dropout and optimizer composed of arithmetic, as in TensorFlow 1
	Schedule  InverseSqrt

	Training Training // in place of the updates' own
}

// NewTransformerConfig is the model of a size: "base" is transformer_base of
// Tensor2Tensor on English and German (61 million parameters, 4,096 words a
// step), "s64" its replica at 1/64 of the memory, and "s512" a small one for
// tests.
func NewTransformerConfig(size string) (TransformerConfig, error) {
	c := TransformerConfig{Size: size, Layers: 6, Heads: 8, Dropout: 0.1, Smoothing: 0.1}
	switch size {
	case "base":
		c.Pairs, c.Length, c.Width, c.Hidden, c.Vocab = 64, 64, 512, 2048, 33708
		c.Schedule = InverseSqrt{Scale: 2 / math.Sqrt(512), Warmup: 8000}
	case "s64":
		c.Pairs, c.Length, c.Width, c.Hidden, c.Heads, c.Vocab = 16, 32, 64, 256, 1, 4214
		c.Schedule = InverseSqrt{Scale: 0.04, Warmup: 100}
	case "s512":
		c.Pairs, c.Length, c.Layers, c.Width, c.Hidden, c.Heads, c.Vocab = 4, 16, 2, 32, 64, 2, 528
		c.Schedule = InverseSqrt{Scale: 0.05, Warmup: 30}
	default:
		return TransformerConfig{}, unknownSize(size)
	}
	return c, nil
}

// Validate reports the first number that no model can have, on one line that
// names the option and what to do.
func (c TransformerConfig) Validate() error {
	if _, err := NewTransformerConfig(c.Size); err != nil {
		return err
	}
	if err := texts(c.Pairs, c.Length); err != nil {
		return err
	}
	if err := within(
		limit{"--depth", c.Layers, 1, maxLayers},
		limit{"width", c.Width, 2, math.MaxInt32},
		limit{"hidden units", c.Hidden, 1, math.MaxInt32},
		limit{"heads", c.Heads, 1, max(1, c.Width)},
		limit{"vocabulary", c.Vocab, 2, math.MaxInt32},
	); err != nil {
		return err
	}
	switch {
	case c.Width%c.Heads != 0:
		return fmt.Errorf("width is %d: want a multiple of the %d heads", c.Width, c.Heads)
	case c.Width%2 != 0:
		return fmt.Errorf("width is %d: want an even number", c.Width)
	}
	if err := fractions(share{"dropout", c.Dropout},
		share{"label smoothing", c.Smoothing}); err != nil {
		return err
	}
	return c.Schedule.Validate()
}

// Parameters is the number of elements of all variables that are not optimizer
// state, by closed form.
func (c TransformerConfig) Parameters() int64 {
	d, ff, layers := int64(c.Width), int64(c.Hidden), int64(c.Layers)
	feedForward := 2*d*ff + ff + d
	encoder := layers * (4*d*d + feedForward + 4*d)
	decoder := layers * (8*d*d + feedForward + 6*d)
	return int64(c.Vocab)*d + targetSpaces*d + encoder + decoder + 4*d
}

// targetSpaces is the number of kinds of target texts that have an embedding;
// only one of them is in use.
const targetSpaces = 32

// layerNormEps is added to the variance that a layer norm divides by.
const layerNormEps = 1e-6

// Transformer builds Vaswani et al.'s Transformer as Tensor2Tensor has it: norms
// before sublayers, sinusoid positions, one embedding for source, target and
// logits. Its data are sources and targets, ids i32[batch length] of which 0 is
// padding.
func Transformer(c TransformerConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := newModel("transformer", c.Size, Texts, c.Vocab, c.Schedule, c.Fine)
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	source, target := m.texts(c.Pairs, c.Length)
	p := &transformer{TransformerConfig: c}
	m.Declare(p.declare, source, target)
	loss, _ := p.run(m.Training(), source, target)
	c.Training.Minimize(&m.Model, loss, nn.Adam{Betas: []float32{0.9, 0.997}, Eps: 1e-9},
		nn.MinimizeOptions{})
	p.evaluate(m, source, target)
	return m.done()
}

// evaluate appends the held-out pass: the same variables without dropout and label
// smoothing.
func (p *transformer) evaluate(m *Model, source, target graph.Value) {
	c := m.Model.Evaluation()
	defer c.Enter()()
	p.Smoothing = 0
	loss, logits := p.run(c, source, target)
	_, best := ops.TopK(logits, 1)
	m.Evaluate(loss, nn.Accuracy(logits, target, nn.CrossEntropyOptions{Padding: true}))
	m.Output(best)
}

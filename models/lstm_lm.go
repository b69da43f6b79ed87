package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// LSTMLMConfig is one language model of LSTM layers. [NewLSTMLMConfig] fills it in; every
// number may be changed afterwards.
type LSTMLMConfig struct {
	Size string // s512, s64 or base

	Texts  int // windows of text a step
	Length int // tokens of a window, through all of which gradients go back

	Layers int
	Units  int // of a layer's state, and the size of a token's representation
	Vocab  int // sub-words, those that a tokenizer leaves unused included

	Dropout  float32 // of what goes into layers and into the last product
	Schedule Constant

	Training Training // in place of the updates' own
}

// NewLSTMLMConfig is the model of a size: "base" has the shape of Orpheus' third
// application (nine matrices of 40,000 rows and columns, 14 billion parameters), "s64"
// is its replica at an eighth of the width with the same graph, and "s512" a small one for
// tests. The replicas have smaller batches, and learn faster.
func NewLSTMLMConfig(size string) (LSTMLMConfig, error) {
	c := LSTMLMConfig{Size: size, Layers: 1, Length: 20}
	switch size {
	case "base":
		c.Texts, c.Units, c.Vocab, c.Schedule = 100, 40000, 40000, 0.1
	case "s64":
		c.Texts, c.Units, c.Vocab, c.Schedule = 16, 5000, 5000, 0.5
	case "s512":
		c.Texts, c.Length, c.Units, c.Vocab, c.Schedule = 4, 8, 128, 528, 0.5
	default:
		return LSTMLMConfig{}, unknownSize(size)
	}
	return c, nil
}

// Validate reports the first number that no model can have, on one line that names
// the option and what to do.
func (c LSTMLMConfig) Validate() error {
	if _, err := NewLSTMLMConfig(c.Size); err != nil {
		return err
	}
	if err := texts(c.Texts, c.Length); err != nil {
		return err
	}
	if err := within(
		limit{"--length", c.Length, 2, maxFrames},
		limit{"--depth", c.Layers, 1, maxLayers},
		limit{"--depth times --length", c.Layers * c.Length, 1, maxFrames},
		limit{"units", c.Units, 1, math.MaxInt32 / 4},
		limit{"vocabulary", c.Vocab, 2, math.MaxInt32},
	); err != nil {
		return err
	}
	if !(c.Schedule > 0) || math.IsInf(float64(c.Schedule), 0) {
		return fmt.Errorf("learning rate is %v: want a positive number", float32(c.Schedule))
	}
	return fractions(share{"dropout", c.Dropout})
}

// Parameters is the number of elements of all variables that are not optimizer
// state, by closed form.
func (c LSTMLMConfig) Parameters() int64 {
	n := int64(c.Units)
	return int64(c.Vocab)*n + int64(c.Layers)*(8*n*n+4*n)
}

// LSTMLM builds a language model of LSTM layers: Orpheus' third application (Xie et al.
// 2018, section 7). Its data are those of [GPT]: windows of text and at each position the
// token after it, ids i32[texts length]; where the latter is [NoTarget], nothing is
// predicted. The evaluation's output is each position's loss, f32[texts length].
//
// The paper says that the state has 40 K elements, that a parameter matrix is 40 K × 40 K,
// and that plain SGD has batches of 100 examples; its text is the 1B-Word corpus, of 0.8 M
// words. It says neither how many layers there are, how wide tokens are, through how many
// steps gradients go back, nor the learning rate. Chosen here are one layer, tokens as wide
// as the state, so that U and V of each gate (there are four in an LSTM) are 40 K × 40 K, a
// vocabulary of 40 K sub-words, whose table is that of the logits, too, and 20 steps. The
// state begins each window with zeros. A matrix is a variable of its own: two of them fit
// on the paper's device of 12 GB.
func LSTMLM(c LSTMLMConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := nn.NewModel()
	tokens := m.Input("tokens", graph.I32, c.Texts, c.Length)
	targets := m.Input("targets", graph.I32, c.Texts, c.Length)
	labels, counts := labelled(targets)
	losses, _ := c.losses(m.Training(), tokens, labels)
	c.Training.Minimize(m, nn.MeanOver(losses, counts), nn.SGD{},
		nn.MinimizeOptions{Rate: c.Schedule, Join: true})
	losses, logits := c.losses(m.Evaluation(), tokens, labels)
	right := nn.MeanOver(ops.Correct(logits, labels), counts)
	m.Evaluate(nn.MeanOver(losses, counts), nn.Metric{Name: "accuracy", Value: right})
	m.Output(losses)
	device, host := replicaBudget(c.Size)
	of := &Model{Model: *m, Name: "lstm-lm", Size: c.Size, Domain: Texts, Unit: Texts.unit(),
		Classes: c.Vocab, DeviceBytes: device, HostBytes: host}
	return of.done()
}

// losses is the cross-entropy of each position, f32[texts length], and the logits,
// f32[texts length vocab].
func (c LSTMLMConfig) losses(at *nn.Ctx, tokens, labels graph.Value) (losses,
	logits graph.Value) {
	if !tokens.Valid() || !labels.Valid() {
		return // the graph's error says why
	}
	table := nn.EmbeddingOptions{Name: "weight", Table: nn.Normal(c.deviation())}
	in := at.In("embedding")
	x := nn.Embedding(in, tokens, c.Vocab, c.Units, table)
	leave := in.Enter()
	// as large as if the table were not that of the logits; time first
	x = ops.Transpose(ops.Scale(x, float32(1/c.deviation())), 1, 0, 2)
	leave()
	for i := range c.Layers {
		layer := at.In("lstm").In(fmt.Sprint(i))
		x = nn.LSTM(layer, c.drop(layer, x), c.Units,
			nn.RecurrentOptions{PerGate: true, ForgetBias: forgetBias})
	}
	x = c.drop(at, x)
	leave = at.Enter()
	x = ops.Transpose(x, 1, 0, 2)
	leave()
	logits = nn.Unembedding(at.Share("embedding"), x, c.Vocab, table)
	defer at.Enter()()
	return ops.CrossEntropy(logits, labels, 0), logits
}

// deviation is that of the table's elements: logits then have about the same size however
// wide the state is.
func (c LSTMLMConfig) deviation() float64 { return 1 / math.Sqrt(float64(c.Units)) }

// drop leaves units out in training.
func (c LSTMLMConfig) drop(at *nn.Ctx, x graph.Value) graph.Value {
	return nn.Dropout(at, x, c.Dropout, nn.DropoutOptions{Name: "dropout"})
}

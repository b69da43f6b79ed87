package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/internal/tensor"
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
	m := newModel("transformer", c.Size, Texts, c.Vocab, c.Schedule)
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	source, target := m.texts(c.Pairs, c.Length)
	w := newTransformerWeights(m.Graph, c)
	p := &transformer{part: part{g: m.Graph, seed: m.Seed, training: true, fine: c.Fine},
		TransformerConfig: c, w: w}
	loss, _ := p.run(source, target)
	m.minimize(Objective{Name: "train", Times: 1, Loss: loss}, w.all,
		adam{Beta1: 0.9, Beta2: 0.997, Eps: 1e-9, Fine: c.Fine})
	evaluateTransformer(m, p, source, target)
	return m.done()
}

// evaluateTransformer appends the held-out pass: the same variables without
// dropout and label smoothing.
func evaluateTransformer(m *Model, p *transformer, source, target graph.Value) {
	defer m.Graph.Scope("eval")()
	p.training, p.Smoothing = false, 0
	loss, logits := p.run(source, target)
	_, best := ops.TopK(logits, 1)
	m.EvalLoss, m.EvalOutputs = loss, []graph.Value{best}
	m.EvalMetrics = []Metric{{Name: "accuracy", Value: p.mean(ops.Correct(logits, target), target)}}
}

// transformerWeights are the variables of the model.
type transformerWeights struct {
	parameters
	embedding graph.Value // [vocab width], also the last layer's weights
	space     graph.Value // [targetSpaces width]
	enc, dec  transformerStack
}

type transformerStack struct {
	layers []transformerLayer
	norm   scaleBias
}

// transformerLayer has no cross attention in an encoder.
type transformerLayer struct {
	att, cross transformerAttention
	ff         feedForward
}

type scaleBias struct{ scale, bias graph.Value }

// transformerAttention is a norm and projections [width width].
type transformerAttention struct {
	norm       scaleBias
	q, k, v, o graph.Value
}

type feedForward struct {
	norm           scaleBias
	w0, b0, w1, b1 graph.Value
}

func newTransformerWeights(g *graph.Graph, c TransformerConfig) *transformerWeights {
	w := &transformerWeights{parameters: parameters{g: g}}
	w.embedding = w.add("embedding", fanIn(c.Width), c.Vocab, c.Width)
	w.space = w.add("target-space", fanIn(c.Width), targetSpaces, c.Width)
	w.enc = w.stack(c, "enc", false)
	w.dec = w.stack(c, "dec", true)
	return w
}

func (w *transformerWeights) stack(c TransformerConfig, name string,
	cross bool) (s transformerStack) {
	defer w.g.Scope(name)()
	for i := range c.Layers {
		leave := w.g.Scope(fmt.Sprint(i))
		l := transformerLayer{att: w.attention(c, "att")}
		if cross {
			l.cross = w.attention(c, "cross")
		}
		l.ff = w.feedForward(c, "ff")
		s.layers = append(s.layers, l)
		leave()
	}
	s.norm = w.norm(c)
	return s
}

func (w *transformerWeights) norm(c TransformerConfig) scaleBias {
	return scaleBias{w.add("norm/scale", one(), c.Width), w.add("norm/bias", graph.Init{}, c.Width)}
}

func (w *transformerWeights) attention(c TransformerConfig, name string) transformerAttention {
	defer w.g.Scope(name)()
	d := c.Width
	square := func(name string) graph.Value { return w.add(name, glorot(d, d), d, d) }
	return transformerAttention{w.norm(c), square("q"), square("k"), square("v"), square("o")}
}

func (w *transformerWeights) feedForward(c TransformerConfig, name string) feedForward {
	defer w.g.Scope(name)()
	return feedForward{
		norm: w.norm(c),
		w0:   w.add("w0", glorot(c.Width, c.Hidden), c.Width, c.Hidden),
		b0:   w.add("b0", graph.Init{}, c.Hidden),
		w1:   w.add("w1", glorot(c.Hidden, c.Width), c.Hidden, c.Width),
		b1:   w.add("b1", graph.Init{}, c.Width),
	}
}

// sinusoids are the positions' representations, f32[length width]: sines in the
// first half, cosines in the second, of wave lengths from 2π to 20,000π.
func sinusoids(g *graph.Graph, length, width int) graph.Value {
	x := tensor.New(tensor.Of(graph.F32, length, width))
	half := width / 2
	for i := range half {
		rate := libm.Pow(1e4, -float64(i)/math.Max(1, float64(half-1)))
		for position := range length {
			row := x.F32()[position*width:]
			row[i] = float32(libm.Sin(float64(position) * rate))
			row[half+i] = float32(libm.Cos(float64(position) * rate))
		}
	}
	return g.Constant("positions", x)
}

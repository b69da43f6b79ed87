package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// GPTConfig is one decoder-only language model. [NewGPTConfig] fills it in; every
// number may be changed afterwards.
type GPTConfig struct {
	Size   string // s512, s64 or base
	Blocks string // GPT2Blocks or LlamaBlocks
	// Packed has several documents in a window, none of which attends to another.
	Packed bool

	Texts  int // windows of text a step
	Length int // tokens of a window

	Layers    int
	Width     int // the size of a token's representation
	Heads     int // attention heads
	HeadWidth int // of each; 0 means Width/Heads
	KeyHeads  int // heads of keys and values, each for a group of Heads; Heads in GPT-2
	Hidden    int // hidden units of a feed-forward sublayer
	Vocab     int // sub-words, those that a tokenizer leaves unused included
	// Positions are the learned ones, Length or more; in LlamaBlocks the most that a public
	// checkpoint says its network reads, 0 if none does.
	Positions int
	Untied    bool

	// Store has matrices that are not trained held in few bits: q8_0, q4_0, q4_k, q6_k, nf4, bf16
	// or f16; "": as f32. See [GPTConfig.Stored]. Without adapters [GPT] trains those of bf16 if
	// Training has Adam or AdamW with small moments: see [nn.Model.Halves].
	Store string
	// Stores has the matrices of some parameters held in a format each, and others as f32, where
	// it is not nil: it takes the place of Store.
	Stores map[string]string

	// Of LlamaBlocks, as the families of its public checkpoints differ in.
	Family     string // model_type in a public config.json; "" means llama
	RotaryBase float32
	Rotary     RotaryScaling
	HeadNorms  bool // queries and keys are normalised, head by head
	QueryBias  bool // of queries, keys and values
	OutputBias bool // of attention's result
	HiddenBias bool // of feed-forward sublayers
	Window     int  // the most tokens that one attends to, itself among them; 0: all before
	WindowFrom int  // the first layer in which that is so

	// Experts are in place of a feed-forward sublayer, Hidden units each, in families that have
	// them; a token has PerToken of them, by gates that, Renorm, add up to 1.
	Experts, PerToken int
	Renorm            bool

	Eps float32 // added to what norms divide by

	Dropout  float32 // of embeddings, attention weights and residual branches
	Decay    float32 // of weight matrices and embeddings, times the learning rate
	Clip     float32 // the most that the norm of all gradients may be; 0: no limit
	Schedule nn.CosineDecay

	Training Training // in place of the updates' own
}

// The kinds of blocks.
const (
	// GPT2Blocks have layer norms, learned positions, biases and a feed-forward
	// sublayer with GELU (Radford et al. 2019).
	GPT2Blocks = "gpt2"
	// LlamaBlocks have RMS norms, rotary positions, SwiGLU and no biases (Touvron et al.
	// 2023), and groups of heads share their keys and values (Ainslie et al. 2023).
	LlamaBlocks = "llama"
)

// NewGPTConfig is the model of a size: "base" is the small GPT-2 (124 million
// parameters), "s64" its replica at an eighth of the width with the same graph, and
// "s512" a small one for tests. With LlamaBlocks they are as wide and as deep.
func NewGPTConfig(size, blocks string) (GPTConfig, error) {
	c := GPTConfig{Size: size, Blocks: blocks, Layers: 12, Eps: 1e-5, Dropout: 0.1, Decay: 0.1,
		Clip: 1}
	c.Schedule.Floor = 0.1
	switch size {
	case "base":
		c.Texts, c.Length, c.Width, c.Heads, c.KeyHeads = 8, 1024, 768, 12, 4
		c.Hidden, c.Vocab = 3072, 50257
		c.Schedule.Rate, c.Schedule.Warmup, c.Schedule.Total = 6e-4, 2000, 600000
	case "s64":
		c.Texts, c.Length, c.Width, c.Heads, c.KeyHeads = 8, 128, 96, 3, 1
		c.Hidden, c.Vocab = 384, 6282
		c.Schedule.Rate, c.Schedule.Warmup, c.Schedule.Total = 3e-3, 50, 3000
	case "s512":
		c.Texts, c.Length, c.Layers, c.Width, c.Heads, c.KeyHeads = 4, 32, 2, 32, 4, 2
		c.Hidden, c.Vocab = 128, 528
		c.Schedule.Rate, c.Schedule.Warmup, c.Schedule.Total = 6e-3, 20, 600
	default:
		return GPTConfig{}, unknownSize(size)
	}
	switch blocks {
	case GPT2Blocks:
		c.KeyHeads, c.Positions = c.Heads, c.Length
	case LlamaBlocks:
		// two thirds of the hidden units, since SwiGLU has three matrices for two
		c.Hidden, c.Dropout, c.RotaryBase = c.Hidden*2/3, 0, 10000
	default:
		return GPTConfig{}, fmt.Errorf("unknown --blocks %q: want %s or %s", blocks, GPT2Blocks,
			LlamaBlocks)
	}
	return c, nil
}

// Validate reports the first number that no model can have, on one line that
// names the option and what to do.
func (c GPTConfig) Validate() error {
	if _, err := NewGPTConfig(c.Size, c.Blocks); err != nil {
		return err
	}
	if err := longTexts(c.Texts, c.Length, maxLong); err != nil {
		return err
	}
	if err := within(
		limit{"--depth", c.Layers, 1, maxLayers},
		limit{"width", c.Width, 2, math.MaxInt32},
		limit{"hidden units", c.Hidden, 1, math.MaxInt32},
		limit{"heads", c.Heads, 1, max(1, c.Width)},
		limit{"heads of keys", c.KeyHeads, 1, max(1, c.Heads)},
		limit{"vocabulary", c.Vocab, 2, math.MaxInt32},
	); err != nil {
		return err
	}
	if err := c.validateBlocks(); err != nil {
		return err
	}
	if err := c.validateStore(); err != nil {
		return err
	}
	if err := fractions(share{"dropout", c.Dropout}, share{"weight decay", c.Decay}); err != nil {
		return err
	}
	if !(c.Clip >= 0) || !(c.Eps > 0) || math.IsInf(float64(c.Clip+c.Eps), 0) {
		return fmt.Errorf("clip is %v and eps %v: want a number from 0, and one above 0", c.Clip,
			c.Eps)
	}
	return c.Schedule.Validate()
}

// validateBlocks demands heads that divide each other, and positions.
func (c GPTConfig) validateBlocks() error {
	switch {
	case c.HeadWidth < 0 || c.HeadWidth > math.MaxInt32/c.Heads:
		return fmt.Errorf("heads have width %d: want 1 or more", c.HeadWidth)
	case c.HeadWidth == 0 && c.Width%c.Heads != 0:
		return fmt.Errorf("width is %d: want a multiple of the %d heads", c.Width, c.Heads)
	case c.Heads%c.KeyHeads != 0:
		return fmt.Errorf("heads are %d: want a multiple of the %d of keys", c.Heads, c.KeyHeads)
	case c.Blocks == LlamaBlocks && c.size()%2 != 0:
		return fmt.Errorf("heads have width %d: want an even number", c.size())
	case c.Window < 0 || c.WindowFrom < 0:
		return fmt.Errorf("a window of %d tokens from layer %d on: want numbers from 0", c.Window,
			c.WindowFrom)
	case c.Blocks == LlamaBlocks && !(c.RotaryBase >= 1 && c.RotaryBase <= math.MaxFloat32):
		return fmt.Errorf("rotary base is %v: want a number from 1", c.RotaryBase)
	case c.Rotary.Kind == "yarn" && c.RotaryBase == 1:
		return fmt.Errorf("rotary base is 1: want more, for positions that are scaled by yarn")
	case c.Positions < c.Length && (c.Positions != 0 || c.Blocks == GPT2Blocks):
		return fmt.Errorf("--length is %d: want the %d positions of the network or less", c.Length,
			c.Positions)
	case c.Blocks == GPT2Blocks && (c.Untied || c.KeyHeads != c.Heads):
		return fmt.Errorf("gpt2 blocks have tied embeddings and %d heads of keys", c.Heads)
	case c.Blocks == GPT2Blocks && c.beyondGPT2():
		return fmt.Errorf("gpt2 blocks have no families, widths of heads or windows")
	}
	if err := c.fitsFamily(); err != nil {
		return err
	}
	return c.Rotary.validate(c.Length)
}

// beyondGPT2 reports what only families of LlamaBlocks have.
func (c GPTConfig) beyondGPT2() bool {
	return c.Family != "" || c.HeadWidth != 0 || c.HeadNorms || c.QueryBias || c.OutputBias ||
		c.HiddenBias || c.Window != 0 || c.Experts != 0 || c.Rotary != RotaryScaling{}
}

// size is the width of a head.
func (c GPTConfig) size() int {
	if c.HeadWidth != 0 {
		return c.HeadWidth
	}
	return c.Width / c.Heads
}

// Parameters is the number of elements of all variables that are not optimizer
// state, by closed form.
func (c GPTConfig) Parameters() int64 {
	d, h, layers := int64(c.Width), int64(c.Hidden), int64(c.Layers)
	table := int64(c.Vocab) * d
	if c.Blocks == GPT2Blocks {
		attention := 4*d*d + 4*d
		feedForward := 2*d*h + h + d
		return table + int64(c.Positions)*d + layers*(attention+feedForward+4*d) + 2*d
	}
	size := int64(c.size())
	queries, keys := size*int64(c.Heads), size*int64(c.KeyHeads)
	if c.Untied {
		table *= 2
	}
	feedForward := 3 * d * h
	if c.Experts > 0 {
		feedForward = expertParameters(c)
	}
	layer := 2*d*queries + 2*d*keys + feedForward + 2*d
	for has, n := range map[*bool]int64{&c.HeadNorms: 2 * size, &c.QueryBias: queries + 2*keys,
		&c.OutputBias: d, &c.HiddenBias: 2*h + d} {
		if *has {
			layer += n
		}
	}
	return table + layers*layer + d
}

// NoTarget is the target of a position where nothing is to be predicted.
const NoTarget = -1

// GPT builds a decoder-only language model: GPT-2, or LLaMA with grouped queries. Its
// data are windows of text and at each position the token after it, ids i32[texts
// length]; where the latter is [NoTarget], nothing is predicted. Packed, there are the positions
// within documents besides, i32[texts length]: a document begins where one is 0. It is trained by
// AdamW; matrices and embeddings decay, biases and norms do not. The evaluation's
// output is each position's loss, f32[texts length], of which perplexity is made.
//
// The parameters' names are those of public checkpoints, with slashes for dots: see
// [GPTConfig.PublicName]. In GPT2Blocks matrices are [in out], in LlamaBlocks [out in],
// as there.
func GPT(c GPTConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := nn.NewModel()
	m.Adapters, m.Packing = c.Training.Adapters, c.packing
	if c.trainsStored() {
		m.Packing, m.Halves = nil, func(_ string, t graph.Type) bool { return t.Rank() == 2 }
	}
	tokens := m.Input("tokens", graph.I32, c.Texts, c.Length)
	targets := m.Input("targets", graph.I32, c.Texts, c.Length)
	labels, counts := labelled(targets)
	p := &gpt{GPTConfig: c}
	if c.Packed {
		p.positions = m.Input("positions", graph.I32, c.Texts, c.Length)
	}
	losses, _ := p.losses(m.Training(), tokens, labels)
	c.Training.Minimize(m, nn.MeanOver(losses, counts), c.optimizer(),
		nn.MinimizeOptions{Rate: c.Schedule, Clip: c.Clip})
	losses, logits := p.losses(m.Evaluation(), tokens, labels)
	right := nn.MeanOver(ops.Correct(logits, labels), counts)
	m.Evaluate(nn.MeanOver(losses, counts), nn.Metric{Name: "accuracy", Value: right})
	m.Output(losses)
	return gptModel(m, c).done()
}

// labelled is targets, 0 where there is none, and where there is one, 1, else 0.
func labelled(targets graph.Value) (labels, counts graph.Value) {
	if !targets.Valid() {
		return // the graph's error says why
	}
	none := targets.Graph().Constant("none", tensor.FromI32([]int32{0}))
	there := ops.GreaterEqual(targets, none)
	return ops.Where(there, targets, none), ops.Cast(there, graph.F32)
}

// optimizer is AdamW, or Adam without decay.
func (c GPTConfig) optimizer() nn.Optimizer {
	betas := []float32{0.9, 0.95}
	if c.Decay == 0 {
		return nn.Adam{Betas: betas}
	}
	return nn.AdamW{Betas: betas, Decay: c.Decay, Exempt: nn.Vectors}
}

// gptModel is a network as a model of this package.
func gptModel(m *nn.Model, c GPTConfig) *Model {
	device, host := replicaBudget(c.Size)
	return &Model{Model: *m, Name: "gpt", Size: c.Size, Domain: Texts, Unit: Texts.unit(),
		Classes: c.Vocab, DeviceBytes: device, HostBytes: host}
}

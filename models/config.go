package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/nn"
)

// MoEConfig is one Transformer with mixture-of-experts layers. [NewMoEConfig]
// fills it in; every number may be changed afterwards.
type MoEConfig struct {
	Size string // s512, s64 or base

	Experts      int  // experts a layer, 2 or more
	ExpertHidden int  // hidden units of an expert
	Sparse       bool // gather and scatter tokens instead of multiplying by 0/1 tensors
	Fine         bool // norms, dropout and optimizer composed of arithmetic, as in TensorFlow 1
	Stacked      bool // one pair of variables for all experts of a layer, instead of one an expert

	Pairs  int // pairs of texts a step
	Length int // tokens of a source and of a target text; also the positions learned

	Layers    int // layers of the encoder, and of the decoder
	Width     int // d, the size of a token's representation
	Heads     int // attention heads
	HeadWidth int // d_kv, the size of a head's queries, keys and values
	Vocab     int // sub-words, those that a tokenizer leaves unused included
	Group     int // tokens that are gated together, at most

	CapacityTrain   float64 // slots of an expert, dense form: Group·CapacityTrain/Experts
	CapacityEval    float64 // the same in evaluation
	SecondThreshold float32 // gate at which the second choice is certain to be kept
	AuxWeight       float32 // of each layer's auxiliary loss
	Dropout         float32 // of residual branches, embeddings and attention weights
	Smoothing       float32 // of labels, over all sub-words
	Jitter          float32 // of logits in training: a factor in [1−Jitter, 1+Jitter)

	FactorMin int         // least size of the axes that Adafactor factors
	Schedule  InverseSqrt // of the learning rate

	Training Training // in place of the updates' own
}

// NewMoEConfig is the model of a size: "base" is the thesis' (861 million
// parameters), "s64" its replica at 1/64 of the memory with the same graph, and
// "s512" a small one for tests. The replicas learn faster: their warm-up is a
// matter of minutes, not of days.
func NewMoEConfig(size string) (MoEConfig, error) {
	c := MoEConfig{
		Size: size, Experts: 32, Layers: 6, Heads: 8,
		CapacityTrain: 1.25, CapacityEval: 2, SecondThreshold: 0.2, AuxWeight: 1e-2,
		Dropout: 0.1, Smoothing: 0.1, Jitter: 1e-2,
	}
	switch size {
	case "base":
		c.ExpertHidden, c.Pairs, c.Length = 2048, 4, 256
		c.Width, c.HeadWidth, c.Vocab, c.Group = 512, 128, 33792, 1024
		c.Schedule = InverseSqrt{Scale: 1, Warmup: 10000}
	case "s64":
		c.ExpertHidden, c.Pairs, c.Length = 256, 16, 32
		c.Width, c.HeadWidth, c.Vocab, c.Group = 64, 16, 4224, 128
		c.Schedule = InverseSqrt{Scale: 0.3, Warmup: 50}
	case "s512":
		c.Experts, c.ExpertHidden, c.Pairs, c.Length = 8, 64, 4, 16
		c.Layers, c.Width, c.Heads, c.HeadWidth, c.Vocab, c.Group = 2, 32, 4, 8, 528, 32
		c.Schedule = InverseSqrt{Scale: 0.3, Warmup: 30}
	default:
		return MoEConfig{}, unknownSize(size)
	}
	c.FactorMin = 128 * c.Width / 512 // replicas factor what base factors, and gates
	return c, nil
}

// Validate reports the first number that no model can have, on one line that
// names the option and what to do.
func (c MoEConfig) Validate() error {
	if _, err := NewMoEConfig(c.Size); err != nil {
		return err
	}
	for _, check := range []func() error{c.validateSizes, c.validateRates, c.validateCapacity,
		c.Schedule.Validate} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c MoEConfig) validateSizes() error {
	if err := within(
		limit{"--experts", c.Experts, 2, maxExperts},
		limit{"--expert-hidden", c.ExpertHidden, 1, maxHidden},
	); err != nil {
		return err
	}
	if err := texts(c.Pairs, c.Length); err != nil {
		return err
	}
	return within(
		limit{"--depth", c.Layers, 1, maxLayers},
		limit{"width", c.Width, 1, math.MaxInt32},
		limit{"heads", c.Heads, 1, math.MaxInt32},
		limit{"head width", c.HeadWidth, 1, math.MaxInt32},
		limit{"vocabulary", c.Vocab, 2, math.MaxInt32},
		limit{"group", c.Group, 1, math.MaxInt32},
		limit{"least factored axis", c.FactorMin, 1, math.MaxInt32},
	)
}

func (c MoEConfig) validateRates() error {
	if err := fractions(
		share{"dropout", c.Dropout}, share{"label smoothing", c.Smoothing},
		share{"jitter", c.Jitter}, share{"second choice threshold", c.SecondThreshold},
	); err != nil {
		return err
	}
	if !(c.AuxWeight >= 0 && c.AuxWeight < math.MaxFloat32) {
		return fmt.Errorf("auxiliary loss weight is %v: want a number from 0", c.AuxWeight)
	}
	for _, f := range []float64{c.CapacityTrain, c.CapacityEval} {
		if !(f > 0 && f <= maxExperts) {
			return fmt.Errorf("capacity factor is %v: want a positive number, such as 1.25", f)
		}
	}
	return nil
}

// validateCapacity demands a slot for a token in every expert's queue.
func (c MoEConfig) validateCapacity() error {
	_, group := c.experts().Groups(c.Pairs * c.Length)
	factor := min(c.CapacityTrain, c.CapacityEval)
	if !c.Sparse && c.experts().Slots(group, factor) < 1 {
		return fmt.Errorf("--experts is %d, too many for groups of %d tokens: want %d or less, a "+
			"larger --batch, or --moe sparse",
			c.Experts, group, int(float64(group)*factor))
	}
	return nil
}

// experts is the mixture of a layer.
func (c MoEConfig) experts() nn.MixtureOptions {
	return nn.MixtureOptions{Experts: c.Experts, Hidden: c.ExpertHidden, Group: c.Group,
		Capacity: c.CapacityTrain, EvalCapacity: c.CapacityEval, Threshold: c.SecondThreshold,
		Sparse: c.Sparse, Stacked: c.Stacked}
}

// Parameters is the number of elements of all variables that are not optimizer
// state, by closed form.
func (c MoEConfig) Parameters() int64 {
	d, heads := int64(c.Width), int64(c.Heads)*int64(c.HeadWidth)
	layers, e, h := int64(c.Layers), int64(c.Experts), int64(c.ExpertHidden)
	embeddings := (int64(c.Vocab) + int64(c.Length)) * d
	norms := (5*layers + 2) * d
	attention := 3 * layers * 4 * d * heads
	experts := 2 * layers * e * (2*d*h + d)
	return embeddings + norms + attention + experts
}

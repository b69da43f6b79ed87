package main

import (
	"fmt"
	"strconv"

	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// modelFlags choose a model.
type modelFlags struct {
	Model        string `group:"model" default:"moe" placeholder:"NAME" help:"moe: a Transformer with mixture-of-experts layers (default ${default})."`
	Size         string `group:"model" default:"s64" placeholder:"SIZE" help:"s512 (tiny), s64 (1/64 of base in memory) or base (861 million parameters) (default ${default})."`
	Experts      count  `group:"model" placeholder:"E" help:"Experts a layer (default: the size's)."`
	ExpertHidden count  `group:"model" placeholder:"H" help:"Hidden units of an expert (default: the size's)."`
	MoE          string `name:"moe" group:"model" enum:"dense,sparse" default:"dense" placeholder:"FORM" help:"How tokens reach experts: dense, by matrix products, or sparse, by gather and scatter (default ${default})."`
	Stacked      bool   `group:"model" help:"Keep the weights of a layer's experts in one variable instead of one an expert."`
	Batch        count  `group:"model" placeholder:"PAIRS" help:"Pairs of texts a step (default: the size's)."`
	Length       count  `group:"model" placeholder:"TOKENS" help:"Tokens a text, longer ones are cut (default: the size's)."`
}

// built is a model with what a run of it computes.
type built struct {
	config  models.MoEConfig
	model   *models.Model
	targets []compile.Target
}

// modelNames are the models that --model takes.
const modelNames = "moe"

// build makes the model's graph. It takes none of the model's memory.
func (f modelFlags) build() (*built, error) {
	if f.Model != "moe" {
		return nil, usagef("unknown model %q: want %s", f.Model, modelNames)
	}
	c, err := models.NewMoEConfig(f.Size)
	if err != nil {
		return nil, usagef("%w", err)
	}
	for _, o := range []struct {
		given count
		field *int
	}{{f.Experts, &c.Experts}, {f.ExpertHidden, &c.ExpertHidden}, {f.Batch, &c.Pairs}, {f.Length, &c.Length}} {
		if o.given > 0 {
			*o.field = int(o.given)
		}
	}
	c.Sparse, c.Stacked = f.MoE == "sparse", f.Stacked
	if err := c.Validate(); err != nil {
		return nil, usagef("%w", err)
	}
	m, err := models.MoE(c)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", f.Model, err)
	}
	return &built{config: c, model: m, targets: train.Targets(m)}, nil
}

// identity is what a checkpoint must agree on to continue this run: the model,
// and what its inputs are a function of.
func (b *built) identity(f modelFlags, corpus string, seed uint64) map[string]string {
	return map[string]string{
		"model": b.model.Name, "size": b.model.Size,
		"experts": strconv.Itoa(b.config.Experts), "expert-hidden": strconv.Itoa(b.config.ExpertHidden),
		"moe": f.MoE, "stacked": strconv.FormatBool(b.config.Stacked),
		"batch": strconv.Itoa(b.config.Pairs), "length": strconv.Itoa(b.config.Length),
		"data": corpus, "seed": strconv.FormatUint(seed, 10),
	}
}

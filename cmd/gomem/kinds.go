package main

import (
	"context"
	"io"
	"strconv"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// kind is a model that --model names, with the data that it learns from.
type kind struct {
	name  string
	flags []string // flags of some models that this one takes
	data  string   // what --data is by default
	build func(modelFlags) (m *models.Model, numbers map[string]string, err error)
	load  func(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error)
}

// dataset is what a run learns from.
type dataset struct {
	batches   data.Batches
	about     string          // what was read, on one line
	facts     []field         // more to show
	id        string          // tells data apart
	tokenizer *data.Tokenizer // nil where there is none
	scorer    func(last bool) train.Scorer
}

// kinds are the models.
var kinds = []kind{
	{name: "moe", flags: []string{"length", "experts", "expert-hidden", "moe", "stacked"}, data: "go:doc", build: buildMoE, load: loadTexts},
	{name: "transformer", flags: []string{"length"}, data: "go:doc", build: buildTransformer, load: loadTexts},
}

func buildMoE(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := models.NewMoEConfig(f.Size)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	setCounts(countField{f.Experts, &c.Experts}, countField{f.ExpertHidden, &c.ExpertHidden},
		countField{f.Batch, &c.Pairs}, countField{f.Length, &c.Length})
	c.Sparse, c.Stacked, c.Fine = f.MoE == "sparse", f.Stacked, f.Fine
	if err := c.Validate(); err != nil {
		return nil, nil, usagef("%w", err)
	}
	m, err := models.MoE(c)
	form := "dense"
	if c.Sparse {
		form = "sparse"
	}
	return m, map[string]string{
		"experts": strconv.Itoa(c.Experts), "expert-hidden": strconv.Itoa(c.ExpertHidden),
		"moe": form, "stacked": strconv.FormatBool(c.Stacked),
		"batch": strconv.Itoa(c.Pairs), "length": strconv.Itoa(c.Length),
	}, err
}

func buildTransformer(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := models.NewTransformerConfig(f.Size)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	setCounts(countField{f.Batch, &c.Pairs}, countField{f.Length, &c.Length})
	c.Fine = f.Fine
	if err := c.Validate(); err != nil {
		return nil, nil, usagef("%w", err)
	}
	m, err := models.Transformer(c)
	return m, map[string]string{"batch": strconv.Itoa(c.Pairs), "length": strconv.Itoa(c.Length)}, err
}

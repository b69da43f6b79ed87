//go:build linux && amd64 && !nocuda

package main

import (
	"github.com/gomem/gomem/models"
)

// config is a model and its size; the peer gets it as JSON, with what it is to do.
type config struct {
	Kind    string `json:"kind"` // transformer, moe or resnet
	Layers  int    `json:"layers,omitempty"`
	Width   int    `json:"width"`
	Hidden  int    `json:"hidden,omitempty"`
	Heads   int    `json:"heads,omitempty"`
	Head    int    `json:"head,omitempty"` // width of one, if not Width/Heads
	Vocab   int    `json:"vocab,omitempty"`
	Experts int    `json:"experts,omitempty"`
	Slots   int    `json:"slots,omitempty"` // of an expert
	Batch   int    `json:"batch"`
	Length  int    `json:"length,omitempty"`
	Blocks  [4]int `json:"blocks"` // of a ResNet's stages
	Pixels  int    `json:"pixels,omitempty"`
	Classes int    `json:"classes,omitempty"`

	build func() (*models.Model, error)
}

// configs are the models of the tables: the thesis' MoE, ResNet-152 and Transformer base.
func configs(small bool) ([]config, error) {
	size := "base"
	if small {
		size = "s512"
	}
	t, err := models.NewTransformerConfig(size)
	if err != nil {
		return nil, err
	}
	m, err := models.NewMoEConfig(size)
	if err != nil {
		return nil, err
	}
	r, err := models.NewResNetConfig(size)
	if err != nil {
		return nil, err
	}
	if r.Blocks, err = models.ResNetBlocks(r.Depth); err != nil {
		return nil, err
	}
	if !small {
		r.Images = 32
	}
	return []config{transformerOf(t), moeOf(m), resNetOf(r)}, nil
}

func transformerOf(c models.TransformerConfig) config {
	return config{Kind: "transformer", Layers: c.Layers, Width: c.Width, Hidden: c.Hidden,
		Heads: c.Heads, Head: c.Width / c.Heads, Vocab: c.Vocab, Batch: c.Pairs, Length: c.Length,
		build: func() (*models.Model, error) { return models.Transformer(c) }}
}

func moeOf(c models.MoEConfig) config {
	c.Stacked, c.Sparse = true, true
	slots := int(float64(min(c.Group, c.Pairs*c.Length)) * c.CapacityTrain / float64(c.Experts))
	return config{Kind: "moe", Layers: c.Layers, Width: c.Width, Hidden: c.ExpertHidden,
		Heads: c.Heads, Head: c.HeadWidth, Vocab: c.Vocab, Experts: c.Experts,
		Slots: max(4, slots), Batch: c.Pairs, Length: c.Length,
		build: func() (*models.Model, error) { return models.MoE(c) }}
}

func resNetOf(c models.ResNetConfig) config {
	return config{Kind: "resnet", Width: c.Width, Batch: c.Images, Pixels: c.Pixels,
		Classes: c.Classes, Blocks: c.Blocks,
		build: func() (*models.Model, error) { return models.ResNet(c) }}
}

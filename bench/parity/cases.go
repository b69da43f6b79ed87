package main

import (
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
)

// parityCase is a model in one of its forms.
type parityCase struct {
	name  string
	build func() (subject, error)
}

// subject is what is compared: an objective of a model, differentiated by the
// parameters below a scope.
type subject struct {
	model     *models.Model
	kind      string // parity.py's name of the objective
	config    any    // the model's, which parity.py gets as JSON
	objective models.Objective
	scope     string
}

// parameters are those that the objective is differentiated by.
func (s subject) parameters() []graph.Value {
	var list []graph.Value
	for _, n := range s.model.Graph.Variables() {
		if !n.State && strings.HasPrefix(n.Name, s.scope) {
			list = append(list, n.Value(0))
		}
	}
	return list
}

const size = "s512"

func cases() []parityCase {
	return []parityCase{
		{"transformer", transformer(false)},
		{"transformer, fine", transformer(true)},
		{"moe, dense", moe(func(*models.MoEConfig) {})},
		{"moe, dense, fine", moe(func(c *models.MoEConfig) { c.Fine = true })},
		{"moe, dense, stacked experts", moe(func(c *models.MoEConfig) { c.Stacked = true })},
		{"moe, sparse", moe(func(c *models.MoEConfig) { c.Sparse = true })},
		{"moe, sparse, stacked experts", moe(func(c *models.MoEConfig) {
			c.Sparse, c.Stacked = true, true
		})},
		{"gpt", gpt(models.GPT2Blocks, false)},
		{"gpt, llama blocks", gpt(models.LlamaBlocks, false)},
		{"gpt, llama blocks, untied", gpt(models.LlamaBlocks, true)},
		{"lstm-lm", lstmLM(1)},
		{"lstm-lm, two layers", lstmLM(2)},
		{"topic", topic},
		{"resnet v1.5", resNet(1)},
		{"resnet v2", resNet(2)},
		{"wgan, critic", wgan("critic", "resnet", false)},
		{"wgan, critic, fine", wgan("critic", "resnet", true)},
		{"wgan, generator", wgan("generator", "resnet", false)},
		{"wgan, critic of wide blocks", wgan("critic", "good", false)},
		{"wgan, generator of wide blocks", wgan("generator", "good", false)},
		{"deepspeech, fused LSTM", deepSpeech(false)},
		{"deepspeech, unrolled LSTM", deepSpeech(true)},
	}
}

// only is the subject of a model that has one objective.
func only(m *models.Model, err error, config any) (subject, error) {
	if err != nil {
		return subject{}, err
	}
	return subject{model: m, kind: m.Name, config: config, objective: m.Objectives[0]}, nil
}

func transformer(fine bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewTransformerConfig(size)
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Fine = 0, fine
		m, err := models.Transformer(c)
		return only(m, err, c)
	}
}

// moe keeps every second choice: a threshold of zero leaves nothing to chance.
func moe(change func(*models.MoEConfig)) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewMoEConfig(size)
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Jitter, c.SecondThreshold = 0, 0, 0
		change(&c)
		m, err := models.MoE(c)
		return only(m, err, c)
	}
}

func gpt(blocks string, untied bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewGPTConfig(size, blocks)
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Untied = 0, untied
		m, err := models.GPT(c)
		return only(m, err, c)
	}
}

func lstmLM(layers int) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewLSTMLMConfig(size)
		if err != nil {
			return subject{}, err
		}
		c.Layers = layers
		m, err := models.LSTMLM(c)
		return only(m, err, c)
	}
}

func topic() (subject, error) {
	c, err := models.NewTopicConfig(size)
	if err != nil {
		return subject{}, err
	}
	m, err := models.Topic(c)
	return only(m, err, c)
}

// resNet has images that are large enough for the last norms to see more than one
// element of each.
func resNet(version int) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewResNetConfig(size)
		if err != nil {
			return subject{}, err
		}
		c.Version, c.Pixels = version, 64
		m, err := models.ResNet(c)
		return only(m, err, c)
	}
}

// wgan is wide enough that no norm follows a convolution of a single channel, whose
// scale it would cancel.
func wgan(objective, nets string, fine bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewWGANConfig(size)
		if err != nil {
			return subject{}, err
		}
		c.Nets, c.Fine, c.Blocks, c.Dim = nets, fine, 2, 8
		m, err := models.WGAN(c)
		if err != nil {
			return subject{}, err
		}
		for _, o := range m.Objectives {
			if o.Name == objective {
				return subject{model: m, kind: "wgan " + objective, config: c, objective: o,
					scope: objective + "/"}, nil
			}
		}
		return subject{}, fmt.Errorf("no objective %q", objective)
	}
}

func deepSpeech(unrolled bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewDeepSpeechConfig(size)
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Unrolled = 0, unrolled
		m, err := models.DeepSpeech(c)
		return only(m, err, c)
	}
}

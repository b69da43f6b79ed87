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

// smallest is the size of the models whose gradients are compared.
const smallest = "s512"

// cases are the models of a size, in all of their forms.
func cases(size string) []parityCase {
	a := at(size)
	return []parityCase{
		{"transformer", a.transformer(false)},
		{"transformer, fine", a.transformer(true)},
		{"moe, dense", a.moe(func(*models.MoEConfig) {})},
		{"moe, dense, fine", a.moe(func(c *models.MoEConfig) { c.Fine = true })},
		{"moe, dense, stacked experts", a.moe(func(c *models.MoEConfig) { c.Stacked = true })},
		{"moe, sparse", a.moe(func(c *models.MoEConfig) { c.Sparse = true })},
		{"moe, sparse, stacked experts", a.moe(func(c *models.MoEConfig) {
			c.Sparse, c.Stacked = true, true
		})},
		{"gpt", a.gpt(models.GPT2Blocks, false)},
		{"gpt, llama blocks", a.gpt(models.LlamaBlocks, false)},
		{"gpt, llama blocks, untied", a.gpt(models.LlamaBlocks, true)},
		{"lstm-lm", a.lstmLM(1)},
		{"lstm-lm, two layers", a.lstmLM(2)},
		{"topic", a.topic},
		{"resnet v1.5", a.resNet(1)},
		{"resnet v2", a.resNet(2)},
		{"wgan, critic", a.wgan("critic", "resnet", false)},
		{"wgan, critic, fine", a.wgan("critic", "resnet", true)},
		{"wgan, generator", a.wgan("generator", "resnet", false)},
		{"wgan, critic of wide blocks", a.wgan("critic", "good", false)},
		{"wgan, generator of wide blocks", a.wgan("generator", "good", false)},
		{"deepspeech, fused LSTM", a.deepSpeech(false)},
		{"deepspeech, unrolled LSTM", a.deepSpeech(true)},
	}
}

// at makes models of a size.
type at string

// only is the subject of a model that has one objective.
func only(m *models.Model, err error, config any) (subject, error) {
	if err != nil {
		return subject{}, err
	}
	return subject{model: m, kind: m.Name, config: config, objective: m.Objectives[0]}, nil
}

func (a at) transformer(fine bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewTransformerConfig(string(a))
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Fine = 0, fine
		m, err := models.Transformer(c)
		return only(m, err, c)
	}
}

// moe keeps every second choice: a threshold of zero leaves nothing to chance.
func (a at) moe(change func(*models.MoEConfig)) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewMoEConfig(string(a))
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Jitter, c.SecondThreshold = 0, 0, 0
		change(&c)
		m, err := models.MoE(c)
		return only(m, err, c)
	}
}

func (a at) gpt(blocks string, untied bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewGPTConfig(string(a), blocks)
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Untied = 0, untied
		m, err := models.GPT(c)
		return only(m, err, c)
	}
}

func (a at) lstmLM(layers int) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewLSTMLMConfig(string(a))
		if err != nil {
			return subject{}, err
		}
		c.Layers = layers
		m, err := models.LSTMLM(c)
		return only(m, err, c)
	}
}

func (a at) topic() (subject, error) {
	c, err := models.NewTopicConfig(string(a))
	if err != nil {
		return subject{}, err
	}
	m, err := models.Topic(c)
	return only(m, err, c)
}

// resNet of the smallest size has images that are large enough for the last norms to see more
// than one element of each.
func (a at) resNet(version int) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewResNetConfig(string(a))
		if err != nil {
			return subject{}, err
		}
		if c.Version = version; a == smallest {
			c.Pixels = 64
		}
		m, err := models.ResNet(c)
		return only(m, err, c)
	}
}

// wgan of the smallest size is wide enough that no norm follows a convolution of a single
// channel, whose scale it would cancel.
func (a at) wgan(objective, nets string, fine bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewWGANConfig(string(a))
		if err != nil {
			return subject{}, err
		}
		if c.Nets, c.Fine = nets, fine; a == smallest {
			c.Blocks, c.Dim = 2, 8
		}
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

func (a at) deepSpeech(unrolled bool) func() (subject, error) {
	return func() (subject, error) {
		c, err := models.NewDeepSpeechConfig(string(a))
		if err != nil {
			return subject{}, err
		}
		c.Dropout, c.Unrolled = 0, unrolled
		m, err := models.DeepSpeech(c)
		return only(m, err, c)
	}
}

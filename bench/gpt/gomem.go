package main

import (
	"context"
	"errors"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/predict"
	"github.com/gomem/gomem/train"
)

// windows are texts of one length with the token after each token.
type windows struct{ tokens, targets [][]int32 }

// view is rows as one tensor.
func view(rows [][]int32) gomem.Tensor {
	var all []int32
	for _, row := range rows {
		all = append(all, row...)
	}
	return tensor.FromI32(all, len(rows), len(rows[0]))
}

// of is the configuration for windows.
func (w windows) of(c models.GPTConfig) models.GPTConfig {
	c.Texts, c.Length, c.Dropout = len(w.tokens), len(w.tokens[0]), 0
	return c
}

// feeds are the inputs of a model's step, from 0.
func (w windows) feeds(m *models.Model, step int, rate float32) gomem.Feeds {
	return gomem.Feeds{
		m.Seed: gomem.Pair(1, int32(step)), m.LearningRate: gomem.Scalar(rate),
		m.Step:    gomem.Scalar(float32(step + 1)),
		m.Data[0]: view(w.tokens), m.Data[1]: view(w.targets),
	}
}

// parameters are the variables of a session that a checkpoint has.
func parameters(s *gomem.Session) []graph.Value {
	var out []graph.Value
	for _, v := range s.Variables() {
		if !v.Node.State {
			out = append(out, v)
		}
	}
	return out
}

// generated is a continuation with what it took.
type generated struct {
	IDs         []int32
	First, Rest float64 // seconds to the first token, and for the others
	Peak        int64   // bytes of the device, or of PyTorch's process
	host        int64
}

// generate continues a prompt by the likeliest tokens, in a text of some length.
func generate(ctx context.Context, dir string, prompt []int32, tokens, length int,
	o gomem.Options) (g generated, err error) {
	p, err := train.OpenPublic(dir)
	if err != nil {
		return g, err
	}
	p.Config.Length = length
	d, err := models.DecodeGPT(p.Config, 1)
	if err != nil {
		return g, err
	}
	planned, err := gomem.Plan(ctx, d.Graph, o, predict.TextTargets(d)...)
	if err != nil {
		return g, err
	}
	t, err := predict.OpenTexts(planned, o, d, p.Load)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	began := time.Now()
	_, err = t.Continue(ctx, [][]int32{prompt}, predict.Sampling{Tokens: tokens},
		func(_ int, id int32) {
			if g.IDs = append(g.IDs, id); len(g.IDs) == 1 {
				g.First = time.Since(began).Seconds()
			}
		})
	g.Rest = time.Since(began).Seconds() - g.First
	usage := t.Usage()
	g.Peak, g.host = usage[0].Actual, usage[1].Actual
	return g, err
}

// trained is some steps of training with what they took.
type trained struct {
	Losses, Seconds []float64
	Peak            int64 // bytes of the device, or of PyTorch's process
	host            int64
}

// learn trains on one batch, with a learning rate that stays.
func learn(ctx context.Context, dir string, w windows, steps int, rate float32,
	o gomem.Options) (t trained, err error) {
	p, err := train.OpenPublic(dir)
	if err != nil {
		return t, err
	}
	m, err := models.GPT(w.of(p.Config))
	if err != nil {
		return t, err
	}
	o.NoInitialize = true
	s, err := gomem.Compile(ctx, m.Graph, o, train.Targets(&m.Model)[0])
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := p.Load(s, parameters(s)); err != nil {
		return t, err
	}
	for step := range steps {
		began := time.Now()
		out, err := s.Step(ctx, m.Objectives[0].Name, w.feeds(m, step, rate))
		if err != nil {
			return t, err
		}
		t.Losses = append(t.Losses, float64(out[0].F32()[0]))
		t.Seconds = append(t.Seconds, time.Since(began).Seconds())
	}
	usage := s.Usage()
	t.Peak, t.host = usage[0].Actual, usage[1].Actual
	return t, nil
}

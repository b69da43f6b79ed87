package laws_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// five are the models of the thesis at their smallest, the fine lowering of some
// among them, and the language models that came later.
var five = map[string]func() (*models.Model, error){
	"transformer": func() (*models.Model, error) {
		c, err := models.NewTransformerConfig("s512")
		return smallest(c, err, models.Transformer)
	},
	"transformer, fine": func() (*models.Model, error) {
		c, err := models.NewTransformerConfig("s512")
		c.Fine = true
		return smallest(c, err, models.Transformer)
	},
	"moe, fine": func() (*models.Model, error) {
		c, err := models.NewMoEConfig("s512")
		c.Fine = true
		return smallest(c, err, models.MoE)
	},
	"resnet": func() (*models.Model, error) {
		c, err := models.NewResNetConfig("s512")
		return smallest(c, err, models.ResNet)
	},
	"wgan": func() (*models.Model, error) {
		c, err := models.NewWGANConfig("s512")
		return smallest(c, err, models.WGAN)
	},
	"gpt": func() (*models.Model, error) {
		c, err := models.NewGPTConfig("s512", models.GPT2Blocks)
		return smallest(c, err, models.GPT)
	},
	"gpt, llama blocks": func() (*models.Model, error) {
		c, err := models.NewGPTConfig("s512", models.LlamaBlocks)
		return smallest(c, err, models.GPT)
	},
	"gpt, experts": func() (*models.Model, error) {
		c, err := models.NewGPTConfig("s512", models.LlamaBlocks)
		c.Family, c.Experts, c.PerToken, c.Renorm = "mixtral", 5, 3, true
		return smallest(c, err, models.GPT)
	},
	"lstm-lm": func() (*models.Model, error) {
		c, err := models.NewLSTMLMConfig("s512")
		return smallest(c, err, models.LSTMLM)
	},
	"topic": func() (*models.Model, error) {
		c, err := models.NewTopicConfig("s512")
		return smallest(c, err, models.Topic)
	},
	"deepspeech": func() (*models.Model, error) {
		c, err := models.NewDeepSpeechConfig("s512")
		return smallest(c, err, models.DeepSpeech)
	},
	"deepspeech, unrolled": func() (*models.Model, error) {
		c, err := models.NewDeepSpeechConfig("s512")
		c.Unrolled = true
		return smallest(c, err, models.DeepSpeech)
	},
}

func smallest[C any](c C, err error, build func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return build(c)
}

// digest trains a model for some steps, all objectives in turn, evaluates it, and
// hashes the losses and the variables. Peaks are checked against the prediction after every
// step by the executor, and here once more.
func digest(m *models.Model, o gomem.Options, steps int) (string, error) {
	o.Seed = 3
	s, err := gomem.Compile(context.Background(), m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		return "", err
	}
	defer s.Close()
	return digestOf(s, m, steps)
}

// digestOf is the digest of a session with a model's plans.
func digestOf(s *gomem.Session, m *models.Model, steps int) (string, error) {
	ctx := context.Background()
	h := sha256.New()
	feeds := thesis.Feeds(m)
	for step := range steps {
		feeds[m.Seed] = gomem.Pair(3, int32(step))
		feeds[m.Step] = gomem.Scalar(float32(step + 1))
		for _, objective := range m.Objectives {
			out, err := s.Step(ctx, objective.Name, feeds)
			if err != nil {
				return "", err
			}
			h.Write(out[0].Data)
		}
	}
	out, err := s.Step(ctx, "eval", feeds)
	if err != nil {
		return "", err
	}
	h.Write(out[0].Data)
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			return "", err
		}
		h.Write(x.Data)
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return "", fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// TestModelsAreBitIdentical: 30 steps, 4 in the short form, of each of the models give the same
// losses and variables under every policy, partition size, number of streams and
// threads, with and without fusion, at the smallest budget and at one between that
// and plenty.
func TestModelsAreBitIdentical(t *testing.T) {
	steps := longtest.Count(2, 30)
	for name, build := range five {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "deepspeech" { // of the fewest operations
				longtest.Skip(t)
			}
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			want, err := digest(m, gomem.Options{Policy: planner.Vanilla, Threads: 1,
				NoFusion: true}, steps)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range modelOptions(t, m) {
				got, err := digest(m, o, steps)
				if err != nil {
					t.Fatalf("%s: %v", o.Planning(), err)
				}
				if got != want {
					t.Errorf("%s threads=%d device=%d no fusion=%v gives other bits",
						o.Planning(), o.Threads, o.DeviceBytes, o.NoFusion)
				}
			}
		})
	}
}

// modelOptions are the ways to run a model that are compared.
func modelOptions(t *testing.T, m *models.Model) []gomem.Options {
	t.Helper()
	all := []gomem.Options{{Policy: planner.Vanilla, Threads: 2}}
	for i, size := range longtest.Some(2, []int{5, 200, 20}) {
		o := gomem.Options{Partition: size, Streams: 1 + i%2, Threads: 1 + i%2}
		least, err := gomem.MinDevice(context.Background(), m.Graph, o, train.Targets(&m.Model)...)
		if err != nil {
			t.Fatal(err)
		}
		tight, auto := o, o
		tight.DeviceBytes, tight.NoFusion = least, false
		auto.Policy, auto.DeviceBytes = planner.Auto, least*3/2
		auto.Effort = longtest.Count(60, 0) // bits are those of any plan
		all = append(all, o, tight, auto)
	}
	plain := all[2]
	plain.DeviceBytes, plain.NoFusion, plain.NoPlacement = 0, true, true
	return append(all, plain)
}

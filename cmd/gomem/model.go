package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// modelFlags choose a model.
type modelFlags struct {
	Model        string `group:"model" default:"moe" placeholder:"NAME" help:"moe, a Transformer with mixture-of-experts layers; transformer; resnet; wgan, a pair of adversarial networks with gradient penalty; or deepspeech (default ${default})."`
	Size         string `group:"model" default:"s64" placeholder:"SIZE" help:"s512 (tiny), s64 (1/64 of base in memory) or base, which is the published model (default ${default})."`
	Batch        count  `group:"model" placeholder:"N" help:"Pairs of texts, images or utterances a step (default: the size's)."`
	Fine         bool   `group:"model" help:"Compose norms, dropout and optimizers of arithmetic, for graphs of TensorFlow 1's granularity."`
	Length       count  `group:"model" placeholder:"TOKENS" help:"moe, transformer: tokens a text, longer ones are cut; deepspeech: frames an utterance, longer ones are left out (default: the size's)."`
	Experts      count  `group:"model" placeholder:"E" help:"moe: experts a layer (default: the size's)."`
	ExpertHidden count  `group:"model" placeholder:"H" help:"moe: hidden units of an expert (default: the size's)."`
	MoE          string `name:"moe" group:"model" enum:",dense,sparse" default:"" placeholder:"FORM" help:"moe: how tokens reach experts: dense, by matrix products, or sparse, by gather and scatter (default dense)."`
	Stacked      bool   `group:"model" help:"moe: keep the weights of a layer's experts in one variable instead of one an expert."`
	Depth        count  `group:"model" placeholder:"LAYERS" help:"resnet: 50, 101, 152, 1001, 1916 and others (default: the size's)."`
	Blocks       string `group:"model" placeholder:"N,N,N,N" help:"resnet: blocks of each of the four stages, instead of a depth."`
	Version      string `group:"model" enum:",v1.5,v2" default:"" placeholder:"V" help:"resnet: v1.5, norms after convolutions, or v2, before (default v1.5)."`
	Pixels       count  `group:"model" placeholder:"N" help:"resnet, wgan: pixels of a side of an image (default: the size's)."`
	Nets         string `group:"model" enum:",resnet,good" default:"" placeholder:"NETS" help:"wgan: resnet, 101 layers each, or good, the default of the original (default resnet)."`
	RNN          string `name:"rnn" group:"model" enum:",fused,unrolled" default:"" placeholder:"FORM" help:"deepspeech: the LSTM as one operation, fused, or an operation for each part of each step, unrolled (default fused)."`
}

// given lists the flags of particular models that are in use.
func (f modelFlags) given() []string {
	var names []string
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"length", f.Length > 0},
		{"experts", f.Experts > 0}, {"expert-hidden", f.ExpertHidden > 0}, {"moe",
			f.MoE != ""}, {"stacked", f.Stacked},
		{"depth", f.Depth > 0}, {"blocks", f.Blocks != ""}, {"version", f.Version != ""}, {"pixels",
			f.Pixels > 0},
		{"nets", f.Nets != ""}, {"rnn", f.RNN != ""},
	} {
		if flag.given {
			names = append(names, flag.name)
		}
	}
	return names
}

// built is a model with what a run of it computes.
type built struct {
	kind    kind
	model   *models.Model
	targets []compile.Target
	numbers map[string]string // what the model was built with, for checkpoints
}

// build makes the model's graph. It takes none of the model's memory.
func (f modelFlags) build() (*built, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == f.Model })
	if i < 0 {
		return nil, usagef("unknown model %q: want %s", f.Model, kindNames())
	}
	k := kinds[i]
	for _, name := range f.given() {
		if !slices.Contains(k.flags, name) {
			return nil, usagef("--%s does nothing for --model %s: leave one of them out", name,
				k.name)
		}
	}
	m, numbers, err := k.build(f)
	if err != nil {
		return nil, err
	}
	numbers["model"], numbers["size"], numbers["fine"] = m.Name, m.Size, fmt.Sprint(f.Fine)
	return &built{kind: k, model: m, targets: train.Targets(m), numbers: numbers}, nil
}

// kindNames lists the models.
func kindNames() string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// setCounts overwrites fields with the counts that were given.
func setCounts(pairs ...countField) {
	for _, p := range pairs {
		if p.given > 0 {
			*p.field = int(p.given)
		}
	}
}

type countField struct {
	given count
	field *int
}

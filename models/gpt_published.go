package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/legible"
)

// Published is what the config.json of a public checkpoint says of a network.
type Published struct {
	GPTConfig
	Ends    []int32  // the ids that end a text; nil if it does not say
	Unknown []string // members that nothing is known of here
}

// publicLength is the tokens of a window of a model that has read longer ones: what
// training and decoding take grows with it.
const publicLength = 2048

// ParsePublished reads the config.json of a public checkpoint of GPT-2, or of a family of LLaMA's
// blocks: LLaMA, Mistral, Mixtral, Qwen 2, Qwen 3 and its mixtures. A member that is not there has
// the value that those have by default (GPT2Config, LlamaConfig and so on of transformers 5.24);
// what is no number of the network is that of size base. A network that [GPT] does not build is
// refused, on one line that names the member.
func ParsePublished(text []byte) (Published, error) {
	m := &members{}
	if err := json.Unmarshal(text, &m.raw); err != nil {
		return Published{}, fmt.Errorf("no configuration of a model: %w", err)
	}
	m.left = maps.Clone(m.raw)
	var kind string
	m.take(&kind, "model_type")
	var p Published
	switch f, known := families[kind]; {
	case kind == "gpt2":
		p.GPTConfig = m.gpt2()
		m.architectures([]string{"GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel"})
	case known:
		p.GPTConfig = m.llama(kind)
		m.architectures(f.architectures)
	default:
		return Published{}, fmt.Errorf("model_type is %.40q: want gpt2, %s", kind, familyNames())
	}
	p.Ends = m.ends()
	m.demand("", everywhere)
	for _, name := range slices.Sorted(maps.Keys(m.left)) {
		if !idle[name] && !strings.HasPrefix(name, "_") && string(m.left[name]) != "null" {
			p.Unknown = append(p.Unknown, legible.Cut(name, 60))
		}
	}
	if m.err != nil {
		return Published{}, m.err
	}
	return p, p.Validate()
}

// PublishedEnds is eos_token_id of a generation_config.json, which says better than a
// config.json what ends a text; nil if it does not say.
func PublishedEnds(text []byte) ([]int32, error) {
	m := &members{}
	if err := json.Unmarshal(text, &m.raw); err != nil {
		return nil, fmt.Errorf("no configuration: %w", err)
	}
	m.left = maps.Clone(m.raw)
	return m.ends(), m.err
}

func (m *members) gpt2() GPTConfig {
	c, err := NewGPTConfig("base", GPT2Blocks)
	m.fail(err)
	hidden := 0
	m.take(&c.Layers, "n_layer", "num_hidden_layers")
	m.take(&c.Heads, "n_head", "num_attention_heads")
	m.take(&c.Width, "n_embd", "hidden_size")
	m.take(&c.Positions, "n_positions", "max_position_embeddings")
	m.take(&hidden, "n_inner")
	m.take(&c.Vocab, "vocab_size")
	m.take(&c.Eps, "layer_norm_epsilon")
	c.KeyHeads, c.Length, c.Hidden = c.Heads, c.Positions, 4*c.Width
	if m.has("n_inner") {
		c.Hidden = hidden
	}
	m.demand("", ofGPT2)
	m.demand("", ofDense)
	return c
}

// architectures demands a network that continues texts.
func (m *members) architectures(want []string) {
	var names []string
	m.take(&names, "architectures")
	for _, name := range names {
		if !slices.Contains(want, name) {
			m.fail(fmt.Errorf("architectures has %.60q: want %s", name, want[0]))
		}
	}
}

// ends are the ids of eos_token_id: one, a list, or none.
func (m *members) ends() (ids []int32) {
	raw, ok := m.raw["eos_token_id"]
	delete(m.left, "eos_token_id")
	var one int32
	if !ok || json.Unmarshal(raw, &ids) == nil {
		return ids
	}
	if json.Unmarshal(raw, &one) != nil {
		m.fail(fmt.Errorf("eos_token_id is %s: want an id, or a list of ids", brief(raw)))
	}
	return []int32{one}
}

// published is a config.json as it is written: of GPT-2 the first numbers, of LLaMA the
// others.
type published struct {
	Type  string   `json:"model_type"`
	Archs []string `json:"architectures,omitempty"`
	Vocab int      `json:"vocab_size"`
	EOS   any      `json:"eos_token_id"`

	Activation string  `json:"activation_function,omitempty"`
	Layers     int     `json:"n_layer,omitempty"`
	Heads      int     `json:"n_head,omitempty"`
	Width      int     `json:"n_embd,omitempty"`
	Positions  int     `json:"n_positions,omitempty"`
	Hidden     int     `json:"n_inner,omitempty"`
	Eps        float32 `json:"layer_norm_epsilon,omitempty"`

	Act        string  `json:"hidden_act,omitempty"`
	LLayers    int     `json:"num_hidden_layers,omitempty"`
	LHeads     int     `json:"num_attention_heads,omitempty"`
	KeyHeads   int     `json:"num_key_value_heads,omitempty"`
	LWidth     int     `json:"hidden_size,omitempty"`
	LHidden    int     `json:"intermediate_size,omitempty"`
	LPositions int     `json:"max_position_embeddings,omitempty"`
	LEps       float32 `json:"rms_norm_eps,omitempty"`
	Rotary     float32 `json:"rope_theta,omitempty"`
	Tied       *bool   `json:"tie_word_embeddings,omitempty"`

	HeadWidth  int             `json:"head_dim,omitempty"`
	Biases     *bool           `json:"attention_bias,omitempty"`
	HiddenBias *bool           `json:"mlp_bias,omitempty"`
	Window     json.RawMessage `json:"sliding_window,omitempty"`
	Windows    *bool           `json:"use_sliding_window,omitempty"`
	Layered    []string        `json:"layer_types,omitempty"`
	Scaling    map[string]any  `json:"rope_parameters,omitempty"`
	publishedExperts
}

// PublicConfig is the config.json of the network, with the ids that end a text.
func (c GPTConfig) PublicConfig(ends ...int32) ([]byte, error) {
	p := published{Vocab: c.Vocab}
	switch len(ends) {
	case 0:
	case 1:
		p.EOS = ends[0]
	default:
		p.EOS = ends
	}
	if c.Blocks == GPT2Blocks {
		p.Type, p.Archs, p.Activation = "gpt2", []string{"GPT2LMHeadModel"}, "gelu_new"
		p.Layers, p.Heads, p.Width, p.Positions = c.Layers, c.Heads, c.Width, c.Positions
		p.Hidden, p.Eps = c.Hidden, c.Eps
	} else {
		c.publishLlama(&p)
	}
	return json.MarshalIndent(p, "", "  ")
}

// publishLlama writes what a family of LlamaBlocks says.
func (c GPTConfig) publishLlama(p *published) {
	kind := c.familyOf()
	f, tied := families[kind], !c.Untied
	p.Type, p.Archs, p.Act = kind, f.architectures[:1], "silu"
	p.LLayers, p.LHeads, p.KeyHeads, p.LWidth = c.Layers, c.Heads, c.KeyHeads, c.Width
	p.LHidden, p.LPositions, p.LEps, p.Rotary = c.Hidden, c.Length, c.Eps, c.RotaryBase
	p.Tied, p.Scaling = &tied, c.Rotary.member(c.RotaryBase)
	if c.Positions > 0 {
		p.LPositions = c.Positions
	}
	if c.HeadWidth != 0 || f.headWidth != 0 {
		p.HeadWidth = c.size()
	}
	if slices.Contains(f.biases, "attention_bias") && c.OutputBias {
		p.Biases = &c.OutputBias
	}
	if c.HiddenBias {
		p.HiddenBias = &c.HiddenBias
	}
	p.publishedExperts = publishExperts(c, f.experts)
	switch f.window {
	case allWindow, givenWindow:
		p.Window = nullable(c.Window)
	case someWindows:
		if used := c.Window > 0; used {
			p.Windows, p.Window, p.Layered = &used, nullable(c.Window), c.layerKinds()
		}
	}
}

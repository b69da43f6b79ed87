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

// ParsePublished reads the config.json of a public checkpoint of GPT-2 or LLaMA. A
// member that is not there has the value that those have by default (GPT2Config and
// LlamaConfig of transformers 5.24); what is no number of the network is that of size
// base. A network that [GPT] does not build is refused, on one line that names the
// member.
func ParsePublished(text []byte) (Published, error) {
	m := &members{}
	if err := json.Unmarshal(text, &m.raw); err != nil {
		return Published{}, fmt.Errorf("no configuration of a model: %w", err)
	}
	m.left = maps.Clone(m.raw)
	var kind string
	m.take(&kind, "model_type")
	read := map[string]func() GPTConfig{"gpt2": m.gpt2, "llama": m.llama}[kind]
	if read == nil {
		return Published{}, fmt.Errorf("model_type is %.40q: want gpt2 or llama", kind)
	}
	p := Published{GPTConfig: read(), Ends: m.ends()}
	m.demand("", everywhere)
	m.architectures(kind)
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
	return c
}

func (m *members) llama() GPTConfig {
	c, err := NewGPTConfig("base", LlamaBlocks)
	m.fail(err)
	c.Layers, c.Heads, c.Width, c.Hidden, c.Vocab = 32, 32, 4096, 11008, 32000
	c.Eps, c.Length = 1e-6, 2048
	m.take(&c.Layers, "num_hidden_layers")
	m.take(&c.Heads, "num_attention_heads")
	m.take(&c.Width, "hidden_size")
	m.take(&c.Hidden, "intermediate_size")
	m.take(&c.Vocab, "vocab_size")
	m.take(&c.Length, "max_position_embeddings")
	m.take(&c.Eps, "rms_norm_eps")
	c.KeyHeads, c.Length = c.Heads, min(c.Length, publicLength)
	m.take(&c.KeyHeads, "num_key_value_heads")
	tied := false
	m.take(&tied, "tie_word_embeddings")
	c.Untied = !tied
	m.rotary(&c.RotaryBase)
	size := 0
	if m.take(&size, "head_dim"); m.has("head_dim") && size*c.Heads != c.Width {
		m.fail(fmt.Errorf("head_dim is %d: want hidden_size/num_attention_heads, %d/%d", size,
			c.Width, c.Heads))
	}
	m.demand("", ofLlama)
	m.windows()
	return c
}

// rotary is the base of the angles: rope_theta, which newer files have within
// rope_parameters.
func (m *members) rotary(base *float32) {
	m.take(base, "rope_theta")
	said := m.has("rope_theta")
	for _, name := range []string{"rope_parameters", "rope_scaling"} {
		in := &members{within: name + "."}
		m.take(&in.raw, name)
		in.left = maps.Clone(in.raw)
		own := *base
		in.take(&own, "rope_theta")
		if said && own != *base {
			in.fail(fmt.Errorf("%s.rope_theta is %v, and elsewhere %v: want one", name, own,
				*base))
		}
		*base, said = own, said || in.has("rope_theta")
		in.demand(in.within, ofRotary)
		for _, more := range slices.Sorted(maps.Keys(in.left)) {
			in.fail(fmt.Errorf("%s.%s is %s: want none", name, legible.Cut(more, 60),
				brief(in.left[more])))
		}
		m.fail(in.err)
	}
}

// windows demands that every layer attends to all that is before.
func (m *members) windows() {
	used := true
	if m.take(&used, "use_sliding_window"); used {
		m.demand("", []demand{{"sliding_window", nil}})
	}
	delete(m.left, "sliding_window")
	var kinds []string
	m.take(&kinds, "layer_types")
	for _, kind := range kinds {
		if kind != "full_attention" {
			m.fail(fmt.Errorf("layer_types has %.40q: want full_attention alone", kind))
		}
	}
}

// architectures demands a network that continues texts.
func (m *members) architectures(kind string) {
	var names []string
	m.take(&names, "architectures")
	want := map[string][]string{
		"gpt2":  {"GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel"},
		"llama": {"LlamaForCausalLM", "LlamaModel", "LLaMAForCausalLM"},
	}[kind]
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
		tied := !c.Untied
		p.Type, p.Archs, p.Act = "llama", []string{"LlamaForCausalLM"}, "silu"
		p.LLayers, p.LHeads, p.KeyHeads, p.LWidth = c.Layers, c.Heads, c.KeyHeads, c.Width
		p.LHidden, p.LPositions, p.LEps, p.Rotary = c.Hidden, c.Length, c.Eps, c.RotaryBase
		p.Tied = &tied
	}
	return json.MarshalIndent(p, "", "  ")
}

package models

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// PublicName is what public checkpoints call a parameter of [GPT]: "h/0/ln_1/scale" is
// "h.0.ln_1.weight" in those of GPT-2. The tensors are the same, elements included.
func (c GPTConfig) PublicName(parameter string) string {
	name := strings.ReplaceAll(parameter, "/", ".")
	if c.Blocks == GPT2Blocks {
		name = norms.ReplaceAllString(name, "$1.weight")
	}
	return name
}

// ParameterName is the parameter of [GPT] that public checkpoints give a name, with or
// without the prefix "transformer."; "" for what is none, such as the masks that some
// have, or the logits' matrix where it is the embedding.
func (c GPTConfig) ParameterName(public string) string {
	if c.Blocks == LlamaBlocks {
		if strings.HasSuffix(public, ".inv_freq") || public == logitsName && !c.Untied {
			return ""
		}
		return strings.ReplaceAll(public, ".", "/")
	}
	public = strings.TrimPrefix(public, "transformer.")
	if public == logitsName || masks.MatchString(public) {
		return ""
	}
	return strings.ReplaceAll(normWeights.ReplaceAllString(public, "$1.scale"), ".", "/")
}

// logitsName is the logits' matrix in public checkpoints.
const logitsName = "lm_head.weight"

var (
	norms       = regexp.MustCompile(`^((?:h\.[0-9]+\.)?ln_[12f])\.scale$`)
	normWeights = regexp.MustCompile(`^((?:h\.[0-9]+\.)?ln_[12f])\.weight$`)
	masks       = regexp.MustCompile(`^h\.[0-9]+\.attn\.(bias|masked_bias)$`)
)

// publicConfig is the config.json beside a public checkpoint: of GPT-2 the first
// numbers, of LLaMA the others.
type publicConfig struct {
	Type       string   `json:"model_type"`
	Archs      []string `json:"architectures,omitempty"`
	Vocab      int      `json:"vocab_size"`
	EOS        any      `json:"eos_token_id,omitempty"`
	Activation string   `json:"activation_function,omitempty"`
	Layers     int      `json:"n_layer,omitempty"`
	Heads      int      `json:"n_head,omitempty"`
	Width      int      `json:"n_embd,omitempty"`
	Positions  int      `json:"n_positions,omitempty"`
	Hidden     *int     `json:"n_inner,omitempty"`
	Eps        float32  `json:"layer_norm_epsilon,omitempty"`
	ByLayer    bool     `json:"scale_attn_by_inverse_layer_idx,omitempty"`

	Act        string          `json:"hidden_act,omitempty"`
	LLayers    int             `json:"num_hidden_layers,omitempty"`
	LHeads     int             `json:"num_attention_heads,omitempty"`
	KeyHeads   int             `json:"num_key_value_heads,omitempty"`
	LWidth     int             `json:"hidden_size,omitempty"`
	HeadWidth  int             `json:"head_dim,omitempty"`
	LHidden    int             `json:"intermediate_size,omitempty"`
	LPositions int             `json:"max_position_embeddings,omitempty"`
	LEps       float32         `json:"rms_norm_eps,omitempty"`
	Rotary     float32         `json:"rope_theta,omitempty"`
	Scaling    json.RawMessage `json:"rope_scaling,omitempty"`
	Bias       bool            `json:"attention_bias,omitempty"`
	HiddenBias bool            `json:"mlp_bias,omitempty"`
	Tied       *bool           `json:"tie_word_embeddings,omitempty"`
}

// publicLength is the tokens of a window of a model that has read longer ones: what
// training and decoding take grows with it.
const publicLength = 2048

// ParseGPTConfig reads the config.json of a public checkpoint of GPT-2 or LLaMA. What
// is no number of the network is that of size base. A network that [GPT] does not
// build is refused, on one line that says why.
func ParseGPTConfig(text []byte) (GPTConfig, error) {
	var p publicConfig
	if err := json.Unmarshal(text, &p); err != nil {
		return GPTConfig{}, fmt.Errorf("no configuration of a model: %w", err)
	}
	switch p.Type {
	case "gpt2":
		return p.gpt2()
	case "llama":
		return p.llama()
	}
	return GPTConfig{}, fmt.Errorf("model_type is %.40q: want gpt2 or llama", p.Type)
}

func (p publicConfig) gpt2() (GPTConfig, error) {
	c, err := NewGPTConfig("base", GPT2Blocks)
	if err != nil {
		return c, err
	}
	c.Layers, c.Heads, c.KeyHeads, c.Width = p.Layers, p.Heads, p.Heads, p.Width
	c.Vocab, c.Positions, c.Length, c.Hidden = p.Vocab, p.Positions, p.Positions, 4*p.Width
	if p.Hidden != nil {
		c.Hidden = *p.Hidden
	}
	if p.Eps != 0 {
		c.Eps = p.Eps
	}
	switch {
	case p.Activation != "gelu_new" && p.Activation != "gelu_pytorch_tanh" && p.Activation != "":
		return c, fmt.Errorf("activation_function is %.40q: want gelu_new", p.Activation)
	case p.ByLayer:
		return c, fmt.Errorf("scale_attn_by_inverse_layer_idx is set: want it unset")
	case p.Tied != nil && !*p.Tied:
		return c, fmt.Errorf("tie_word_embeddings is unset: want it set")
	}
	return c, c.Validate()
}

func (p publicConfig) llama() (GPTConfig, error) {
	c, err := NewGPTConfig("base", LlamaBlocks)
	if err != nil {
		return c, err
	}
	c.Layers, c.Heads, c.KeyHeads, c.Width = p.LLayers, p.LHeads, p.KeyHeads, p.LWidth
	c.Vocab, c.Hidden, c.Length = p.Vocab, p.LHidden, min(p.LPositions, publicLength)
	c.Untied = p.Tied == nil || !*p.Tied
	if p.KeyHeads == 0 {
		c.KeyHeads = c.Heads
	}
	if p.LEps != 0 {
		c.Eps = p.LEps
	}
	if p.Rotary != 0 {
		c.RotaryBase = p.Rotary
	}
	switch {
	case p.Act != "silu" && p.Act != "":
		return c, fmt.Errorf("hidden_act is %.40q: want silu", p.Act)
	case p.Bias || p.HiddenBias:
		return c, fmt.Errorf("attention_bias or mlp_bias is set: want neither")
	case len(p.Scaling) > 0 && string(p.Scaling) != "null":
		return c, fmt.Errorf("rope_scaling is %.60s: want none", p.Scaling)
	case p.HeadWidth != 0 && p.HeadWidth*p.LHeads != p.LWidth:
		return c, fmt.Errorf("head_dim is %d: want hidden_size/num_attention_heads", p.HeadWidth)
	}
	return c, c.Validate()
}

// PublicConfig is the config.json of the network, with the id that ends a text, if it
// is not negative.
func (c GPTConfig) PublicConfig(eos int32) ([]byte, error) {
	p := publicConfig{Vocab: c.Vocab}
	if eos >= 0 {
		p.EOS = eos
	}
	if c.Blocks == GPT2Blocks {
		p.Type, p.Archs, p.Activation = "gpt2", []string{"GPT2LMHeadModel"}, "gelu_new"
		p.Layers, p.Heads, p.Width, p.Positions = c.Layers, c.Heads, c.Width, c.Positions
		p.Hidden, p.Eps = &c.Hidden, c.Eps
	} else {
		tied := !c.Untied
		p.Type, p.Archs, p.Act = "llama", []string{"LlamaForCausalLM"}, "silu"
		p.LLayers, p.LHeads, p.KeyHeads, p.LWidth = c.Layers, c.Heads, c.KeyHeads, c.Width
		p.LHidden, p.LPositions, p.LEps, p.Rotary = c.Hidden, c.Length, c.Eps, c.RotaryBase
		p.Tied = &tied
	}
	return json.MarshalIndent(p, "", "  ")
}

// Shaped is the configuration of a GPT-2 that has no config.json, by the tensors of
// its checkpoint: sizes gives the axes of one, nil if there is none of that name.
// Heads are taken to be 64 wide, as all of GPT-2 are.
func Shaped(sizes func(public string) []int) (GPTConfig, error) {
	find := func(name string) []int {
		if s := sizes(name); s != nil {
			return s
		}
		return sizes("transformer." + name)
	}
	table, positions, hidden := find("wte.weight"), find("wpe.weight"),
		find("h.0.mlp.c_fc.weight")
	if len(table) != 2 || len(positions) != 2 || len(hidden) != 2 {
		return GPTConfig{}, fmt.Errorf("no tensors wte.weight, wpe.weight and " +
			"h.0.mlp.c_fc.weight: want those of GPT-2, or a config.json beside them")
	}
	layers := 0
	for find(fmt.Sprintf("h.%d.ln_1.weight", layers)) != nil {
		layers++
	}
	p := publicConfig{Layers: layers, Width: table[1], Heads: table[1] / 64, Vocab: table[0],
		Positions: positions[0], Hidden: &hidden[1]}
	return p.gpt2()
}

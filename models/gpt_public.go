package models

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/quant"
	"github.com/gomem/gomem/nn"
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

// FullName is [GPTConfig.PublicName] with the prefix of the network's base, as a language model
// of transformers calls it.
func (c GPTConfig) FullName(parameter string) string {
	name := c.PublicName(parameter)
	if c.Blocks == GPT2Blocks {
		name = basePrefixes[c.Blocks] + name
	}
	return name
}

// ParameterName is the parameter of [GPT] that public checkpoints give a name, with or
// without the prefix of the network's base, "transformer." or "model."; "" for what is none
// of this network: see [GPTConfig.Role].
func (c GPTConfig) ParameterName(public string) string {
	name := c.based(public)
	if !c.learns(name) {
		return ""
	}
	if c.Blocks == GPT2Blocks {
		name = normWeights.ReplaceAllString(name, "$1.scale")
	} else if name != logitsName {
		name = basePrefixes[c.Blocks] + name
	}
	return strings.ReplaceAll(name, ".", "/")
}

// EmbeddingName is the parameter that is the embedding, and the logits' matrix where that is
// the same.
func (c GPTConfig) EmbeddingName() string {
	if c.Blocks == GPT2Blocks {
		return "wte/weight"
	}
	return "model/embed_tokens/weight"
}

// Stored is how [GPT] holds the matrix of a parameter that is not trained, of so many rows of
// elements: "" for f32, or a format of [ops.PackedType]. Embeddings, and the logits' matrix, have 6
// bits where others have 4, and gates of experts stay f32, as they are in the files of llama.cpp.
// Where a format's blocks do not divide a row, q8_0 is taken, or f16. GPTConfig.Stores takes the
// place of all of that.
func (c GPTConfig) Stored(parameter string, elements int) string {
	if c.Stores != nil {
		return c.Stores[parameter]
	}
	f, err := quant.Parse(c.Store)
	if err != nil {
		return ""
	}
	last := parameter[strings.LastIndexByte(parameter, '/')+1:]
	if last != "weight" || strings.HasSuffix(parameter, "/gate/weight") {
		return ""
	}
	table := parameter == c.EmbeddingName() || parameter == "lm_head/weight"
	if table && f == quant.Q4_K {
		f = quant.Q6_K
	}
	for _, other := range []quant.Format{f, quant.Q8_0} {
		if elements%other.Block() == 0 {
			return other.String()
		}
	}
	return quant.F16.String()
}

// packing is that for package nn.
func (c GPTConfig) packing(parameter string, _, elements int) string {
	return c.Stored(parameter, elements)
}

// trainsStored reports whether matrices are trained as they are stored.
func (c GPTConfig) trainsStored() bool {
	var moments graph.DType
	switch o := c.Training.Optimizer.(type) {
	case nn.Adam:
		moments = o.Moments
	case nn.AdamW:
		moments = o.Moments
	}
	return c.Store == quant.BF16.String() && c.Stores == nil && c.Training.Adapters == nil &&
		(moments == graph.BF16 || moments == graph.U8)
}

// validateStore reports what cannot be held in few bits.
func (c GPTConfig) validateStore() error {
	formats := slices.Sorted(maps.Values(c.Stores))
	if c.Store != "" {
		formats = append(formats, c.Store)
	}
	for _, f := range formats {
		if _, err := quant.Parse(f); err != nil {
			return fmt.Errorf("--store: %w", err)
		}
	}
	if len(formats) > 0 && c.Blocks != LlamaBlocks {
		return fmt.Errorf("--store is for networks like LLaMA: GPT-2 keeps its matrices by columns")
	}
	return nil
}

// Role is what a tensor of a public checkpoint is to a network.
type Role uint8

const (
	// Learnt is a parameter.
	Learnt Role = iota
	// Made is nothing that is learnt: masks, and the frequencies of rotary positions.
	Made
	// Repeated is the logits' matrix where that is the embedding: it has to be the same.
	Repeated
	// Strange has a name as the network's own tensors have, but the network has no such: a
	// bias, a norm, a layer too many. With it, it would be another network.
	Strange
	// Beside belongs to no part of the network: a classifier, an image's encoder.
	Beside
)

// Role is what a tensor of a public checkpoint is to the network, by its name.
func (c GPTConfig) Role(public string) Role {
	name := c.based(public)
	first, _, _ := strings.Cut(name, ".")
	switch {
	case c.learns(name):
		return Learnt
	case name == logitsName && !c.Untied:
		return Repeated
	case made.MatchString(name):
		return Made
	case name != public || slices.Contains(ownNames[c.Blocks], first):
		return Strange
	}
	return Beside
}

// logitsName is the logits' matrix in public checkpoints.
const logitsName = "lm_head.weight"

// basePrefixes are before the names of all but the logits' matrix.
var basePrefixes = map[string]string{GPT2Blocks: "transformer.", LlamaBlocks: "model."}

// based is a name without the prefix of the base.
func (c GPTConfig) based(public string) string {
	return strings.TrimPrefix(public, basePrefixes[c.Blocks])
}

// ownNames are what names of the network's tensors begin with.
var ownNames = map[string][]string{
	GPT2Blocks:  {"wte", "wpe", "h", "ln_f", "lm_head"},
	LlamaBlocks: {"embed_tokens", "layers", "norm", "lm_head"},
}

// learnt are the names of parameters, with N for a layer's number.
var learnt = map[string][]string{
	GPT2Blocks: {"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias",
		"h.N.ln_1.weight", "h.N.ln_1.bias", "h.N.ln_2.weight", "h.N.ln_2.bias",
		"h.N.attn.c_attn.weight", "h.N.attn.c_attn.bias", "h.N.attn.c_proj.weight",
		"h.N.attn.c_proj.bias", "h.N.mlp.c_fc.weight", "h.N.mlp.c_fc.bias",
		"h.N.mlp.c_proj.weight", "h.N.mlp.c_proj.bias"},
	LlamaBlocks: {"embed_tokens.weight", "norm.weight",
		"layers.N.input_layernorm.weight", "layers.N.post_attention_layernorm.weight",
		"layers.N.self_attn.q_proj.weight", "layers.N.self_attn.k_proj.weight",
		"layers.N.self_attn.v_proj.weight", "layers.N.self_attn.o_proj.weight",
		"layers.N.mlp.gate_proj.weight", "layers.N.mlp.up_proj.weight",
		"layers.N.mlp.down_proj.weight"},
}

// learns reports whether a name without the prefix is a parameter's.
func (c GPTConfig) learns(name string) bool {
	if name == logitsName {
		return c.Untied
	}
	if at := layerNumber.FindStringSubmatchIndex(name); at != nil {
		layer, err := strconv.Atoi(name[at[2]:at[3]])
		if err != nil || layer >= c.Layers {
			return false
		}
		name = name[:at[2]] + "N" + name[at[3]:]
	}
	if e := families[c.familyOf()].experts; e != nil && strings.HasPrefix(name, "layers.N.mlp.") ||
		e != nil && strings.HasPrefix(name, "layers.N."+e.place) {
		return learnsExpert(c, e, strings.TrimPrefix(name, "layers.N."))
	}
	return slices.Contains(learnt[c.Blocks], name) || c.learnsBeside(name)
}

// learnsBeside reports whether a name, with N for a layer's number, is that of a parameter that
// only some families have.
func (c GPTConfig) learnsBeside(name string) bool {
	part, ok := strings.CutPrefix(name, "layers.N.")
	if !ok || c.Blocks != LlamaBlocks {
		return false
	}
	switch part {
	case "self_attn.q_norm.weight", "self_attn.k_norm.weight":
		return c.HeadNorms
	case "self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias":
		return c.QueryBias
	case "self_attn.o_proj.bias":
		return c.OutputBias
	case "mlp.gate_proj.bias", "mlp.up_proj.bias", "mlp.down_proj.bias":
		return c.HiddenBias
	}
	return false
}

var (
	layerNumber = regexp.MustCompile(`^(?:h|layers)\.(0|[1-9][0-9]*)\.`)
	norms       = regexp.MustCompile(`^((?:h\.[0-9]+\.)?ln_[12f])\.scale$`)
	normWeights = regexp.MustCompile(`^((?:h\.[0-9]+\.)?ln_[12f])\.weight$`)
	made        = regexp.MustCompile(`^h\.[0-9]+\.attn\.(?:bias|masked_bias)$|` +
		`^(?:layers\.[0-9]+\.self_attn\.)?rotary_emb\.(?:inv_freq|cos_cached|sin_cached)$`)
)

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
	c, err := NewGPTConfig("base", GPT2Blocks)
	if err != nil {
		return c, err
	}
	c.Layers, c.Vocab, c.Width, c.Hidden = layers, table[0], table[1], hidden[1]
	c.Heads, c.KeyHeads = c.Width/64, c.Width/64
	c.Positions, c.Length = positions[0], positions[0]
	return c, c.Validate()
}

package models

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/legible"
)

// family is how the config.json of a kind of checkpoint describes LlamaBlocks: what a member that
// is not there says, by the configurations of transformers 5.24, and what members there are.
type family struct {
	architectures []string
	hidden, vocab int
	keyHeads      int // 0: as many as there are heads
	length        int
	headWidth     int // 0: width/heads
	queryBias     bool
	biases        []string // of attention_bias and mlp_bias, those that are read
	headNorms     bool
	window        windowing
	experts       *expertLayout // nil: none
	sizes         [3]int        // layers, heads and width, unless they are 32, 32 and 4096
	eps, base     float32       // of norms and of rotary positions, unless they are 1e-6 and 10000
}

// windowing is how a configuration says which layers attend to a window.
type windowing uint8

const (
	noWindow    windowing = iota // a window is refused
	allWindow                    // sliding_window, in all layers
	givenWindow                  // so it is, but only where it is said
	someWindows                  // that, if use_sliding_window, from max_window_layers on
)

var families = map[string]family{
	"llama": {architectures: []string{"LlamaForCausalLM", "LlamaModel", "LLaMAForCausalLM"},
		hidden: 11008, vocab: 32000, length: 2048, biases: []string{"attention_bias", "mlp_bias"}},
	"mistral": {architectures: []string{"MistralForCausalLM", "MistralModel"}, hidden: 14336,
		vocab: 32000, keyHeads: 8, length: 131072, window: allWindow},
	"qwen2": {architectures: []string{"Qwen2ForCausalLM", "Qwen2Model"}, hidden: 22016,
		vocab: 151936, keyHeads: 32, length: 32768, queryBias: true, window: someWindows},
	"mixtral": {architectures: []string{"MixtralForCausalLM", "MixtralModel"}, vocab: 32000,
		keyHeads: 8, length: 131072, window: givenWindow, experts: mixtralExperts, eps: 1e-5,
		base: 1e6},
	"qwen3_moe": {architectures: []string{"Qwen3MoeForCausalLM", "Qwen3MoeModel"}, vocab: 151936,
		keyHeads: 4, length: 32768, headNorms: true, biases: []string{"attention_bias"},
		window: someWindows, experts: qwenExperts, sizes: [3]int{24, 32, 2048}},
	"qwen3": {architectures: []string{"Qwen3ForCausalLM", "Qwen3Model"}, hidden: 22016,
		vocab: 151936, keyHeads: 32, length: 32768, headWidth: 128, headNorms: true,
		biases: []string{"attention_bias"}, window: someWindows},
}

// familyNames are their names, for errors.
func familyNames() string {
	names := slices.Sorted(maps.Keys(families))
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// familyOf is the family of a network's config.json.
func (c GPTConfig) familyOf() string {
	if c.Family == "" {
		return "llama"
	}
	return c.Family
}

// fitsFamily reports what a family's config.json cannot say.
func (c GPTConfig) fitsFamily() error {
	f, ok := families[c.familyOf()]
	attention := slices.Contains(f.biases, "attention_bias")
	switch {
	case c.Blocks == GPT2Blocks:
		return nil
	case !ok:
		return fmt.Errorf("unknown family %.40q of llama blocks: want %s", c.Family, familyNames())
	case c.HeadNorms != f.headNorms:
		return fmt.Errorf("norms of heads are %t: want %t in family %s", c.HeadNorms, f.headNorms,
			c.familyOf())
	case f.queryBias && (!c.QueryBias || c.OutputBias),
		!f.queryBias && (c.QueryBias != c.OutputBias || c.QueryBias && !attention),
		c.HiddenBias && !slices.Contains(f.biases, "mlp_bias"):
		return fmt.Errorf("family %s has no such biases", c.familyOf())
	case c.Window > 0 && f.window == noWindow, c.WindowFrom > 0 && f.window != someWindows:
		return fmt.Errorf("family %s has no window, or none from layer %d on", c.familyOf(),
			c.WindowFrom)
	}
	return fitsExperts(c, f)
}

// llama reads the configuration of a family.
func (m *members) llama(kind string) GPTConfig {
	f := families[kind]
	c, err := NewGPTConfig("base", LlamaBlocks)
	m.fail(err)
	if kind != "llama" {
		c.Family = kind
	}
	c.Layers, c.Heads, c.Width, c.Hidden, c.Vocab = 32, 32, 4096, f.hidden, f.vocab
	if f.sizes != [3]int{} {
		c.Layers, c.Heads, c.Width = f.sizes[0], f.sizes[1], f.sizes[2]
	}
	c.Eps, c.HeadNorms, c.QueryBias = cmp.Or(f.eps, 1e-6), f.headNorms, f.queryBias
	c.RotaryBase = cmp.Or(f.base, c.RotaryBase)
	m.take(&c.Layers, "num_hidden_layers")
	m.take(&c.Heads, "num_attention_heads")
	m.take(&c.Width, "hidden_size")
	if m.experts(&c, f.experts); f.experts == nil {
		m.take(&c.Hidden, "intermediate_size")
	}
	m.take(&c.Vocab, "vocab_size")
	m.take(&c.Eps, "rms_norm_eps")
	c.Positions = f.length
	m.take(&c.Positions, "max_position_embeddings")
	c.Length = min(c.Positions, publicLength)
	if c.KeyHeads = f.keyHeads; c.KeyHeads == 0 || m.null("num_key_value_heads") {
		c.KeyHeads = c.Heads
	}
	m.take(&c.KeyHeads, "num_key_value_heads")
	tied := false
	m.take(&tied, "tie_word_embeddings")
	c.Untied = !tied
	m.headWidth(&c, f.headWidth)
	m.rotary(&c, c.Positions)
	m.biases(&c, f.biases)
	m.windows(&c, f.window)
	m.demand("", ofLlama)
	return c
}

// null reports whether a member says that there is nothing.
func (m *members) null(name string) bool { return string(m.raw[name]) == "null" }

// headWidth is head_dim, unless that is what width and heads say.
func (m *members) headWidth(c *GPTConfig, size int) {
	if m.null("head_dim") {
		size = 0
	}
	m.take(&size, "head_dim")
	if m.has("head_dim") && size < 1 {
		m.fail(fmt.Errorf("head_dim is %d: want 1 or more", size))
	}
	if c.Heads < 1 || size*c.Heads != c.Width {
		c.HeadWidth = size
	}
}

// biases are read where a family has them; of others they have to be none.
func (m *members) biases(c *GPTConfig, read []string) {
	for _, name := range []string{"attention_bias", "mlp_bias"} {
		has := false
		if !slices.Contains(read, name) {
			m.demand("", []demand{{name, []string{"false"}}})
			continue
		}
		m.take(&has, name)
		if name == "mlp_bias" {
			c.HiddenBias = has
		} else if has {
			c.QueryBias, c.OutputBias = true, true
		}
	}
}

// windows are the layers that attend to a window, and how long it is.
func (m *members) windows(c *GPTConfig, how windowing) {
	used := how == allWindow || how == givenWindow && m.has("sliding_window")
	if how == noWindow || how == someWindows {
		said := how == noWindow && m.has("sliding_window")
		used = said
		m.take(&used, "use_sliding_window")
	}
	switch {
	case !used:
		delete(m.left, "sliding_window")
	case how == noWindow:
		m.demand("", []demand{{"sliding_window", nil}})
	case !m.null("sliding_window"):
		c.Window = 4096
		m.take(&c.Window, "sliding_window")
		if c.Window < 1 {
			m.fail(fmt.Errorf("sliding_window is %d: want 1 or more, or null", c.Window))
		}
	}
	from := 28
	m.take(&from, "max_window_layers")
	if how == someWindows && c.Window > 0 {
		c.WindowFrom = from
	}
	m.layerTypes(c)
}

// layerTypes are the kinds of layers one by one, which have to be those of a window from one layer
// on.
func (m *members) layerTypes(c *GPTConfig) {
	var kinds []string
	m.take(&kinds, "layer_types")
	if len(kinds) == 0 {
		return
	}
	sliding := func(kind string) bool { return kind == "sliding_attention" }
	from := slices.IndexFunc(kinds, sliding)
	if from < 0 {
		from = len(kinds)
		c.Window, c.WindowFrom = 0, 0
	} else if c.WindowFrom = from; len(kinds) != c.Layers {
		m.fail(fmt.Errorf("layer_types has %d layers: want %d, as num_hidden_layers says",
			len(kinds), c.Layers))
	}
	for i, kind := range kinds {
		switch {
		case kind != "full_attention" && !sliding(kind):
			m.fail(fmt.Errorf("layer_types has %.40q: want full_attention or sliding_attention",
				kind))
		case sliding(kind) && c.Window == 0:
			m.fail(fmt.Errorf("layer_types has sliding_attention, and no sliding_window is used: " +
				"want full_attention alone"))
		case sliding(kind) != (i >= from):
			m.fail(fmt.Errorf("layer_types has full_attention after sliding_attention: want " +
				"windows from one layer on"))
		}
	}
}

// rotary is the base of the angles, rope_theta, and how they are scaled. Newer files have both
// within rope_parameters.
func (m *members) rotary(c *GPTConfig, positions int) {
	base := &c.RotaryBase
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
		scaled := in.scaling(positions)
		if c.Rotary.Kind != "" && scaled.Kind != "" && scaled != c.Rotary {
			in.fail(fmt.Errorf("%s and rope_parameters scale in two ways: want one", name))
		}
		if scaled.Kind != "" {
			c.Rotary = scaled
		}
		in.demand(in.within, ofRotary)
		for _, more := range slices.Sorted(maps.Keys(in.left)) {
			in.fail(fmt.Errorf("%s.%s is %s: want none", name, legible.Cut(more, 60),
				brief(in.left[more])))
		}
		m.fail(in.err)
	}
}

// scaling reads how rotary positions are scaled, of a model that has so many.
func (m *members) scaling(positions int) (r RotaryScaling) {
	kind := "default"
	m.take(&kind, "rope_type", "type")
	if kind == "default" {
		m.demand(m.within, []demand{{"factor", []string{"1"}}})
		return r
	}
	r = RotaryScaling{Kind: kind}
	m.take(&r.Factor, "factor")
	if kind == "linear" {
		return r
	}
	r.Original = positions
	if kind == "dynamic" {
		return r
	}
	m.take(&r.Original, "original_max_position_embeddings")
	switch kind {
	case "llama3":
		m.take(&r.Low, "low_freq_factor")
		m.take(&r.High, "high_freq_factor")
	case "yarn":
		m.yarn(&r, positions)
	default:
		m.fail(fmt.Errorf("%srope_type is %.40q: want default, linear, dynamic, llama3 or yarn",
			m.within, kind))
	}
	return r
}

// yarn is what that scaling has besides.
func (m *members) yarn(r *RotaryScaling, positions int) {
	r.Low, r.High = 1, 32
	m.take(&r.Low, "beta_slow")
	m.take(&r.High, "beta_fast")
	if !m.has("factor") && r.Original > 0 {
		r.Factor = float64(positions) / float64(r.Original)
	}
	r.Attention = tempering(r.Factor, 1)
	var one, all float64
	m.take(&one, "mscale")
	m.take(&all, "mscale_all_dim")
	if one != 0 && all != 0 {
		r.Attention = tempering(r.Factor, one) / tempering(r.Factor, all)
	}
	m.take(&r.Attention, "attention_factor")
	m.demand(m.within, []demand{{"truncate", []string{"true"}}})
}

// scaled is the member of a config.json that says how rotary positions are scaled; nil for none.
func (r RotaryScaling) member(base float32) map[string]any {
	if r.Kind == "" {
		return nil
	}
	p := map[string]any{"rope_type": r.Kind, "rope_theta": base, "factor": r.Factor}
	switch r.Kind {
	case "llama3":
		p["low_freq_factor"], p["high_freq_factor"] = r.Low, r.High
	case "yarn":
		p["beta_slow"], p["beta_fast"], p["attention_factor"] = r.Low, r.High, r.Attention
	}
	if r.Kind == "llama3" || r.Kind == "yarn" {
		p["original_max_position_embeddings"] = r.Original
	}
	return p
}

// layerKinds are layer_types: windows from one layer on.
func (c GPTConfig) layerKinds() []string {
	if c.Window == 0 || families[c.familyOf()].window != someWindows {
		return nil
	}
	kinds := make([]string, c.Layers)
	for i := range kinds {
		if kinds[i] = "full_attention"; i >= c.WindowFrom {
			kinds[i] = "sliding_attention"
		}
	}
	return kinds
}

// nullable is a number that is null where it is 0.
func nullable(n int) json.RawMessage {
	if n == 0 {
		return json.RawMessage("null")
	}
	return json.RawMessage(fmt.Sprint(n))
}

package llamacpp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/libm"
)

// Description is a decoder as a file of llama.cpp has it.
type Description struct {
	Values  gguf.Metadata
	Factors []byte // the tensor of [FactorsName]; nil for none
	config  published
	arch    string
	experts int
}

// FactorsName is what the rates of positions are divided by, f32, if these are scaled as LLaMA 3's.
const FactorsName = ropeFactors

// published are the members of a config.json that are written as keys.
type published struct {
	Type string `json:"model_type"`

	Layers    int64   `json:"num_hidden_layers"`
	Heads     int64   `json:"num_attention_heads"`
	KeyHeads  int64   `json:"num_key_value_heads"`
	Width     int64   `json:"hidden_size"`
	Hidden    int64   `json:"intermediate_size"`
	Positions int64   `json:"max_position_embeddings"`
	Size      int64   `json:"head_dim"`
	Vocab     int64   `json:"vocab_size"`
	Eps       float32 `json:"rms_norm_eps"`
	Base      float32 `json:"rope_theta"`
	Window    int64   `json:"sliding_window"`
	Windows   bool    `json:"use_sliding_window"`

	Experts      int64 `json:"num_experts"`
	Local        int64 `json:"num_local_experts"`
	PerToken     int64 `json:"num_experts_per_tok"`
	ExpertHidden int64 `json:"moe_intermediate_size"`
	Renorm       bool  `json:"norm_topk_prob"`

	Rotary struct {
		Kind      string  `json:"rope_type"`
		Factor    float64 `json:"factor"`
		Low       float64 `json:"low_freq_factor"`
		High      float64 `json:"high_freq_factor"`
		Quick     float64 `json:"beta_fast"`
		Slow      float64 `json:"beta_slow"`
		Attention float64 `json:"attention_factor"`
		Original  int64   `json:"original_max_position_embeddings"`
	} `json:"rope_parameters"`

	Layers2    int64   `json:"n_layer"`
	Heads2     int64   `json:"n_head"`
	Width2     int64   `json:"n_embd"`
	Hidden2    int64   `json:"n_inner"`
	Positions2 int64   `json:"n_positions"`
	Eps2       float32 `json:"layer_norm_epsilon"`
}

// Describe is how a file has the decoder of a config.json, and of a tokenizer.json if that is not
// nil, whose texts end with some ids. What a file has no words for is refused by its name.
func Describe(config, tokenizer []byte, ends []int32) (*Description, error) {
	d := &Description{}
	if err := json.Unmarshal(config, &d.config); err != nil {
		return nil, err
	}
	c := &d.config
	switch d.arch = c.Type; c.Type {
	case "mistral", "mixtral":
		d.arch = archLlama
	case "qwen3_moe":
		d.arch = archQwen3MoE
	}
	if !slices.Contains(archs, d.arch) {
		return nil, fmt.Errorf("a GGUF file of %s is not written here", legible.Cut(c.Type, 40))
	}
	d.put("general.architecture", d.arch)
	d.put("general.type", "model")
	if d.arch == archGPT2 {
		d.number("block_count", c.Layers2)
		d.number("context_length", c.Positions2)
		d.number("embedding_length", c.Width2)
		d.number("feed_forward_length", c.Hidden2)
		d.number("attention.head_count", c.Heads2)
		d.put(d.arch+".attention.layer_norm_epsilon", c.Eps2)
	} else if err := d.llama(); err != nil {
		return nil, err
	}
	if tokenizer == nil {
		return d, nil
	}
	return d, d.tokens(tokenizer, ends)
}

// put adds a value.
func (d *Description) put(key string, value any) {
	d.Values = append(d.Values, gguf.Pair{Key: key, Value: value})
}

// number adds a whole number of the architecture.
func (d *Description) number(key string, n int64) { d.put(d.arch+"."+key, uint32(n)) }

// llama adds what LLaMA's files say, and Qwen's.
func (d *Description) llama() error {
	c := &d.config
	if c.Size == 0 {
		c.Size = c.Width / c.Heads
	}
	d.number("block_count", c.Layers)
	d.number("context_length", c.Positions)
	d.number("embedding_length", c.Width)
	d.number("feed_forward_length", c.Hidden)
	d.number("attention.head_count", c.Heads)
	d.number("attention.head_count_kv", c.KeyHeads)
	d.number("attention.key_length", c.Size)
	d.number("attention.value_length", c.Size)
	if err := d.mixture(); err != nil {
		return err
	}
	d.put(d.arch+".attention.layer_norm_rms_epsilon", c.Eps)
	d.put(d.arch+".rope.freq_base", c.Base)
	d.number("rope.dimension_count", c.Size)
	d.number("vocab_size", c.Vocab)
	switch {
	case c.Windows:
		return fmt.Errorf("a GGUF file has no words for the windows of %s", c.Type)
	case c.Window > 0:
		d.number("attention.sliding_window", c.Window)
	}
	return d.rotary()
}

// mixture adds how many experts there are.
func (d *Description) mixture() error {
	c := &d.config
	d.experts = int(max(c.Experts, c.Local))
	if d.experts == 0 {
		return nil
	}
	d.number("expert_count", int64(d.experts))
	d.number("expert_used_count", c.PerToken)
	if d.arch == archQwen3MoE {
		d.number("expert_feed_forward_length", c.ExpertHidden)
		if !c.Renorm {
			return errors.New("norm_topk_prob is false: a GGUF file has no words for gates " +
				"that do not add up to 1")
		}
	}
	return nil
}

// rotary adds how positions are scaled.
func (d *Description) rotary() error {
	r := d.config.Rotary
	switch r.Kind {
	case "":
		return nil
	case "linear", "yarn":
		d.put(d.arch+".rope.scaling.type", r.Kind)
		d.put(d.arch+".rope.scaling.factor", float32(r.Factor))
		if r.Kind == "linear" {
			return nil
		}
		if usual := 1 + float64(0.1*libm.Log(r.Factor)); math.Abs(r.Attention-usual) > 1e-6 {
			return fmt.Errorf("positions are scaled by yarn with attention_factor %v: want %v, "+
				"which is all that a GGUF file has words for", r.Attention, usual)
		}
		d.number("rope.scaling.original_context_length", r.Original)
		d.put(d.arch+".rope.scaling.yarn_beta_fast", float32(r.Quick))
		d.put(d.arch+".rope.scaling.yarn_beta_slow", float32(r.Slow))
		return nil
	case "llama3":
		if r.Low != slowTurns || r.High != quickTurns {
			return fmt.Errorf("positions are scaled between %v and %v turns: want %v and %v, "+
				"which LLaMA 3 has, and GGUF's readers find", r.Low, r.High, slowTurns, quickTurns)
		}
		for _, f := range factorsOf(float64(d.config.Base), r.Factor, int(r.Original),
			int(d.config.Size)) {
			d.Factors = binary.LittleEndian.AppendUint32(d.Factors, math.Float32bits(float32(f)))
		}
		return nil
	}
	return fmt.Errorf("positions are scaled in the way %s: a GGUF file has words for linear, yarn "+
		"and llama3", legible.Cut(r.Kind, 20))
}

// Tensor is how the file has a tensor that public checkpoints, without the prefix of the network's
// base, call by a name; its axes are the checkpoint's, and the type is not set.
func (d *Description) Tensor(public string, sizes []int) (Tensor, error) {
	name, expert := fileName(d.arch, public)
	if name == "" {
		return Tensor{}, fmt.Errorf("a GGUF file has no tensor for %s", legible.Cut(public, 100))
	}
	t := Tensor{Tensor: gguf.Tensor{Name: name, Sizes: slices.Clone(sizes)}, Public: public}
	if strings.HasSuffix(name, "_exps.weight") {
		t.Expert, t.Experts = expert, d.experts
		return t, nil
	}
	heads, keyHeads := int(d.config.Heads), int(d.config.KeyHeads)
	if err := t.arrange(d.arch, heads, keyHeads); err != nil {
		return t, err
	}
	if t.Turned {
		slices.Reverse(t.Sizes)
	}
	return t, nil
}

// tokens adds the tokenizer.
func (d *Description) tokens(text []byte, ends []int32) error {
	var f tokenizerFile
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	write := d.bytes
	if f.Model.Bytes {
		write = d.characters
	}
	if err := write(&f); err != nil {
		return err
	}
	if len(ends) > len(endKeys) {
		return fmt.Errorf("%d ids end texts: a GGUF file has words for %d", len(ends),
			len(endKeys))
	}
	for i, id := range ends {
		d.put(endKeys[i], uint32(id))
	}
	return d.beside(f, ends)
}

// bytes adds the tokens of byte-level BPE.
func (d *Description) bytes(f *tokenizerFile) error {
	pre := f.cutting()
	if pre == "" {
		return errors.New("its tokenizer cuts texts in a way that a GGUF file has no name for: " +
			"want that of GPT-2, LLaMA 3, Qwen 2, SmolLM or SentencePiece")
	}
	names, kinds := f.names(max(int(d.config.Vocab), 0))
	d.put("tokenizer.ggml.model", "gpt2")
	d.put("tokenizer.ggml.pre", pre)
	d.put("tokenizer.ggml.tokens", names)
	d.put("tokenizer.ggml.token_type", kinds)
	d.put("tokenizer.ggml.merges", f.merges())
	return nil
}

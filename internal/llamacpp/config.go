package llamacpp

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/legible"
)

// Model is what a file says of a decoder.
type Model struct {
	Config  []byte   // a config.json
	Tensors []Tensor // all that are learnt, in the file's order
}

// Read finds out what a file says. Errors name the key or the tensor, on one line.
func Read(f *gguf.File) (*Model, error) {
	k := &keys{file: f, values: f.Metadata(), config: map[string]any{}, seen: map[string]bool{}}
	if err := k.kind(); err != nil {
		return nil, err
	}
	tensors, err := k.tensors()
	if err != nil {
		return nil, err
	}
	if k.arch == archGPT2 {
		k.gpt2()
	} else {
		k.llama()
	}
	k.ends()
	k.rest()
	if k.err != nil {
		return nil, k.err
	}
	text, err := json.Marshal(k.config)
	return &Model{Config: text, Tensors: tensors}, err
}

// The architectures, as general.architecture names them.
const (
	archLlama = "llama"
	archQwen2 = "qwen2"
	archQwen3 = "qwen3"
	archGPT2  = "gpt2"

	archQwen3MoE = "qwen3moe"
)

// keys reads a file's keys into members of a config.json.
type keys struct {
	file    *gguf.File
	arch    string
	values  gguf.Metadata
	config  map[string]any
	experts int64           // 0: there are none
	seen    map[string]bool // keys that are known
	err     error           // the first
}

// fail keeps the first error.
func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}

// archs are the architectures that are read and written.
var archs = []string{archLlama, archQwen2, archQwen3, archQwen3MoE, archGPT2}

// kind finds out the architecture, and that the file is all of a model.
func (k *keys) kind() error {
	arch, _ := k.values.Get("general.architecture").(string)
	if !slices.Contains(archs, arch) {
		return fmt.Errorf("general.architecture is %s: want %s", legible.Cut(arch, 40),
			strings.Join(archs, ", "))
	}
	k.arch = arch
	if what, said := k.values.Get("general.type").(string); said && what != "model" {
		return fmt.Errorf("general.type is %s: want model", legible.Cut(what, 40))
	}
	if n, _ := whole(k.values.Get("split.count")); n > 1 {
		return fmt.Errorf("split.count is %d: the model is in so many files; make one of them by "+
			"llama-gguf-split --merge", n)
	}
	return nil
}

// get is the value of a key of the architecture, which is known then.
func (k *keys) get(key string) any {
	key = k.arch + "." + key
	k.seen[key] = true
	return k.values.Get(key)
}

// whole is a value that is a whole number, or a list of equal ones, as a number of every layer is.
func whole(value any) (n int64, ok bool) {
	switch x := value.(type) {
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case int16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case int32:
		return int64(x), true
	case uint64:
		return int64(x), x < 1<<62
	case int64:
		return x, true
	case []int32:
		return same(x)
	case []uint32:
		return same(x)
	}
	return 0, false
}

// same is the number that all are.
func same[T int32 | uint32](all []T) (int64, bool) {
	if len(all) == 0 || slices.ContainsFunc(all, func(x T) bool { return x != all[0] }) {
		return 0, false
	}
	return int64(all[0]), true
}

// number reads a whole number of the architecture, and has a member of the configuration be it.
func (k *keys) number(key, member string) int64 {
	value := k.get(key)
	n, ok := whole(value)
	if !ok && value != nil {
		k.fail("%s.%s is %s: want a whole number, the same for all layers", k.arch, key,
			brief(value))
	}
	if ok && member != "" {
		k.config[member] = n
	}
	return n
}

// demanded reads a number that has to be there.
func (k *keys) demanded(key, member string) int64 {
	n := k.number(key, member)
	if n < 1 {
		k.fail("%s.%s is %s: want a whole number from 1", k.arch, key, brief(k.get(key)))
	}
	return n
}

// real reads a floating-point number, and has a member of a configuration be it.
func (k *keys) real(config map[string]any, key, member string) {
	switch x := k.get(key).(type) {
	case nil:
	case float32:
		config[member] = x
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			k.fail("%s.%s is %v: want a finite number", k.arch, key, x)
		}
	default:
		k.fail("%s.%s is %s: want a number as f32", k.arch, key, brief(x))
	}
}

// brief is a value on a line.
func brief(value any) string {
	if value == nil {
		return "missing"
	}
	return legible.Cut(fmt.Sprint(value), 60)
}

// gpt2 reads what GPT-2's files say.
func (k *keys) gpt2() {
	k.config["model_type"], k.config["activation_function"] = "gpt2", "gelu_new"
	k.demanded("block_count", "n_layer")
	k.demanded("context_length", "n_positions")
	k.demanded("embedding_length", "n_embd")
	k.demanded("feed_forward_length", "n_inner")
	k.demanded("attention.head_count", "n_head")
	k.real(k.config, "attention.layer_norm_epsilon", "layer_norm_epsilon")
	k.vocabulary()
}

// llama reads what LLaMA's files say, and Qwen's.
func (k *keys) llama() {
	k.config["model_type"] = k.arch
	k.demanded("block_count", "num_hidden_layers")
	width := k.demanded("embedding_length", "hidden_size")
	k.demanded("feed_forward_length", "intermediate_size")
	heads := k.demanded("attention.head_count", "num_attention_heads")
	k.config["num_key_value_heads"] = heads
	k.number("attention.head_count_kv", "num_key_value_heads")
	k.number("context_length", "max_position_embeddings")
	if k.get("attention.layer_norm_rms_epsilon") == nil {
		k.fail("%s.attention.layer_norm_rms_epsilon is missing", k.arch)
	}
	k.real(k.config, "attention.layer_norm_rms_epsilon", "rms_norm_eps")
	size := k.number("attention.key_length", "head_dim")
	if size == 0 && k.err == nil {
		size = width / heads
		k.config["head_dim"] = size
	}
	k.equal("attention.value_length", size)
	k.equal("rope.dimension_count", size)
	k.mixture()
	k.vocabulary()
	_, untied := k.file.Tensor("output.weight")
	k.config["tie_word_embeddings"] = !untied
	_, biased := k.file.Tensor("blk.0.attn_q.bias")
	if k.arch != archQwen2 {
		k.config["attention_bias"] = biased
	}
	if _, biased := k.file.Tensor("blk.0.ffn_gate.bias"); biased {
		k.config["mlp_bias"] = true
	}
	k.window()
	k.rotary(size)
}

// countExperts reads how many experts there are, of an architecture that has them.
func (k *keys) countExperts() {
	if k.arch != archLlama && k.arch != archQwen3MoE {
		return
	}
	if k.experts = k.number("expert_count", ""); k.experts > maxExperts {
		k.fail("%s.expert_count is %d: want %d at most", k.arch, k.experts, maxExperts)
	}
}

// mixture reads how many experts a token has, if there are any. Their gates add up to 1, as
// llama.cpp has it.
func (k *keys) mixture() {
	if k.experts == 0 && k.arch != archQwen3MoE {
		k.equal("expert_count", 0)
		k.equal("expert_used_count", 0)
		return
	}
	k.demanded("expert_count", "num_experts")
	k.demanded("expert_used_count", "num_experts_per_tok")
	k.equal("expert_shared_count", 0)
	if k.arch == archLlama {
		k.config["model_type"] = "mixtral"
		return
	}
	k.config["model_type"], k.config["norm_topk_prob"] = "qwen3_moe", true
	k.demanded("expert_feed_forward_length", "moe_intermediate_size")
}

// maxExperts is the most that are read: no network has so many.
const maxExperts = 1 << 12

// equal demands that a number is what it has to be, if the file says it.
func (k *keys) equal(key string, want int64) {
	n := k.number(key, "")
	if k.get(key) != nil && n != want {
		k.fail("%s.%s is %d: want %d", k.arch, key, n, want)
	}
}

// window is that of Mistral, which is LLaMA with one.
func (k *keys) window() {
	if k.arch != archLlama {
		return
	}
	if n := k.number("attention.sliding_window", ""); n > 0 {
		if k.config["sliding_window"] = n; k.experts == 0 {
			k.config["model_type"] = "mistral"
		}
		if k.config["attention_bias"] == true {
			k.fail("%s.attention.sliding_window is %d, and attention has biases: want one of them",
				k.arch, n)
		}
	}
}

// vocabulary is the rows of the embedding.
func (k *keys) vocabulary() {
	table, ok := k.file.Tensor("token_embd.weight")
	if !ok || len(table.Sizes) != 2 {
		k.fail("there is no tensor token_embd.weight of two axes")
		return
	}
	k.config["vocab_size"] = table.Sizes[0]
	k.equal("vocab_size", int64(table.Sizes[0]))
}

// endKeys are the keys of ids that end a text.
var endKeys = []string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
	"tokenizer.ggml.eom_token_id"}

// ends are the ids that end a text.
func (k *keys) ends() {
	var ids []int64
	for _, key := range endKeys {
		id, ok := whole(k.values.Get(key))
		if ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		k.config["eos_token_id"] = ids
	}
}

// idle are keys of an architecture that change nothing that is computed here: which of equal
// layouts a file had, and how embeddings of texts are taken from it.
var idle = []string{"tensor_data_layout", "pooling_type", "rope.scaling.finetuned"}

// rest refuses what the file says of the network besides.
func (k *keys) rest() {
	k.truth("attention.causal", true)
	k.truth("use_parallel_residual", false)
	for _, key := range idle {
		k.get(key)
	}
	for _, p := range k.values {
		if strings.HasPrefix(p.Key, k.arch+".") && !k.seen[p.Key] {
			k.fail("%s is %s: want none, since nothing is known of it", legible.Cut(p.Key, 60),
				brief(p.Value))
		}
	}
}

// truth demands a truth value, if the file says it.
func (k *keys) truth(key string, want bool) {
	if value := k.get(key); value != nil && value != want {
		k.fail("%s.%s is %s: want %t", k.arch, key, brief(value), want)
	}
}

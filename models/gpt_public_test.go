package models

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// publicGPT2 are the tensors of GPT-2's public checkpoint, but for layers after the
// first, with the axes of the small one.
var publicGPT2 = map[string][]int{
	"wte.weight": {50257, 768}, "wpe.weight": {1024, 768},
	"h.0.ln_1.weight": {768}, "h.0.ln_1.bias": {768},
	"h.0.attn.c_attn.weight": {768, 2304}, "h.0.attn.c_attn.bias": {2304},
	"h.0.attn.c_proj.weight": {768, 768}, "h.0.attn.c_proj.bias": {768},
	"h.0.ln_2.weight": {768}, "h.0.ln_2.bias": {768},
	"h.0.mlp.c_fc.weight": {768, 3072}, "h.0.mlp.c_fc.bias": {3072},
	"h.0.mlp.c_proj.weight": {3072, 768}, "h.0.mlp.c_proj.bias": {768},
	"ln_f.weight": {768}, "ln_f.bias": {768},
}

// publicLlama are those of TinyLlama's, with its axes.
var publicLlama = map[string][]int{
	"model.embed_tokens.weight":                      {32000, 2048},
	"model.layers.0.input_layernorm.weight":          {2048},
	"model.layers.0.self_attn.q_proj.weight":         {2048, 2048},
	"model.layers.0.self_attn.k_proj.weight":         {256, 2048},
	"model.layers.0.self_attn.v_proj.weight":         {256, 2048},
	"model.layers.0.self_attn.o_proj.weight":         {2048, 2048},
	"model.layers.0.post_attention_layernorm.weight": {2048},
	"model.layers.0.mlp.gate_proj.weight":            {5632, 2048},
	"model.layers.0.mlp.up_proj.weight":              {5632, 2048},
	"model.layers.0.mlp.down_proj.weight":            {2048, 5632},
	"model.norm.weight":                              {2048},
	"lm_head.weight":                                 {32000, 2048},
}

const configGPT2 = `{"activation_function":"gelu_new","architectures":["GPT2LMHeadModel"],
"attn_pdrop":0.1,"bos_token_id":50256,"eos_token_id":50256,"initializer_range":0.02,
"layer_norm_epsilon":1e-05,"model_type":"gpt2","n_ctx":1024,"n_embd":768,"n_head":12,
"n_layer":12,"n_positions":1024,"vocab_size":50257}`

const configLlama = `{"architectures":["LlamaForCausalLM"],"eos_token_id":[2,3],
"hidden_act":"silu","hidden_size":2048,"intermediate_size":5632,"max_position_embeddings":4096,
"model_type":"llama","num_attention_heads":32,"num_hidden_layers":22,"num_key_value_heads":4,
"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":500000.0,"tie_word_embeddings":false,
"vocab_size":32000}`

func parsed(t *testing.T, text string) GPTConfig {
	t.Helper()
	c, err := ParseGPTConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPublicLayout: the model has the parameters of public checkpoints, by their names
// and with their axes, and names map both ways.
func TestPublicLayout(t *testing.T) {
	for text, want := range map[string]map[string][]int{
		configGPT2: publicGPT2, configLlama: publicLlama,
	} {
		c := parsed(t, text)
		c.Layers, c.Length, c.Texts = 1, 16, 1
		have := map[string][]int{}
		for _, n := range buildGPT(t, c).Graph.Variables() {
			if n.State {
				continue
			}
			name := c.PublicName(n.Name)
			have[name] = n.Out[0].Sizes()
			for _, prefix := range []string{"", "transformer."} {
				if prefix != "" && c.Blocks == LlamaBlocks {
					continue
				}
				if back := c.ParameterName(prefix + name); back != n.Name {
					t.Errorf("%s is %s there, which is %s here", n.Name, prefix+name, back)
				}
			}
		}
		if !maps.EqualFunc(have, want, slices.Equal) {
			t.Errorf("%s\nhas  %v\nwant %v", c.Blocks, have, want)
		}
	}
}

// TestPublicBuffers: what is no parameter has no name here.
func TestPublicBuffers(t *testing.T) {
	for name, text := range map[string]string{
		"h.0.attn.bias": configGPT2, "transformer.h.11.attn.masked_bias": configGPT2,
		"lm_head.weight": configGPT2,
		"model.layers.0.self_attn.rotary_emb.inv_freq": configLlama,
	} {
		if got := parsed(t, text).ParameterName(name); got != "" {
			t.Errorf("%s is %s", name, got)
		}
	}
	tied := parsed(t, strings.Replace(configLlama, `embeddings":false`, `embeddings":true`, 1))
	if got := tied.ParameterName("lm_head.weight"); got != "" || tied.Untied {
		t.Errorf("tied: lm_head.weight is %s", got)
	}
}

// TestPublicConfig: numbers are read, written, and the same when they are read again.
func TestPublicConfig(t *testing.T) {
	gpt2, llama := parsed(t, configGPT2), parsed(t, configLlama)
	if n := gpt2.Parameters(); n != 124_439_808 || gpt2.Length != 1024 {
		t.Errorf("GPT-2 has %d parameters, and windows of %d tokens", n, gpt2.Length)
	}
	if n := llama.Parameters(); n != 1_100_048_384 || llama.RotaryBase != 500000 ||
		llama.Eps != 1e-6 || llama.Length != publicLength {
		t.Errorf("TinyLlama has %d parameters: %+v", n, llama)
	}
	for _, c := range []GPTConfig{gpt2, llama, gptConfig(t, "s512", GPT2Blocks),
		gptConfig(t, "s64", LlamaBlocks)} {
		text, err := c.PublicConfig(7)
		if err != nil {
			t.Fatal(err)
		}
		again := parsed(t, string(text))
		again.Size, again.Texts, again.Dropout, again.Schedule = c.Size, c.Texts, c.Dropout,
			c.Schedule
		if again != c || !strings.Contains(string(text), `"eos_token_id": 7`) {
			t.Errorf("%+v became %+v by way of %s", c, again, text)
		}
	}
}

// TestShaped: GPT-2 is known by its tensors.
func TestShaped(t *testing.T) {
	want := parsed(t, configGPT2)
	for _, prefix := range []string{"", "transformer."} {
		c, err := Shaped(func(name string) []int {
			name, ok := strings.CutPrefix(name, prefix)
			if strings.HasPrefix(name, "h.11.") {
				name = strings.Replace(name, "h.11.", "h.0.", 1)
			} else if ok && strings.HasPrefix(name, "h.") && len(name) > 3 && name[3] == '.' {
				name = "h.0." + name[4:]
			} else if strings.HasPrefix(name, "h.10.") {
				name = "h.0." + name[5:]
			}
			if !ok {
				return nil
			}
			return publicGPT2[name]
		})
		if err != nil || c != want {
			t.Errorf("%q: %+v, %v", prefix, c, err)
		}
	}
	if _, err := Shaped(func(string) []int { return nil }); err == nil {
		t.Error("a network without tensors was accepted")
	}
}

// TestPublicConfigRefuses: networks that are not built are refused on one line.
func TestPublicConfigRefuses(t *testing.T) {
	for _, row := range []struct{ text, from, to, want string }{
		{configGPT2, "{", "[", "no configuration"},
		{configGPT2, `"gpt2"`, `"bert"`, `model_type is "bert"`},
		{configGPT2, "gelu_new", "relu", `activation_function is "relu"`},
		{configGPT2, `"n_ctx"`, `"scale_attn_by_inverse_layer_idx":true,"n_ctx"`, "by_inverse"},
		{configGPT2, `"n_ctx"`, `"tie_word_embeddings":false,"n_ctx"`, "tie_word"},
		{configGPT2, `"n_head":12`, `"n_head":7`, "multiple of the 7 heads"},
		{configGPT2, `"n_head":12`, `"n_head":-1`, "heads is -1"},
		{configLlama, "silu", "gelu", `hidden_act is "gelu"`},
		{configLlama, `"vocab_size"`, `"attention_bias":true,"vocab_size"`, "attention_bias"},
		{configLlama, `"rope_scaling":null`, `"rope_scaling":{"type":"x"}`, "rope_scaling"},
		{configLlama, `"vocab_size"`, `"head_dim":128,"vocab_size"`, "head_dim is 128"},
	} {
		_, err := ParseGPTConfig([]byte(strings.Replace(row.text, row.from, row.to, 1)))
		if err == nil || !strings.Contains(err.Error(), row.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v does not say %q", row.to, err, row.want)
		}
	}
}

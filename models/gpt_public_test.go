package models

import (
	"maps"
	"reflect"
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
	p, err := ParsePublished([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p.GPTConfig
}

// with is a config.json with more members.
func with(config, more string) string {
	return strings.Replace(config, "{", "{"+more+",", 1)
}

// TestPublicLayout: the model has the parameters of public checkpoints, by their names
// and with their axes, and names map both ways.
func TestPublicLayout(t *testing.T) {
	for text, want := range map[string]map[string][]int{
		configGPT2: publicGPT2, configLlama: publicLlama, configMixtral: publicMixtral,
		configQwenExperts: publicQwenExperts,
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
			base := strings.TrimPrefix(name, "model.")
			for _, there := range []string{name, base, basePrefixes[c.Blocks] + base} {
				if back := c.ParameterName(there); back != n.Name || c.Role(there) != Learnt {
					t.Errorf("%s is %s there, which is %s here", n.Name, there, back)
				}
			}
		}
		if !maps.EqualFunc(have, want, slices.Equal) {
			t.Errorf("%s\nhas  %v\nwant %v", c.Blocks, have, want)
		}
	}
}

// TestPublicRoles: what is no parameter has no name here, and is told apart by what it would
// do to the network.
func TestPublicRoles(t *testing.T) {
	tied := strings.Replace(configLlama, `embeddings":false`, `embeddings":true`, 1)
	for _, row := range []struct {
		config string
		role   Role
		names  string
	}{
		{configGPT2, Made, "h.0.attn.bias transformer.h.11.attn.masked_bias"},
		{configGPT2, Repeated, "lm_head.weight"},
		{configGPT2, Strange, "h.12.ln_1.weight h.0.attn.q_norm.weight lm_head.bias " +
			"h.00.ln_1.weight transformer.anything h.0.crossattention.c_attn.weight " +
			"h.99999999999999999999.ln_1.bias"},
		{configGPT2, Beside, "score.weight model.norm.weight multiple_choice_head.summary.bias"},
		{configLlama, Made, "model.layers.0.self_attn.rotary_emb.inv_freq rotary_emb.inv_freq"},
		{configLlama, Learnt, "lm_head.weight"},
		{configLlama, Strange, "model.layers.0.self_attn.q_proj.bias " +
			"layers.22.mlp.up_proj.weight model.layers.0.self_attn.q_norm.weight " +
			"model.mtp.weight lm_head.bias model.layers.0.mlp.up_proj.weight_scale"},
		{configLlama, Beside, "score.weight vision_tower.layers.0.weight h.0.ln_1.weight"},
		{tied, Repeated, "lm_head.weight"},
		{configMixtral, Strange, "layers.0.mlp.up_proj.weight " +
			"model.layers.0.block_sparse_moe.experts.2.w1.weight " +
			"model.layers.0.block_sparse_moe.experts.00.w1.weight " +
			"model.layers.0.block_sparse_moe.experts.0.w4.weight " +
			"model.layers.0.block_sparse_moe.experts.0.w1.bias " +
			"model.layers.0.block_sparse_moe.0.w1.weight"},
		{configQwenExperts, Strange, "model.layers.0.mlp.gate_proj.weight " +
			"model.layers.0.mlp.shared_expert.up_proj.weight model.layers.0.mlp.gate.bias"},
	} {
		c := parsed(t, row.config)
		for _, name := range strings.Fields(row.names) {
			if got := c.Role(name); got != row.role ||
				(c.ParameterName(name) == "") == (row.role == Learnt) {
				t.Errorf("%s of %s: role %d, want %d; parameter %s", name, c.Blocks, got, row.role,
					c.ParameterName(name))
			}
		}
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
		for ends, want := range map[string][]int32{"null": nil, "7": {7}, "[7,9]": {7, 9}} {
			text, err := c.PublicConfig(want...)
			if err != nil {
				t.Fatal(err)
			}
			p, err := ParsePublished(text)
			again := p.GPTConfig
			again.Size, again.Texts, again.Dropout, again.Schedule = c.Size, c.Texts, c.Dropout,
				c.Schedule
			if c.Positions == 0 { // the file says how many are read at a time
				again.Positions = 0
			}
			if err != nil || !reflect.DeepEqual(again, c) || !slices.Equal(p.Ends, want) ||
				p.Unknown != nil {
				t.Errorf("%+v became %+v by way of %s: %v", c, p, text, err)
			}
			if plain := strings.Join(strings.Fields(string(text)), ""); !strings.Contains(plain,
				`"eos_token_id":`+ends) {
				t.Errorf("%s does not say that %s end a text", text, ends)
			}
		}
	}
}

// TestPublicConfigHonours: what a file says in any of its ways is what the network has, and
// what it does not say has the published default.
func TestPublicConfigHonours(t *testing.T) {
	bare, base := parsed(t, `{"model_type":"llama"}`), parsed(t, `{"model_type":"gpt2"}`)
	if bare.Width != 4096 || bare.Layers != 32 || bare.Heads != 32 || bare.KeyHeads != 32 ||
		bare.Hidden != 11008 || bare.Vocab != 32000 || bare.Eps != 1e-6 || bare.RotaryBase != 1e4 ||
		!bare.Untied || bare.Length != 2048 {
		t.Errorf("a LLaMA that says nothing: %+v", bare)
	}
	if want := parsed(t, configGPT2); !reflect.DeepEqual(base, want) {
		t.Errorf("a GPT-2 that says nothing: %+v, want %+v", base, want)
	}
	theta := func(base float32) func(p Published) bool {
		return func(p Published) bool { return p.RotaryBase == base }
	}
	plain := strings.Replace(configLlama, `"rope_scaling":null,"rope_theta":500000.0,`, "", 1)
	same := func(p Published) bool { return p.Unknown == nil }
	for _, row := range []struct {
		config, more string
		honoured     func(p Published) bool
	}{
		{plain, `"rope_parameters":{"rope_theta":3e5,"rope_type":"default"}`, theta(3e5)},
		{plain, `"rope_parameters":{"rope_theta":3e5},"rope_theta":300000`, theta(3e5)},
		{plain, `"rope_parameters":null`, theta(1e4)},
		{plain, `"rope_scaling":{"type":"default","rope_theta":7}`, theta(7)},
		{configLlama, `"rope_parameters":{"type":"default"}`, theta(5e5)},
		{plain, `"rope_scaling":{"rope_type":"default","factor":1.0}`, theta(1e4)},
		{plain, `"hidden_act":"swish"`, same},
		{plain, `"sliding_window":4096,"use_sliding_window":false`, same},
		{plain, `"layer_types":["full_attention"],"head_dim":64,"attention_bias":false`, same},
		{plain, `"quantization_config":null,"partial_rotary_factor":1.0`, same},
		{plain, `"attention_bias":true,"mlp_bias":true`, func(p Published) bool {
			return p.QueryBias && p.OutputBias && p.HiddenBias
		}},
		{plain, `"head_dim":128`, func(p Published) bool { return p.size() == 128 }},
		{plain, `"rope_scaling":{"rope_type":"dynamic","factor":2}`, func(p Published) bool {
			return p.Rotary.Kind == "dynamic" && !p.scaled(nil).Valid()
		}},
		{plain, `"rope_scaling":{"rope_type":"yarn","original_max_position_embeddings":256}`,
			func(p Published) bool { return p.Rotary.Factor == 16 }},
		{plain, `"num_key_value_heads":null`, func(p Published) bool { return p.KeyHeads == 4 }},
		{plain, `"zeta":1,"alpha":{},"beta":null,"_gamma":1`, func(p Published) bool {
			return slices.Equal(p.Unknown, []string{"alpha", "zeta"})
		}},
		{configGPT2, `"activation_function":"gelu_fast","scale_attn_weights":true`, same},
		{configGPT2, `"reorder_and_upcast_attn":true,"pruned_heads":{}`, same},
		{configGPT2, `"n_inner":null`, func(p Published) bool { return p.Hidden == 4*768 }},
		{configGPT2, `"hidden_size":768,"num_hidden_layers":12`, same},
		{configGPT2, `"architectures":["GPT2Model"]`, same},
		{`{"model_type":"gpt2"}`, `"hidden_size":1024,"num_attention_heads":16`,
			func(p Published) bool { return p.Width == 1024 && p.Heads == 16 && p.Hidden == 4096 }},
		{plain, `"tie_word_embeddings":true`, func(p Published) bool {
			return p.Untied // the last counts
		}},
	} {
		p, err := ParsePublished([]byte(with(row.config, row.more)))
		if err != nil || !row.honoured(p) {
			t.Errorf("%s: %+v, %v", row.more, p, err)
		}
	}
}

// TestPublishedEnds: the ids that end a text are one, several, or not said.
func TestPublishedEnds(t *testing.T) {
	for text, want := range map[string][]int32{
		`{}`: nil, `{"eos_token_id":null}`: nil, `{"eos_token_id":[]}`: {},
		`{"eos_token_id":7,"temperature":0.6}`: {7}, `{"eos_token_id":[9,7]}`: {9, 7},
	} {
		if got, err := PublishedEnds([]byte(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"[", `{"eos_token_id":"</s>"}`, `{"eos_token_id":1.5}`} {
		if got, err := PublishedEnds([]byte(text)); err == nil {
			t.Errorf("%s: %v", text, got)
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
		if err != nil || !reflect.DeepEqual(c, want) {
			t.Errorf("%q: %+v, %v", prefix, c, err)
		}
	}
	if _, err := Shaped(func(string) []int { return nil }); err == nil {
		t.Error("a network without tensors was accepted")
	}
}

const configQwen = `{"model_type":"qwen2","use_sliding_window":true,"sliding_window":6,
"max_window_layers":1,"num_hidden_layers":2}`

// TestFamiliesAreWritten: what a family's configuration says is said again where it is written.
func TestFamiliesAreWritten(t *testing.T) {
	for _, text := range []string{configLlama, configQwen, configMixtral,
		configQwenExperts, `{"model_type":"mixtral"}`, `{"model_type":"qwen3_moe"}`,
		`{"model_type":"qwen3_moe","norm_topk_prob":true,"num_local_experts":4,` +
			`"num_experts_per_tok":4}`, `{"model_type":"mistral"}`,
		`{"model_type":"mistral","sliding_window":null,"head_dim":64}`, `{"model_type":"qwen3"}`,
		`{"model_type":"qwen3","attention_bias":true,"head_dim":null}`,
		`{"model_type":"llama","attention_bias":true,"mlp_bias":true,"head_dim":6,` +
			`"rope_parameters":{"rope_type":"llama3","factor":8,"low_freq_factor":1,` +
			`"high_freq_factor":4,"original_max_position_embeddings":8192}}`,
		`{"model_type":"llama","rope_scaling":{"rope_type":"yarn","factor":4,"mscale":2,` +
			`"mscale_all_dim":1}}`,
		`{"model_type":"qwen2","rope_scaling":{"rope_type":"dynamic","factor":4}}`,
	} {
		want := parsed(t, text)
		again, err := want.PublicConfig(7)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed(t, string(again)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is written as %s:\n%+v\nwant\n%+v", text, again, got, want)
		}
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
		{configGPT2, `"n_ctx"`, `"scale_attn_weights":false,"n_ctx"`,
			"scale_attn_weights is false"},
		{configGPT2, `"n_ctx"`, `"add_cross_attention":true,"n_ctx"`, "add_cross_attention"},
		{configGPT2, `"n_ctx"`, `"is_encoder_decoder":true,"n_ctx"`, "is_encoder_decoder"},
		{configGPT2, `"n_ctx"`, `"pruned_heads":{"0":[1]},"n_ctx"`, `pruned_heads is {"0":[1]}`},
		{configGPT2, `"n_ctx"`, `"hidden_size":512,"n_ctx"`,
			"n_embd is 768 and hidden_size is 512"},
		{configGPT2, `"n_layer":12`, `"n_layer":"12"`, `n_layer is "12": want a whole number`},
		{configGPT2, "GPT2LMHeadModel", "GPT2ForSequenceClassification", "architectures has"},
		{configGPT2, "gelu_new", "gelu", `activation_function is "gelu"`},
		{configLlama, "silu", "gelu", `hidden_act is "gelu"`},
		{configLlama, `"model_type":"llama"`, `"model_type":"mistral","attention_bias":true`,
			"attention_bias is true"},
		{configLlama, `"model_type":"llama"`, `"model_type":"qwen3","mlp_bias":true`,
			"mlp_bias is true"},
		{configLlama, `"model_type":"llama"`, `"model_type":"gemma"`,
			`model_type is "gemma": want gpt2, llama, mistral, mixtral, qwen2, qwen3 or qwen3_moe`},
		{configLlama, `"rope_scaling":null`, `"rope_scaling":{"type":"x"}`,
			"rope_scaling.rope_type"},
		{configLlama, `"rope_scaling":null`, `"rope_scaling":{"rope_type":"longrope"}`, "longrope"},
		{configLlama, `"rope_scaling":null`, `"rope_scaling":{"rope_type":"linear","factor":0.5}`,
			"factor 0.5"},
		{configLlama, `"rope_scaling":null`, `"rope_scaling":{"rope_type":"linear","beta_fast":2}`,
			"rope_scaling.beta_fast is 2: want none"},
		{configLlama, `"rope_scaling":null`, `"rope_parameters":{"rope_type":"llama3"}`,
			"rotary scaling has factor 0"},
		{configLlama, `"rope_scaling":null`, `"rope_parameters":{"rope_type":"llama3","factor":8,` +
			`"low_freq_factor":4,"high_freq_factor":4}`, "between 4 and 4 turns"},
		{configLlama, `"rope_scaling":null`, `"rope_parameters":{"rope_type":"linear",` +
			`"factor":2},"rope_scaling":{"rope_type":"linear","factor":3}`, "scale in two ways"},
		{configLlama, `"rope_scaling":null`, `"rope_scaling":{"rope_type":"yarn","factor":2,` +
			`"truncate":false}`, "truncate is false"},
		{configQwen, `"max_window_layers":1`,
			`"layer_types":["sliding_attention","full_attention"]`,
			"full_attention after sliding_attention"},
		{configLlama, `"rope_scaling":null,"rope_theta":500000.0`,
			`"rope_scaling":{"rope_type":"yarn","factor":2},"rope_theta":1`, "rotary base is 1"},
		{configLlama, `"max_position_embeddings":4096`, `"max_position_embeddings":1`,
			"--length is 1"},
		{configQwen, `"max_window_layers":1`,
			`"layer_types":["full_attention","sliding_attention","sliding_attention"]`,
			"layer_types has 3 layers: want 2"},
		{configQwen, `"sliding_window":6`, `"sliding_window":0`, "sliding_window is 0"},
		{configQwen, `"max_window_layers":1`, `"layer_types":["chunked_attention"]`,
			"chunked_attention"},
		{configLlama, `"rope_scaling":null`, `"rope_parameters":{"rope_theta":10000.0}`,
			"rope_parameters.rope_theta is 10000, and elsewhere 500000"},
		{configLlama, `"rope_scaling":null`, `"rope_parameters":{"full_attention":{}}`,
			"rope_parameters.full_attention is {}"},
		{configLlama, `"rope_scaling":null`, `"rope_parameters":{"partial_rotary_factor":0.5}`,
			"partial_rotary_factor is 0.5"},
		{configLlama, `"rope_scaling":null`, `"rope_parameters":[]`, "want an object"},
		{configLlama, `"vocab_size"`, `"partial_rotary_factor":0.25,"vocab_size"`,
			"partial_rotary"},
		{configLlama, `"vocab_size"`, `"rope_interleaved":true,"vocab_size"`, "rope_interleaved"},
		{configLlama, `"vocab_size"`, `"quantization_config":{"bits":4},"vocab_size"`,
			`quantization_config is {"bits":4}: want none`},
		{configLlama, `"vocab_size"`, `"sliding_window":128,"vocab_size"`, "sliding_window is 128"},
		{configLlama, `"vocab_size"`, `"layer_types":["sliding_attention"],"vocab_size"`,
			"layer_types has"},
		{configLlama, "LlamaForCausalLM", "LlamaForCausalLMEagle3", "architectures has"},
		{configLlama, `"vocab_size"`, `"num_local_experts":8,"vocab_size"`,
			"num_local_experts is 8: want 0"},
		{configMixtral, `"num_local_experts":2`, `"num_local_experts":0`, "0 experts, 1 of them"},
		{configMixtral, `"vocab_size"`, `"num_experts":3,"vocab_size"`,
			"num_experts is 3 and num_local_experts is 2"},
		{configMixtral, `"vocab_size"`, `"router_jitter_noise":0.1,"vocab_size"`,
			"router_jitter_noise is 0.1: want 0"},
		{configQwenExperts, `"num_experts_per_tok":2`, `"num_experts_per_tok":3`,
			"2 experts, 3 of them"},
		{configQwenExperts, `"vocab_size"`, `"decoder_sparse_step":2,"vocab_size"`,
			"decoder_sparse_step is 2: want 1"},
		{configQwenExperts, `"vocab_size"`, `"mlp_only_layers":[1],"vocab_size"`,
			"mlp_only_layers is [1]: want []"},
		{configLlama, `"vocab_size"`, `"head_dim":0,"vocab_size"`, "head_dim is 0"},
		{configLlama, `"vocab_size"`, `"head_dim":7,"vocab_size"`, "heads have width 7"},
		{configLlama, `"eos_token_id":[2,3]`, `"eos_token_id":"</s>"`, "eos_token_id is"},
	} {
		_, err := ParsePublished([]byte(strings.Replace(row.text, row.from, row.to, 1)))
		if err == nil || !strings.Contains(err.Error(), row.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v does not say %q", row.to, err, row.want)
		}
	}
}

package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/gomem/gomem/internal/legible"
)

// members are those of a JSON object. What is asked for is taken out of what is left, so
// that nothing is passed over unknown.
type members struct {
	raw, left map[string]json.RawMessage
	within    string // the name of the object and a dot, in another
	err       error  // the first
}

// fail keeps the first error.
func (m *members) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// has reports whether a member says something.
func (m *members) has(name string) bool {
	raw, ok := m.raw[name]
	return ok && string(raw) != "null"
}

// take reads a member that has one of several names. One that says nothing leaves into as it
// is; several have to say the same.
func (m *members) take(into any, names ...string) {
	first := ""
	for _, name := range names {
		delete(m.left, name)
		switch raw := m.raw[name]; {
		case !m.has(name):
		case first != "" && !equal(raw, m.raw[first]):
			m.fail(fmt.Errorf("%s is %s and %s is %s: want the same", m.within+first,
				brief(m.raw[first]), m.within+name, brief(raw)))
		case json.Unmarshal(raw, into) != nil:
			m.fail(fmt.Errorf("%s is %s: want %s", m.within+name, brief(raw),
				kinds[reflect.TypeOf(into).Elem().Kind()]))
		default:
			first = name
		}
	}
}

// kinds are what members may be, in words.
var kinds = map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Float32: "a number",
	reflect.Float64: "a number",
	reflect.Bool:    "true or false", reflect.String: "a text", reflect.Slice: "a list of texts",
	reflect.Map: "an object"}

// demand is a member that changes the network, and the values with which it is the one that
// GPT builds, in JSON.
type demand struct {
	member string
	values []string
}

// demand refuses members with other values than those that are wanted.
func (m *members) demand(within string, all []demand) {
	for _, d := range all {
		delete(m.left, d.member)
		if !m.has(d.member) {
			continue
		}
		raw, honoured := m.raw[d.member], false
		for _, v := range d.values {
			honoured = honoured || equal(raw, []byte(v))
		}
		if !honoured {
			want := "none"
			if len(d.values) > 0 {
				want = strings.Join(d.values, " or ")
			}
			m.fail(fmt.Errorf("%s is %s: want %s", within+d.member, brief(raw), want))
		}
	}
}

// equal compares values, however they are written.
func equal(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// brief is a value on a line.
func brief(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "?"
	}
	return legible.Cut(b.String(), 60)
}

// What has to have a value that GPT builds, in every config.json and in those of a kind.
// Others are refused: the network would be another.
var (
	everywhere = []demand{
		{"quantization_config", nil}, {"compression_config", nil}, {"quantization", nil},
		{"is_encoder_decoder", []string{"false"}}, {"add_cross_attention", []string{"false"}},
		{"pruned_heads", []string{"{}"}},
	}
	ofDense = []demand{{"num_experts", []string{"0"}}, {"num_local_experts", []string{"0"}}}
	ofGPT2  = []demand{
		// all of them GELU by a hyperbolic tangent, in several spellings
		{"activation_function", []string{`"gelu_new"`, `"gelu_fast"`, `"gelu_pytorch_tanh"`,
			`"gelu_python_tanh"`, `"gelu_accurate"`}},
		{"scale_attn_weights", []string{"true"}},
		{"scale_attn_by_inverse_layer_idx", []string{"false"}},
		{"tie_word_embeddings", []string{"true"}},
	}
	ofLlama = []demand{
		{"hidden_act", []string{`"silu"`, `"swish"`}},
		{"partial_rotary_factor", []string{"1"}}, {"rope_interleaved", []string{"false"}},
	}
	ofRotary = []demand{
		{"partial_rotary_factor", []string{"1"}},
	}
)

// idle are the members that change nothing that is computed here: what concerns training,
// memory or other programs, what another network adds, and how texts are generated, which
// is asked for anew. In f32 the order of attention's operations (reorder_and_upcast_attn,
// pretraining_tp) is a matter of rounding.
var idle = set(`model_type transformers_version torch_dtype dtype name_or_path
	use_cache bos_token_id pad_token_id sep_token_id unk_token_id decoder_start_token_id
	initializer_range attention_dropout hidden_dropout attn_pdrop embd_pdrop resid_pdrop
	classifier_dropout summary_type summary_use_proj summary_activation summary_first_dropout
	summary_proj_to_labels n_ctx reorder_and_upcast_attn pretraining_tp is_decoder
	cross_attention_hidden_size gradient_checkpointing tie_encoder_decoder attn_implementation
	output_attentions output_hidden_states return_dict torchscript use_bfloat16
	tf_legacy_loss chunk_size_feed_forward finetuning_task id2label label2id num_labels
	problem_type prefix tokenizer_class task_specific_params max_sequence_length
	max_length min_length do_sample early_stopping num_beams num_beam_groups
	diversity_penalty temperature top_k top_p typical_p repetition_penalty length_penalty
	no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids num_return_sequences
	output_scores return_dict_in_generate forced_bos_token_id forced_eos_token_id
	remove_invalid_values exponential_decay_length_penalty suppress_tokens
	begin_suppress_tokens output_router_logits router_aux_loss_coef`)

// set is the words of a text.
func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

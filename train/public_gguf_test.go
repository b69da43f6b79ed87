package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/models"
)

const ggufs = "testdata/gguf"

// ggufNumber is number i of a tensor that a public checkpoint calls by a name, as make.py has it.
func ggufNumber(name string, i int) float32 {
	k := int(crc32.ChecksumIEEE([]byte(name)) % 251)
	return float32((i*37+k)%251-125) / 256
}

// openGGUFs opens one of the files that the library for Python wrote.
func openGGUFs(t *testing.T, arch string) *Public {
	t.Helper()
	path := filepath.Join(ggufs, arch+".gguf")
	p, err := OpenPublic(path)
	if err != nil || !IsPublic(path) {
		t.Fatal(err)
	}
	return p
}

// TestPublicTokenizer: a tokenizer is read where there are no weights, and of a file of llama.cpp.
func TestPublicTokenizer(t *testing.T) {
	p := openGGUFs(t, "gpt2")
	dir := t.TempDir()
	config, err := p.Config.PublicConfig(p.Tokenizer.Ends()...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Tokenizer.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(publicConfig, config)
	if _, err := PublicTokenizer(dir); err == nil ||
		!strings.Contains(err.Error(), "has no tokenizer.json") {
		t.Errorf("none: %v", err)
	}
	put(publicTokenizer, text)
	const words = "the plan of a step"
	for _, path := range []string{p.Path, dir, filepath.Join(dir, publicConfig)} {
		tok, err := PublicTokenizer(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, want := tok.Encode(words), p.Tokenizer.Encode(words); !slices.Equal(got, want) ||
			!slices.Equal(tok.Ends(), p.Tokenizer.Ends()) {
			t.Errorf("%s: %v and %v, want %v and %v", path, got, tok.Ends(), want,
				p.Tokenizer.Ends())
		}
	}
	put(publicTokenizer, []byte("{}"))
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		_, err := PublicTokenizer(path)
		if _, ok := errors.AsType[*ErrCheckpoint](err); !ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestGGUF: networks, tokenizers and weights of files of llama.cpp are those of the checkpoints
// that they stand for, to the bit.
func TestGGUF(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(ggufs, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tokens struct {
		Texts []string
		IDs   map[string][][]int32
	}
	if err := json.Unmarshal(text, &tokens); err != nil {
		t.Fatal(err)
	}
	for arch, ids := range tokens.IDs {
		p := openGGUFs(t, arch)
		m, err := models.GPT(p.Config)
		if err != nil {
			t.Fatal(err)
		}
		s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{}, Targets(&m.Model)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Load(s, m.Parameters()); err != nil {
			t.Fatal(err)
		}
		for _, v := range m.Parameters() {
			x, err := s.Get(v)
			if err != nil {
				t.Fatal(err)
			}
			name := p.Config.PublicName(v.Node.Name)
			for i, got := range x.F32() {
				if want := ggufNumber(name, i); got != want {
					t.Fatalf("%s: %s has %v for element %d, want %v", arch, name, got, i, want)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for i, want := range ids {
			if got := p.Tokenizer.Encode(tokens.Texts[i]); !slices.Equal(got, want) {
				t.Errorf("%s: %q is %v, want %v", arch, tokens.Texts[i], got, want)
			}
		}
		prompt := p.Tokenizer.Prompt("")
		llama := arch == "llama" || arch == "mixtral"
		if begins := slices.Equal(prompt, []int32{268}); begins != llama ||
			p.Tokenizer.EOS() != 269 || len(p.Notes) > 0 {
			t.Errorf("%s: begins with %v, ends with %d, notes %v", arch, prompt, p.Tokenizer.EOS(),
				p.Notes)
		}
	}
}

// TestGGUFNetworks: what files of llama.cpp say of their networks is what a config.json says.
func TestGGUFNetworks(t *testing.T) {
	small := `,"num_hidden_layers":1,"hidden_size":16,"intermediate_size":24,"vocab_size":272,
		"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
		"rope_theta":500000,"rms_norm_eps":1e-5,"tie_word_embeddings":`
	for arch, config := range map[string]string{
		"llama": `"model_type":"llama","head_dim":8` + small + `true,
			"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,
			"original_max_position_embeddings":8192}`,
		"qwen2":   `"model_type":"qwen2"` + small + `false`,
		"qwen3":   `"model_type":"qwen3","head_dim":8` + small + `false`,
		"mixtral": `"model_type":"mixtral","head_dim":8,"num_local_experts":3` + small + `false`,
		"qwen3moe": `"model_type":"qwen3_moe","head_dim":8,"num_experts":3,"num_experts_per_tok":2,
			"moe_intermediate_size":24,"norm_topk_prob":true` + small + `false`,
		"gpt2": `"model_type":"gpt2","n_layer":1,"n_embd":16,"n_inner":24,"n_head":2,
			"n_positions":32,"vocab_size":272`,
	} {
		want, err := models.ParsePublished([]byte("{" + config + "}"))
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := GGUFNetwork(filepath.Join(ggufs, arch+".gguf"))
		if err != nil || !ok || !reflect.DeepEqual(got.GPTConfig, want.GPTConfig) ||
			!slices.Equal(got.Ends, []int32{269}) || got.Unknown != nil {
			t.Errorf("%s: %+v, %v, want %+v", arch, got, err, want)
		}
	}
}

// editGGUF writes one of the files again, with other values and tensors.
func editGGUF(t *testing.T, arch string, edit func(m gguf.Metadata, all []gguf.Tensor) (
	gguf.Metadata, []gguf.Tensor)) string {
	t.Helper()
	f, err := gguf.Open(filepath.Join(ggufs, arch+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer closeRead(f)
	names := map[string]string{} // that tensors had
	before := f.Tensors()
	m, all := edit(slices.Clone(f.Metadata()), slices.Clone(before))
	for i := range all {
		names[all[i].Name] = before[min(i, len(before)-1)].Name
	}
	var b bytes.Buffer
	err = gguf.Write(&b, m, all, func(x gguf.Tensor, w io.Writer) error {
		data := make([]byte, x.Bytes())
		was, _ := f.Tensor(names[x.Name])
		if err := f.ReadPart(was.Name, data[:min(x.Bytes(), was.Bytes())], 0); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "edited.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGGUFRefuses: what would make another network, or is damaged, is refused on one line that
// names it.
func TestGGUFRefuses(t *testing.T) {
	type editing = func(gguf.Metadata, []gguf.Tensor) (gguf.Metadata, []gguf.Tensor)
	set := func(key string, value any) editing {
		return func(m gguf.Metadata, all []gguf.Tensor) (gguf.Metadata, []gguf.Tensor) {
			m = slices.DeleteFunc(m, func(p gguf.Pair) bool { return p.Key == key })
			if value != nil {
				m = append(m, gguf.Pair{Key: key, Value: value})
			}
			return m, all
		}
	}
	tensor := func(name string, change func(x *gguf.Tensor)) editing {
		return func(m gguf.Metadata, all []gguf.Tensor) (gguf.Metadata, []gguf.Tensor) {
			for i := range all {
				if all[i].Name == name {
					change(&all[i])
				}
			}
			return m, all
		}
	}
	for _, row := range []struct {
		arch string
		edit editing
		want string
	}{
		{"llama", set("general.architecture", "mamba"), "architecture is mamba: want llama"},
		{"llama", set("general.type", "adapter"), "general.type is adapter"},
		{"llama", set("split.count", uint16(3)), "split.count is 3"},
		{"llama", set("llama.block_count", nil), "llama.block_count is missing"},
		{"llama", set("llama.block_count", "1"), "llama.block_count is 1: want a whole number"},
		{"llama", set("llama.block_count", uint32(2)), "has no tensor"},
		{"llama", set("llama.attention.head_count", uint32(0)), "head_count is 0"},
		{"llama", set("llama.attention.head_count", int32(-4)), "head_count is -4"},
		{"llama", set("llama.attention.head_count", uint32(3)), "attn_q.weight has axes"},
		{"llama", set("llama.attention.head_count_kv", []int32{2, 1}), "the same for all layers"},
		{"llama", set("llama.attention.layer_norm_rms_epsilon", nil), "rms_epsilon is missing"},
		{"llama", set("llama.attention.layer_norm_rms_epsilon", float32(math.NaN())), "finite"},
		{"llama", set("llama.attention.key_length", nil), "value_length is 8: want 4"},
		{"llama", set("llama.attention.value_length", uint32(4)), "value_length is 4: want 8"},
		{"llama", set("llama.rope.dimension_count", uint32(4)), "dimension_count is 4: want 8"},
		{"llama", set("llama.expert_count", uint32(8)), "llama.expert_used_count is missing"},
		{"qwen3", set("qwen3.expert_count", uint32(8)), "qwen3.expert_count is 8: want 0"},
		{"mixtral", set("llama.expert_count", uint32(2)), "axes [3 24 16] belongs to no network"},
		{"mixtral", set("llama.expert_count", uint32(1<<13)), "8192: want 4096 at most"},
		{"mixtral", set("llama.expert_used_count", uint32(4)), "3 experts, 4 of them"},
		{"qwen3moe", set("qwen3moe.expert_count", uint32(0)), "belongs to no network"},
		{"qwen3moe", set("qwen3moe.expert_shared_count", uint32(1)), "shared_count is 1: want 0"},
		{"llama", set("llama.vocab_size", uint32(9)), "llama.vocab_size is 9: want 272"},
		{"llama", set("llama.logit_scale", float32(2)), "llama.logit_scale is 2: want none"},
		{"llama", set("llama.attention.causal", false), "llama.attention.causal is false"},
		{"llama", set("llama.rope.scaling.type", "longrope"), "rope.scaling.type is longrope"},
		{"llama", set("llama.rope.scaling.yarn_attn_factor", float32(2)), "attn_factor is 2"},
		{"llama", set("llama.rope.freq_base", float32(1e4)), "rope_freqs.weight has"},
		{"llama", tensor("output_norm.weight", func(x *gguf.Tensor) { x.Name = "blk.0.ssm_a" }),
			"tensor blk.0.ssm_a belongs to no network of architecture llama"},
		{"llama", tensor("blk.0.ffn_up.weight", func(x *gguf.Tensor) {
			x.Name = "blk.1.ffn_up.weight"
		}), "its network, llama with 1 layers, does not have"},
		{"llama", tensor("blk.0.ffn_down.weight", func(x *gguf.Tensor) { x.Sizes = []int{24, 16} }),
			"down_proj"},
		{"llama", tensor("blk.0.ffn_down.weight", func(x *gguf.Tensor) {
			x.Type, x.Sizes = 24, []int{16, 24}
		}), "tensor blk.0.ffn_down.weight is I8: want F32, F16"},
		{"qwen2", set("qwen2.attention.sliding_window", uint32(8)), "window is 8: want none"},
		{"gpt2", set("gpt2.context_length", nil), "gpt2.context_length is missing"},
		{"gpt2", tensor("blk.0.ffn_up.weight", func(x *gguf.Tensor) {
			x.Sizes = []int{384}
		}), "c_fc"},
	} {
		p, err := OpenPublic(editGGUF(t, row.arch, row.edit))
		if err == nil {
			m, other := models.GPT(p.Config)
			if other != nil {
				t.Fatal(other)
			}
			err = p.has(m.Parameters())
		}
		if _, ok := errors.AsType[*ErrCheckpoint](err); !ok ||
			!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, row.want)
		}
	}
}

// TestGGUFWindow: a window makes Mistral of LLaMA.
func TestGGUFWindow(t *testing.T) {
	p, err := OpenPublic(editGGUF(t, "llama", func(m gguf.Metadata, all []gguf.Tensor) (
		gguf.Metadata, []gguf.Tensor) {
		return append(m, gguf.Pair{Key: "llama.attention.sliding_window", Value: uint32(8)}), all
	}))
	if err != nil || p.Config.Window != 8 || p.Config.Family != "mistral" {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestGGUFTokenizers: a tokenizer of a kind that is not known is said to be so, unless one is
// beside the file.
func TestGGUFTokenizers(t *testing.T) {
	for _, row := range []struct {
		key   string
		value any
		want  string
	}{
		{"tokenizer.ggml.model", "bert", "tokenizer.ggml.model is bert: want gpt2"},
		{"tokenizer.ggml.model", "llama", "272 tokens, and scores 0: want one of each"},
		{"tokenizer.ggml.model", nil, "has no tokenizer.json"},
		{"tokenizer.ggml.pre", "default", "tokenizer.ggml.pre is default: want gpt-2, llama-bpe"},
		{"tokenizer.ggml.token_type", []int32{1}, "token_type 1: want one of each"},
		{"tokenizer.ggml.merges", nil, "tokenizer.ggml.merges is missing"},
		{"tokenizer.ggml.merges", []string{"q zz"}, "merge 0"},
		{"tokenizer.ggml.bos_token_id", uint32(999), "bos_token_id is 999: want the id"},
	} {
		path := editGGUF(t, "llama", func(m gguf.Metadata, all []gguf.Tensor) (gguf.Metadata,
			[]gguf.Tensor) {
			m = slices.DeleteFunc(m, func(p gguf.Pair) bool { return p.Key == row.key })
			if row.value != nil {
				m = append(m, gguf.Pair{Key: row.key, Value: row.value})
			}
			return m, all
		})
		p, err := OpenPublic(path)
		if err != nil {
			t.Fatal(err)
		}
		if p.Tokenizer != nil || !strings.Contains(p.Wordless().Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.key, p.Wordless(), row.want)
			continue
		}
		text, err := openGGUFs(t, "gpt2").Tokenizer.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		beside := filepath.Join(filepath.Dir(path), publicTokenizer)
		if err := os.WriteFile(beside, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err = OpenPublic(path); err != nil || p.Tokenizer == nil {
			t.Errorf("%s: with one beside it: %v", row.key, err)
		}
	}
}

// TestGGUFBase: a run that begins with a file of llama.cpp, and leaves what is there as it is, is
// read together with it, and not with another.
func TestGGUFBase(t *testing.T) {
	p := openGGUFs(t, "llama")
	b, err := p.base()
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.GPT(again.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range m.Parameters() {
		x, err := again.value(v)
		want := ggufNumber(p.Config.PublicName(v.Node.Name), 5)
		if err != nil || x.F32()[5] != want {
			t.Errorf("%s: %v, %v", v.Node.Name, x, err)
		}
	}
	other := *b
	other.Path = filepath.Join(ggufs, "qwen3.gguf")
	if _, err := other.open(); err == nil || !strings.Contains(err.Error(), "others now") {
		t.Errorf("another file: %v", err)
	}
}

// TestGGUFWritten: what is read of a file is written, and read again as the same.
func TestGGUFWritten(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2", "qwen3", "gpt2", "mixtral",
		"qwen3moe"} {
		was := openGGUFs(t, arch)
		path := filepath.Join(t.TempDir(), "again.gguf")
		if err := was.ExportGGUF(path, ""); err != nil {
			t.Fatal(err)
		}
		is, err := OpenPublic(path)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(is.Config, was.Config) || is.Notes != nil {
			t.Errorf("%s: %+v, want %+v, notes %v", arch, is.Config, was.Config, is.Notes)
		}
		m, err := models.GPT(is.Config)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range m.Parameters() {
			x, err := is.value(v)
			if err != nil {
				t.Fatal(err)
			}
			name := is.Config.PublicName(v.Node.Name)
			for i, got := range x.F32() {
				if want := ggufNumber(name, i); got != want {
					t.Fatalf("%s: %s has %v for element %d, want %v", arch, name, got, i, want)
				}
			}
		}
		a, b := was.Tokenizer, is.Tokenizer
		if text := "the mat 12345 <|end|>"; !slices.Equal(a.Prompt(text), b.Prompt(text)) ||
			!slices.Equal(a.Ends(), b.Ends()) || a.Size() != b.Size() {
			t.Errorf("%s: %v is %v, want %v", arch, text, b.Prompt(text), a.Prompt(text))
		}
	}
}

// TestGGUFStored: of a file that has matrices in few bits, each is held as it is there: the loss is
// that of weights that were packed when they were read, to the bit, and near that of the same
// numbers as f32.
func TestGGUFStored(t *testing.T) {
	c := wide(t)
	whole := filepath.Join(t.TempDir(), "whole")
	publishWide(t, whole, c, c)
	p, err := OpenPublic(whole)
	if err != nil {
		t.Fatal(err)
	}
	for f := range packings {
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := p.ExportGGUF(path, f.String()); err != nil {
			t.Fatal(err)
		}
		q, err := OpenPublic(path)
		if err != nil {
			t.Fatal(err)
		}
		q.AsStored()
		c.Store = f.String()
		for name, got := range q.Config.Stores {
			if want := c.Stored(name, 256); got != want {
				t.Errorf("%s: %s is held as %s, want %s", f, name, got, want)
			}
		}
		want := storedLoss(t, whole, f.String(), gomem.Options{})
		if got := lossOf(t, q, gomem.Options{}); got != want || len(q.Config.Stores) != 9 {
			t.Errorf("%s: loss %v as %v, want %v", f, got, q.Config.Stores, want)
		}
		if got := storedLoss(t, path, "", gomem.Options{}); math.Abs(got-want) > 2e-5 {
			t.Errorf("%s: loss %v of its numbers as f32, want %v", f, got, want)
		}
	}
}

// TestGGUFUnwritten: what a file has no words for is not written, and nothing is left behind.
func TestGGUFUnwritten(t *testing.T) {
	p := openGGUFs(t, "qwen2")
	dir := t.TempDir()
	path := filepath.Join(dir, "out.gguf")
	for _, row := range []struct {
		store  string
		change func(c *models.GPTConfig)
		want   string
	}{
		{"nf4", func(*models.GPTConfig) {}, "a GGUF file has no nf4"},
		{"", func(c *models.GPTConfig) { c.Window = 8 }, "no words for the windows of qwen2"},
		{"", func(c *models.GPTConfig) {
			c.Rotary = models.RotaryScaling{Kind: "dynamic", Factor: 2, Original: 64}
		}, "in the way dynamic"},
		{"", func(c *models.GPTConfig) {
			c.Rotary = models.RotaryScaling{Kind: "llama3", Factor: 2, Original: 64, Low: 2,
				High: 3}
		}, "between 2 and 3 turns"},
		{"", func(c *models.GPTConfig) {
			c.Rotary = models.RotaryScaling{Kind: "yarn", Factor: 2, Original: 64, Low: 2, High: 3,
				Attention: 2}
		}, "attention_factor 2"},
		{"", func(c *models.GPTConfig) { c.Layers = 2 }, "has no tensor"},
	} {
		q := *p
		row.change(&q.Config)
		err := q.ExportGGUF(path, row.store)
		if _, ok := errors.AsType[*ErrCheckpoint](err); !ok ||
			!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, row.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", row.want, left, err)
		}
	}
}

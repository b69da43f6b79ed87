package train

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
)

// more writes a public checkpoint's file again, with more tensors or others.
func more(t *testing.T, from, to string, rename func(string) string, add ...safetensors.Entry) {
	t.Helper()
	f, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer closeRead(f)
	entries := slices.Clone(add)
	was := map[string]string{}
	for _, e := range f.Entries() {
		if name := rename(e.Name); name != "" {
			was[name] = e.Name
			entries = append(entries, safetensors.Entry{Name: name, Type: e.Type})
		}
	}
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	err = safetensors.Write(out, entries, nil,
		safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
			if was[e.Name] == "" {
				return make([]byte, e.Type.Bytes()), nil
			}
			x, err := f.Get(was[e.Name])
			return x.Data, err
		}))
	if err != nil {
		t.Fatal(err)
	}
}

// TestPublicLeftOver: every tensor is the network's, known to be nothing, or said; what would
// be part of another network is refused by name.
func TestPublicLeftOver(t *testing.T) {
	c, s, parameters := tinyGPT(t, 1)
	dir := t.TempDir()
	if err := WritePublic(dir, c, nil, parameters, s.Get); err != nil {
		t.Fatal(err)
	}
	whole, kept := filepath.Join(dir, publicWeights), filepath.Join(t.TempDir(), "kept")
	if err := os.Rename(whole, kept); err != nil {
		t.Fatal(err)
	}
	same := func(name string) string { return name }
	one := func(name string) []safetensors.Entry {
		return []safetensors.Entry{{Name: name, Type: tensor.Of(graph.F32, 2)}}
	}
	for _, row := range []struct {
		rename     func(string) string
		add        []safetensors.Entry
		says, note string
	}{
		{add: one("h.0.attn.bias")}, {add: one("h.1.attn.masked_bias")},
		{add: one("score.weight"), note: "1 tensors are left over (score.weight)"},
		{add: one("h.0.attn.q_norm.weight"), says: "does not have (h.0.attn.q_norm.weight)"},
		{add: one("h.2.ln_1.weight"), says: "gpt2 with 2 layers, does not have (h.2.ln_1.weight)"},
		{add: one("lm_head.bias"), says: "does not have (lm_head.bias)"},
		{add: one("transformer.h.0.ln_1.weight"),
			says: "tensors h.0.ln_1.weight and transformer.h.0.ln_1.weight are the same"},
		{add: one(logits), says: "tensor lm_head.weight is another than wte.weight"},
		{add: []safetensors.Entry{{Name: logits, Type: tensor.Of(graph.F32, c.Vocab, c.Width)}},
			says: "tensor lm_head.weight is another than wte.weight"},
		{rename: strings.NewReplacer("h.0.ln_1.bias", "").Replace,
			add:  []safetensors.Entry{{Name: "h.0.ln_1.bias", Type: tensor.Of(graph.I32, c.Width)}},
			says: "tensor h.0.ln_1.bias is i32[32]: want floating-point numbers"},
	} {
		if row.rename == nil {
			row.rename = same
		}
		more(t, kept, whole, row.rename, row.add...)
		p, err := OpenPublic(dir)
		switch {
		case row.says != "":
			if _, ok := errors.AsType[*ErrCheckpoint](err); !ok ||
				!strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: %v does not say %q", row.add, err, row.says)
			}
		case err != nil || strings.Join(p.Notes, "|") != row.note:
			t.Errorf("%v: %v, %v, want %q", row.add, p, err, row.note)
		}
	}
}

// logits is the logits' matrix, where that is a tensor of its own.
const logits = "lm_head.weight"

// TestPublicTied: a logits' matrix that is the embedding again is nothing new.
func TestPublicTied(t *testing.T) {
	c, s, parameters := tinyGPT(t, 1)
	dir := t.TempDir()
	if err := WritePublic(dir, c, nil, parameters, s.Get); err != nil {
		t.Fatal(err)
	}
	whole, head := filepath.Join(dir, publicWeights), filepath.Join(dir, "head.safetensors")
	more(t, whole, head, func(name string) string {
		if name == "wte.weight" {
			return logits
		}
		return ""
	})
	if err := os.Rename(whole, filepath.Join(dir, "rest.safetensors")); err != nil {
		t.Fatal(err)
	}
	index := `{"weight_map":{"lm_head.weight":"head.safetensors","wpe.weight":"rest.safetensors"}}`
	if err := os.WriteFile(filepath.Join(dir, publicIndex), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := OpenPublic(dir); err != nil || len(p.Notes) > 0 {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPublicForeign: an element type that there is not here refuses who needs the tensor.
func TestPublicForeign(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, publicWeights)
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, publicConfig), `{"model_type":"llama"}`)
	for name, says := range map[string]string{
		"score.weight": "", "model.norm.weight": "tensor model.norm.weight is F8_E4M3[2]: want",
		"model.layers.0.mlp.up_proj.weight_scale": "does not have",
	} {
		header := `{"` + name + `":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}`
		put(file, string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0})+header+"\x00\x00")
		p, err := OpenPublic(dir)
		if says == "" && (err != nil || len(p.Notes) != 1) ||
			says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// TestPublicIndex: of tensors that several files have, the index says which counts; a file
// of the whole counts more than an index.
func TestPublicIndex(t *testing.T) {
	c, s, parameters := tinyGPT(t, 1)
	dir := t.TempDir()
	if err := WritePublic(dir, c, nil, parameters, s.Get); err != nil {
		t.Fatal(err)
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, publicIndex), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, stale := range []string{`{"weight_map":{"a":"gone.safetensors"}}`, "[]"} {
		put(stale)
		p, err := OpenPublic(dir)
		if err != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "passed over") {
			t.Errorf("beside an index that is stale: %+v, %v", p, err)
		}
	}
	whole, kept := filepath.Join(dir, publicWeights), filepath.Join(t.TempDir(), "kept")
	if err := os.Rename(whole, kept); err != nil {
		t.Fatal(err)
	}
	table := safetensors.Entry{Name: "wte.weight", Type: tensor.Of(graph.F32, c.Vocab, c.Width)}
	wrong := safetensors.Entry{Name: "wpe.weight", Type: tensor.Of(graph.F32, 32, 32)}
	more(t, kept, filepath.Join(dir, "a.safetensors"), func(name string) string {
		if name == table.Name {
			return name
		}
		return ""
	}, wrong)
	more(t, kept, filepath.Join(dir, "z.safetensors"), func(name string) string {
		if name == table.Name {
			return ""
		}
		return name
	}, table)
	put(`{"weight_map":{"wte.weight":"a.safetensors","wpe.weight":"z.safetensors"}}`)
	p, err := OpenPublic(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, to, others := tinyGPT(t, 2)
	if err := p.Load(to, others); err != nil {
		t.Fatal(err)
	}
	if weightsOf(t, to, others) != weightsOf(t, s, parameters) {
		t.Error("the weights are others: a tensor came from another file than its own")
	}
	for text, says := range map[string]string{
		`{"weight_map":{"a":"../x"}}`:             "is not beside it",
		`{"weight_map":{"a":"gone.safetensors"}}`: "gone.safetensors",
		`{"weight_map":{"gone":"z.safetensors"}}`: "tensor gone is not in z.safetensors",
		`{"weight_map":{}}`:                       "names no files",
		`{"weight_map":{"wte.weight":"a.safetensors","ln_f.bias":"z.safetensors"}}`: "tensor " +
			"wpe.weight is in a.safetensors and in z.safetensors",
		`[]`: publicIndex,
	} {
		put(text)
		if _, err := OpenPublic(dir); err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v does not say %q", text, err, says)
		}
	}
}

// TestPublicEnds: what ends a text is what generation_config.json says, or config.json, or
// what names are like.
func TestPublicEnds(t *testing.T) {
	c, s, parameters := tinyGPT(t, 1)
	tok, err := data.LearnTokenizer(t.Context(), []string{"the cat sat"}, 300)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		config, generation string
		want               []int32
		notes              int
	}{
		{"null", "", []int32{tok.EOS()}, 0}, {"7", "", []int32{7}, 0},
		{"[7,9]", "", []int32{7, 9}, 0}, {"7", `{"eos_token_id":[9,7]}`, []int32{9, 7}, 0},
		{"7", `{"eos_token_id":null}`, []int32{7}, 0},
		{"null", `{"eos_token_id":8}`, []int32{8}, 0},
		{"[50256,7]", "", []int32{7}, 1},
		{"50256", `{}`, []int32{tok.EOS()}, 1},
	} {
		dir := t.TempDir()
		if err := WritePublic(dir, c, tok, parameters, s.Get); err != nil {
			t.Fatal(err)
		}
		config := filepath.Join(dir, publicConfig)
		text, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		read, err := models.ParsePublished(text)
		if err != nil || !slices.Equal(read.Ends, tok.Ends()) {
			t.Fatalf("%s says that %v end a text: %v", text, read.Ends, err)
		}
		said := []byte(strings.Replace(string(text), `"model_type"`, `"eos_token_id":`+row.config+
			`,"model_type"`, 1))
		said = []byte(strings.Replace(string(said), `"eos_token_id": `, `"_was": `, 1))
		err = os.WriteFile(config, said, 0o600)
		if row.generation != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, publicGeneration),
				[]byte(row.generation), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := OpenPublic(dir)
		if err != nil || !slices.Equal(p.Tokenizer.Ends(), row.want) || len(p.Notes) != row.notes {
			t.Errorf("%s and %s: %v, %v, want %v", row.config, row.generation,
				p.Tokenizer.Ends(), err, row.want)
		}
	}
}

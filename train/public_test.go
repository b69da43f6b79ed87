package train

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// tinyGPT is a session with a small model's variables, and its parameters.
func tinyGPT(t *testing.T, seed uint64) (models.GPTConfig, *gomem.Session, []graph.Value) {
	t.Helper()
	c, err := models.NewGPTConfig("s512", models.GPT2Blocks)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.GPT(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := gomem.Compile(context.Background(), m.Graph, gomem.Options{Seed: seed},
		Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var parameters []graph.Value
	for _, v := range s.Variables() {
		if !v.Node.State {
			parameters = append(parameters, v)
		}
	}
	return c, s, parameters
}

// weightsOf are values of variables, one after the other.
func weightsOf(t *testing.T, s *gomem.Session, vars []graph.Value) string {
	t.Helper()
	var b strings.Builder
	for _, v := range vars {
		x, err := s.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(x.Data)
	}
	return b.String()
}

// TestPublic: a model that is written as a public checkpoint is read with its weights,
// its numbers and its tokenizer.
func TestPublic(t *testing.T) {
	c, from, parameters := tinyGPT(t, 1)
	tok, err := data.LearnTokenizer(context.Background(), []string{"the cat sat"}, 300)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "public")
	if IsPublic(dir) {
		t.Error("nothing is public")
	}
	if err := WritePublic(dir, c, tok, parameters, from.Get); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPublic(dir)
	if err != nil || !IsPublic(dir) {
		t.Fatal(err)
	}
	if p.Config.Parameters() != c.Parameters() || p.Config.Heads != c.Heads ||
		p.Tokenizer.Size() != tok.Size() {
		t.Errorf("read %+v with %s", p.Config, p.Tokenizer)
	}
	_, to, others := tinyGPT(t, 2)
	if err := p.Load(to, others); err != nil {
		t.Fatal(err)
	}
	if weightsOf(t, to, others) != weightsOf(t, from, parameters) {
		t.Error("the weights are others")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("files %v, %v", left, err)
	}
}

// TestPublicRefuses: what does not fit is refused on one line, and nothing is set.
func TestPublicRefuses(t *testing.T) {
	c, s, parameters := tinyGPT(t, 1)
	dir := t.TempDir()
	if err := WritePublic(dir, c, nil, parameters, s.Get); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(dir, publicConfig))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := weightsOf(t, s, parameters)
	for _, row := range []struct{ name, text, want string }{
		{publicConfig, "{", "config.json: no configuration"},
		{publicConfig, strings.Replace(string(config), `"n_layer": 2`, `"n_layer": 3`, 1),
			"has no tensor"},
		{publicConfig, strings.Replace(string(config), `"n_inner": 128`, `"n_inner": 64`, 1),
			"variable h/"},
		{publicTokenizer, "{}", "tokenizer.json"},
		{publicGeneration, `{"eos_token_id":"end"}`, "generation_config.json: eos_token_id"},
		{publicConfig, strings.Replace(string(config), `"n_layer": 2`, `"n_layer": 1`, 1),
			"has 12 tensors that its network, gpt2 with 1 layers, does not have (h.1.attn."},
	} {
		put(row.name, row.text)
		p, err := OpenPublic(dir)
		if err == nil {
			m, _ := models.GPT(p.Config)
			var vars []graph.Value
			for _, n := range m.Graph.Variables() {
				if !n.State {
					vars = append(vars, n.Value(0))
				}
			}
			err = p.Load(s, vars)
		}
		if _, ok := errors.AsType[*ErrCheckpoint](err); !ok ||
			!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v does not say %q", row.text, err, row.want)
		}
		if err := os.Remove(filepath.Join(dir, row.name)); err != nil {
			t.Fatal(err)
		}
		put(publicConfig, string(config))
	}
	if weightsOf(t, s, parameters) != before {
		t.Error("weights were set")
	}
	for _, path := range []string{filepath.Join(dir, "none"), t.TempDir()} {
		if _, err := OpenPublic(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}

// TestExport: a run's checkpoint becomes a public one.
func TestExport(t *testing.T) {
	c, err := models.NewGPTConfig("s512", models.LlamaBlocks)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.GPT(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	text := &data.Running{Train: []data.Section{{Text: strings.Repeat("the cat sat. ", 400),
		Last: true}}}
	tok, err := data.LearnTokenizer(ctx, text.Texts(), 300)
	if err != nil {
		t.Fatal(err)
	}
	l, err := data.NewRunningLoader(ctx, text, tok, data.RunningOptions{Rows: 4, Length: 32})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Run(ctx, Options{Model: &m.Model, Loader: l, Tokenizer: tok, Steps: 2,
		Save: filepath.Join(dir, "run")}); err != nil {
		t.Fatal(err)
	}
	if err := Export(filepath.Join(dir, "out"), filepath.Join(dir, "run"), c); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPublic(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Config.Blocks != models.LlamaBlocks || p.Tokenizer.EOS() != tok.EOS() ||
		p.Config.Parameters() != c.Parameters() {
		t.Errorf("%+v", p.Config)
	}
	c.Layers++
	if err := Export(filepath.Join(dir, "other"), filepath.Join(dir, "run"), c); err == nil {
		t.Error("a checkpoint was exported as another model")
	}
	if err := Export(filepath.Join(dir, "other"), dir, c); err == nil {
		t.Error("a directory without checkpoints was exported")
	}
	c.Layers--
	damaged := filepath.Join(dir, "run", fileName(2))
	all, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	for i := 8 + int(binary.LittleEndian.Uint64(all)); i < len(all); i += 512 {
		all[i] ^= 1
	}
	damage(t, damaged, all)
	for out, err := range map[string]error{
		"out":      Export(filepath.Join(dir, "out"), filepath.Join(dir, "run"), c),
		"out.gguf": ExportGGUF(filepath.Join(dir, "out.gguf"), filepath.Join(dir, "run"), c, ""),
	} {
		e, ok := errors.AsType[*ErrCheckpoint](err)
		if !ok || e.Path != damaged || !errors.Is(err, safetensors.ErrChecksum) {
			t.Errorf("%s of a damaged checkpoint: %v", out, err)
		}
	}
	if again, err := OpenPublic(filepath.Join(dir, "out")); err != nil ||
		again.Config.Parameters() != c.Parameters() {
		t.Errorf("what was there is not there any more: %v", err)
	}
}

// TestPublicOverMesh: each process of a mesh has its blocks of a public checkpoint's weights,
// in other numbers, too; from one that has become another's nothing is taken for all.
func TestPublicOverMesh(t *testing.T) {
	c, from, parameters := tinyGPT(t, 1)
	dir := t.TempDir()
	if err := WritePublic(dir, c, nil, parameters, from.Get); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPublic(dir)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := mesh.Parse("b:2x1", "h/*/weight:0=b,wte/weight:0=b")
	if err != nil {
		t.Fatal(err)
	}
	g := parameters[0].Graph()
	m := &nn.Model{Graph: g}
	for rank := range 2 {
		o := gomem.Options{Mesh: spec, Rank: rank, Network: unheard{}}
		s, err := gomem.Compile(t.Context(), g, o, gomem.Evaluation(parameters...))
		if err != nil {
			t.Fatal(err)
		}
		r := newRun(Options{Model: m, Init: dir, Observe: func(Event) {}})
		r.session = s
		if err := r.warm(); err != nil {
			t.Fatal(err)
		}
		apart := 0
		for _, v := range parameters {
			want, err := from.Get(v)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range s.Blocks(v) {
				if b.Ranks[0] == rank {
					x, err := s.Block(v, i)
					if apart++; err != nil || !bytes.Equal(x.Data, b.Of(want).Data) {
						t.Errorf("block %d of %s is another: %v", i, v, err)
					}
				}
			}
		}
		if apart == 0 || apart != len(r.team.begins.warm) {
			t.Errorf("%d blocks are loaded, parts %v", apart, r.team.begins.warm)
		}
		if rank == 1 {
			err = errors.Join(os.WriteFile(filepath.Join(dir, publicWeights),
				[]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), 0o600))
			if failed := p.Load(s, parameters); err != nil || failed == nil ||
				!strings.Contains(failed.Error(), publicWeights) {
				t.Errorf("%v: what is not there is loaded: %v", err, failed)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

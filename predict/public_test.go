package predict

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// published are small public checkpoints and what transformers computes with them: see
// testdata/public.py.
type published struct {
	Text, Prompt string
	Tokenizer    map[string]json.RawMessage
	Parts        map[string]map[string]json.RawMessage
	Cases        []publishedCase
}

type publishedCase struct {
	Name               string
	Config, Generation json.RawMessage
	Tokenizer          struct{ BOS, Qwen bool }
	Loss               float64
	IDs                []int32 // of the text
	Prompt             []int32
	Free, Ended        []int32 // what is written without an end, and with one
}

// weight is element i of the kth tensor by name, from 1, as testdata/public.py has it.
func weight(i, k int) float64 {
	x := uint32(i+65537*k) * 40503
	for _, factor := range []uint32{73244475, 295559667} {
		x = (x ^ x>>16) * factor
	}
	return float64(x>>8)/(1<<24) - 0.5
}

// write makes the checkpoint's files: in shards, each with a wrong tensor of the other's, or
// in one file beside an index that is of another.
func (c publishedCase) write(t *testing.T, dir string, p published, shards bool) {
	t.Helper()
	put := func(name string, value any) {
		text, err := json.Marshal(value)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("config.json", c.Config)
	if c.Generation != nil {
		put("generation_config.json", c.Generation)
	}
	var kinds []string
	for kind, is := range map[string]bool{"bos": c.Tokenizer.BOS, "qwen": c.Tokenizer.Qwen} {
		if is {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	tokenizer := maps.Clone(p.Tokenizer)
	maps.Copy(tokenizer, p.Parts[strings.Join(kinds, " ")])
	put("tokenizer.json", tokenizer)
	names, tensors := c.tensors(t)
	if !shards {
		shard(t, filepath.Join(dir, "model.safetensors"), names, tensors)
		put("model.safetensors.index.json", map[string]any{"weight_map": map[string]string{
			"gone": "gone.safetensors"}})
		return
	}
	index := map[string]string{}
	for n, own := range [][]string{names[:len(names)/2], names[len(names)/2:]} {
		file := fmt.Sprintf("model-%d.safetensors", n)
		for _, name := range own {
			index[name] = file
		}
		wrong := names[len(names)-1]
		if n == 1 {
			wrong = names[0]
		}
		all := maps.Clone(tensors)
		all[wrong] = tensor.New(tensors[wrong].Type)
		shard(t, filepath.Join(dir, file), append(slices.Clone(own), wrong), all)
	}
	put("model.safetensors.index.json", map[string]any{"weight_map": index})
}

// tensors are the network's, with weights of the formula.
func (c publishedCase) tensors(t *testing.T) ([]string, map[string]tensor.View) {
	t.Helper()
	read, err := models.ParsePublished(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.GPT(read.GPTConfig)
	if err != nil {
		t.Fatal(err)
	}
	tensors := map[string]tensor.View{}
	for _, n := range m.Graph.Variables() {
		if !n.State {
			name := read.PublicName(n.Name)
			if read.Blocks == models.GPT2Blocks {
				name = "transformer." + name
			}
			tensors[name] = tensor.New(n.Out[0])
		}
	}
	names := slices.Sorted(maps.Keys(tensors))
	for k, name := range names {
		for i := range tensors[name].F32() {
			x := weight(i, k+1)
			if len(tensors[name].Type.Shape) == 1 {
				x *= 0.5
				if !strings.Contains(name, "bias") {
					x++
				}
			}
			tensors[name].F32()[i] = float32(x)
		}
	}
	return names, tensors
}

func shard(t *testing.T, path string, names []string, tensors map[string]tensor.View) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var entries []safetensors.Entry
	for _, name := range names {
		entries = append(entries, safetensors.Entry{Name: name, Type: tensors[name].Type})
	}
	if err := safetensors.Write(f, entries, nil,
		safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
			return tensors[e.Name].Data, nil
		})); err != nil {
		t.Fatal(err)
	}
}

// TestAgainstTransformers: what a public checkpoint says of its network, its files and its
// tokenizer is what transformers reads of it: ids, losses, and what is written to the end.
func TestAgainstTransformers(t *testing.T) {
	text, err := os.ReadFile("testdata/public.json")
	if err != nil {
		t.Fatal(err)
	}
	var all published
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for i, c := range all.Cases {
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			c.write(t, dir, all, i%2 == 0)
			p, err := train.OpenPublic(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Tokenizer.Prompt(all.Prompt); !slices.Equal(got, c.Prompt) {
				t.Errorf("the prompt is %v, want %v", got, c.Prompt)
			}
			if got := p.Tokenizer.Prompt(all.Text); !slices.Equal(got, c.IDs) {
				t.Errorf("the text is %v, want %v", got, c.IDs)
			}
			if got := lossOf(t, p, all.Text); math.Abs(got-c.Loss) > 1e-5 {
				t.Errorf("the loss is %v, want %v", got, c.Loss)
			}
			for _, want := range [][]int32{c.Free, c.Ended} {
				o := Sampling{Tokens: 12}
				ended := len(want) < 12
				if ended {
					o.Ends = p.Tokenizer.Ends()
					want = want[:len(want)-1]
				}
				d, err := models.DecodeGPT(p.Config, 1)
				if err != nil {
					t.Fatal(err)
				}
				got, err := open(t, d, gomem.Options{Policy: planner.Vanilla},
					p.Load).Continue(t.Context(), [][]int32{c.Prompt}, o, nil)
				if err != nil || !slices.Equal(got[0].Tokens, want) || got[0].Ended != ended {
					t.Errorf("written is %+v, want %v: %v", got, want, err)
				}
			}
		})
	}
}

// lossOf is the mean loss of a text's tokens after the first.
func lossOf(t *testing.T, p *train.Public, text string) float64 {
	t.Helper()
	c := p.Config
	c.Texts = 1
	m, err := models.GPT(c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.Evaluation()
	if err != nil {
		t.Fatal(err)
	}
	running := &data.Running{HeldOut: []data.Section{{Text: text, Last: true}}}
	l, err := data.NewRunningLoader(t.Context(), running.Documents(), p.Tokenizer,
		data.RunningOptions{Rows: c.Texts, Length: c.Length})
	if err != nil {
		t.Fatal(err)
	}
	r, err := train.Evaluate(t.Context(), train.EvalOptions{Model: &e.Model, Executions: 1,
		Loader: l, Public: p})
	if err != nil {
		t.Fatal(err)
	}
	return r.Loss
}

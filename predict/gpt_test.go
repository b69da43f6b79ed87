package predict

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// grown continues prompts by the whole evaluation of the growing text, token by token.
func grown(t *testing.T, c models.GPTConfig, w Weights, prompts [][]int32) [][]int32 {
	t.Helper()
	c.Texts = len(prompts)
	m, err := models.GPT(c)
	if err != nil {
		t.Fatal(err)
	}
	logits := m.EvalOutputs[0].Node.In[0]
	s, err := gomem.Compile(context.Background(), m.Graph, gomem.Options{Policy: planner.Vanilla},
		gomem.Evaluation(logits))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := w(s, s.Variables()); err != nil {
		t.Fatal(err)
	}
	texts := make([][]int32, len(prompts))
	copy(texts, prompts)
	for range c.Length {
		fed := tensor.New(m.Data[0].Type())
		for i, text := range texts {
			copy(fed.I32()[i*c.Length:][:c.Length], text)
		}
		out, err := s.Step(context.Background(), "eval", gomem.Feeds{m.Data[0]: fed,
			m.Data[1]: tensor.New(m.Data[1].Type()), m.Seed: gomem.Pair(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			if n := len(text); n <= c.Length {
				row := out[0].F32()[(i*c.Length+n-1)*c.Vocab:][:c.Vocab]
				texts[i] = append(slices.Clone(text), int32(slices.Index(row, slices.Max(row))))
			}
		}
	}
	for i, p := range prompts {
		texts[i] = texts[i][len(p):]
	}
	return texts
}

// TestContinuingIsEvaluation: greedy continuations with caches are what the whole
// evaluation of the growing text says, under any plan, whatever is beside them and
// however long the prompts are.
func TestContinuingIsEvaluation(t *testing.T) {
	ctx := context.Background()
	for _, blocks := range []string{models.GPT2Blocks, models.LlamaBlocks} {
		c, err := models.NewGPTConfig("s512", blocks)
		if err != nil {
			t.Fatal(err)
		}
		prompts := sourcesOf(5, c.Length-1, c.Vocab)
		prompts[0] = []int32{data.EOS}
		for i, p := range prompts {
			prompts[i] = p[:min(len(p), c.Length-1)]
		}
		want := grown(t, c, drawn(3), prompts)
		for i, o := range []gomem.Options{{Policy: planner.Vanilla}, {Policy: planner.Thesis,
			Partition: 3, NoFusion: true}, {Policy: planner.Auto, DeviceBytes: 200_000}} {
			d, err := models.DecodeGPT(c, 1+2*i)
			if err != nil {
				t.Fatal(err)
			}
			texts := open(t, d, o, drawn(3))
			got, err := texts.Continue(ctx, prompts, Sampling{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if !slices.Equal(got[k].Tokens, want[k]) {
					t.Errorf("%s under %s: text %d is\n%v, the evaluation says\n%v", blocks,
						o.Policy, k, got[k].Tokens, want[k])
				}
			}
			if _, err := texts.Continue(ctx, [][]int32{{1}, {}}, Sampling{}, nil); err == nil {
				t.Error("nothing is continued")
			}
			if _, err := texts.Translate(ctx, prompts, Search{}); err == nil {
				t.Error("a model that reads no source translates")
			}
		}
	}
}

// TestSamplesDoNotDependOnThePlan: what is drawn follows from the seed alone.
func TestSamplesDoNotDependOnThePlan(t *testing.T) {
	c, err := models.NewGPTConfig("s512", models.GPT2Blocks)
	if err != nil {
		t.Fatal(err)
	}
	o := Sampling{Temperature: 0.9, TopK: 40, TopP: 0.95, Seed: 8, Tokens: 12}
	var first []Text
	for _, p := range plans() {
		d, err := models.DecodeGPT(c, 2)
		if err != nil {
			t.Fatal(err)
		}
		got, err := open(t, d, p, drawn(3)).Continue(context.Background(),
			[][]int32{{5, 6}, {5, 6}, {7}}, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if fmt.Sprint(got) != fmt.Sprint(first) {
			t.Errorf("under %s: %v, before %v", p.Policy, got, first)
		}
	}
	if slices.Equal(first[0].Tokens, first[1].Tokens) {
		t.Error("two texts of a call draw alike")
	}
}

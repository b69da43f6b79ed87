package models

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/reference"
)

func gptConfig(t testing.TB, size, blocks string) GPTConfig {
	t.Helper()
	c, err := NewGPTConfig(size, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buildGPT(t testing.TB, c GPTConfig) *Model {
	t.Helper()
	m, err := GPT(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGPTParameters: the small GPT-2 has 124,439,808 parameters.
func TestGPTParameters(t *testing.T) {
	for _, blocks := range []string{GPT2Blocks, LlamaBlocks} {
		for _, size := range []string{"base", "s64", "s512"} {
			c := gptConfig(t, size, blocks)
			got := buildGPT(t, c).Graph.Parameters()
			if got != c.Parameters() {
				t.Errorf("%s %s: %d parameters, by formula %d", blocks, size, got, c.Parameters())
			}
			if blocks == GPT2Blocks && size == "base" && got != 124_439_808 {
				t.Errorf("%d parameters", got)
			}
		}
	}
	c := gptConfig(t, "s512", LlamaBlocks)
	c.Untied = true
	if got := buildGPT(t, c).Graph.Parameters(); got != c.Parameters() {
		t.Errorf("untied: %d parameters, by formula %d", got, c.Parameters())
	}
}

// TestGPTReplica: s64 is base in small, but for the sizes.
func TestGPTReplica(t *testing.T) {
	for _, blocks := range []string{GPT2Blocks, LlamaBlocks} {
		small := shape(buildGPT(t, gptConfig(t, "s64", blocks)))
		large := shape(buildGPT(t, gptConfig(t, "base", blocks)))
		if !slices.Equal(small, large) {
			t.Errorf("%s: the replica's graph is another one", blocks)
		}
	}
}

// chant fills windows of a text that repeats itself, with targets.
func chant(x machine, step uint64) {
	tokens, targets := x.Value(x.model.Data[0]), x.Value(x.model.Data[1])
	rng := rand.New(rand.NewPCG(step, 3))
	length := tokens.Type.Size(1)
	for row := range tokens.Type.Size(0) {
		at := rng.IntN(9)
		for i := range length {
			tokens.I32()[row*length+i] = int32(1 + (at+i)%9)
			targets.I32()[row*length+i] = int32(1 + (at+i+1)%9)
		}
	}
}

func (x machine) stepGPT(t testing.TB, step int) {
	t.Helper()
	chant(x, uint64(step))
	copy(x.Value(x.model.Seed).I32(), []int32{7, int32(step)})
	x.Value(x.model.LearningRate).F32()[0] = x.model.Schedule.At(step)
	x.Value(x.model.Step).F32()[0] = float32(step + 1)
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
}

func TestGPTLearns(t *testing.T) {
	const steps = 25
	for _, blocks := range []string{GPT2Blocks, LlamaBlocks} {
		m := buildGPT(t, gptConfig(t, "s512", blocks))
		x := newMachine(t, m, true, m.EvalLoss, m.EvalMetrics[0].Value)
		var held [steps]float64
		for step := range steps {
			x.stepGPT(t, step)
			held[step] = x.scalar(m.EvalLoss)
		}
		t.Logf("%s: held-out loss %.3f to %.3f", blocks, held[0], held[steps-1])
		if even := math.Log(float64(m.Classes)); math.Abs(held[0]-even) > 1 {
			t.Errorf("%s: the first loss is %.3f, want about %.3f", blocks, held[0], even)
		}
		if !(held[steps-1] < held[0]-2) {
			t.Errorf("%s does not learn: held-out loss %.3f to %.3f", blocks, held[0],
				held[steps-1])
		}
	}
}

// TestGPTIgnores: a position without a target adds nothing to the loss, and a token
// is predicted from those before it alone.
func TestGPTIgnores(t *testing.T) {
	for _, blocks := range []string{GPT2Blocks, LlamaBlocks} {
		m := buildGPT(t, gptConfig(t, "s512", blocks))
		x := newMachine(t, m, false, m.EvalLoss, m.EvalOutputs[0])
		run := func() (float64, []float32) {
			if err := x.Step(); err != nil {
				t.Fatal(err)
			}
			return x.scalar(m.EvalLoss), slices.Clone(x.Value(m.EvalOutputs[0]).F32())
		}
		chant(x, 1)
		_, before := run()
		tokens, targets := x.Value(m.Data[0]).I32(), x.Value(m.Data[1]).I32()
		length := m.Data[0].Type().Size(1)
		const kept = 11
		want := 0.0
		for i := range targets {
			if i%length >= kept {
				tokens[i], targets[i] = 500, NoTarget
			} else {
				want += float64(before[i])
			}
		}
		loss, after := run()
		want /= float64(len(targets) / length * kept)
		if math.Abs(loss-want) > 1e-5 {
			t.Errorf("%s: loss %v, want %v", blocks, loss, want)
		}
		for i := range after {
			if i%length < kept && after[i] != before[i] {
				t.Errorf("%s: position %d sees later tokens", blocks, i)
			}
		}
	}
}

// decoding runs a decoder's steps one by one, each on a machine of its own that the
// caches are carried between.
type decoding struct {
	*Decoder
	machines []*reference.Machine
}

func newDecoding(t testing.TB, d *Decoder) *decoding {
	t.Helper()
	threads := pool.New(1)
	t.Cleanup(threads.Close)
	out := &decoding{Decoder: d}
	for _, s := range d.Steps {
		roots := []graph.NodeID{s.Logits.Node.ID, s.Parent.Node.ID}
		for _, n := range s.Updates {
			roots = append(roots, n.ID)
		}
		r, err := reference.New(d.Graph, d.Graph.Ancestors(roots), threads)
		if err != nil {
			t.Fatal(err)
		}
		out.machines = append(out.machines, r)
		x, formats := machine{r, nil}, ops.Packings(d.Graph)
		for _, n := range d.Graph.Variables() {
			switch {
			case formats[n] != "":
				x.pack(t, n, formats[n])
			case !n.State:
				x.fill(n)
			}
		}
	}
	return out
}

// step takes tokens of every text with a step of that size, and gives the logits.
func (d *decoding) step(t testing.TB, tokens []int32, position int, parent []int32) []float32 {
	t.Helper()
	for i, s := range d.Steps {
		if s.Size()*d.Batch != len(tokens) {
			continue
		}
		r := d.machines[i]
		copy(r.Value(s.Tokens).I32(), tokens)
		r.Value(s.Position).I32()[0] = int32(position)
		copy(r.Value(s.Parent).I32(), parent)
		if err := r.Step(); err != nil {
			t.Fatal(err)
		}
		for _, n := range d.Graph.Variables() {
			for k := range d.machines {
				if n.State && k != i {
					copy(d.machines[k].Value(n.Value(0)).Data, r.Value(n.Value(0)).Data)
				}
			}
		}
		return r.Value(s.Logits).F32()
	}
	t.Fatalf("no step for %d tokens", len(tokens))
	return nil
}

// TestGPTDecodes: with caches, in steps of any size, the logits of a prefix's next
// token are those of the whole pass, up to rounding; and a row that continues another
// one has the other's past. A table in parts is the same table.
func TestGPTDecodes(t *testing.T) {
	for _, blocks := range []string{GPT2Blocks, LlamaBlocks} {
		c := gptConfig(t, "s512", blocks)
		m := buildGPT(t, c)
		logits := logitsOf(m)
		x := newMachine(t, m, false, logits)
		chant(x, 5)
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		want, tokens := x.Value(logits).F32(), x.Value(m.Data[0]).I32()
		d, err := decodeGPT(c, c.Texts, 10*1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		run := newDecoding(t, d)
		own := []int32{0, 1, 2, 3}
		at := 0
		for _, n := range []int{16, 4, 1} {
			var next []int32
			for row := range c.Texts {
				next = append(next, tokens[row*c.Length+at:][:n]...)
			}
			got := run.step(t, next, at, own)
			at += n
			for row := range c.Texts {
				compareLogits(t, blocks, got[row*c.Vocab:][:c.Vocab],
					want[(row*c.Length+at-1)*c.Vocab:][:c.Vocab])
			}
		}
		// all rows go on from row 2, with row 2's next token
		parent := []int32{2, 2, 2, 2}
		token := tokens[2*c.Length+at]
		got := run.step(t, []int32{token, token, token, token}, at, parent)
		for row := range c.Texts {
			compareLogits(t, blocks, got[row*c.Vocab:][:c.Vocab],
				want[(2*c.Length+at)*c.Vocab:][:c.Vocab])
		}
	}
}

func compareLogits(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Fatalf("%s: logit %d is %v, want %v", name, i, got[i], want[i])
		}
	}
}

// logitsOf is what the evaluation's losses are made of.
func logitsOf(m *Model) graph.Value { return m.EvalOutputs[0].Node.In[0] }

// TestGPTRefuses: every bad number is refused on one line.
func TestGPTRefuses(t *testing.T) {
	for _, row := range []struct {
		change func(*GPTConfig)
		want   string
	}{
		{func(c *GPTConfig) { c.Size = "s1" }, `unknown size "s1"`},
		{func(c *GPTConfig) { c.Blocks = "bert" }, `unknown --blocks "bert"`},
		{func(c *GPTConfig) { c.Texts = 0 }, "--batch is 0"},
		{func(c *GPTConfig) { c.Length = 1 }, "--length is 1"},
		{func(c *GPTConfig) { c.Length = 64 }, "--length is 64: want the 32 positions"},
		{func(c *GPTConfig) { c.Layers = 0 }, "--depth is 0"},
		{func(c *GPTConfig) { c.Heads, c.KeyHeads = 5, 5 }, "multiple of the 5 heads"},
		{func(c *GPTConfig) { c.Blocks, c.KeyHeads = LlamaBlocks, 3 }, "multiple of the 3 of keys"},
		{func(c *GPTConfig) { c.KeyHeads = 2 }, "gpt2 blocks have"},
		{func(c *GPTConfig) { c.Untied = true }, "gpt2 blocks have"},
		{func(c *GPTConfig) { c.Vocab = 1 }, "vocabulary is 1"},
		{func(c *GPTConfig) { c.Dropout = 1 }, "dropout is 1"},
		{func(c *GPTConfig) { c.Decay = -1 }, "weight decay is -1"},
		{func(c *GPTConfig) { c.Clip = float32(math.NaN()) }, "clip is NaN"},
		{func(c *GPTConfig) { c.Eps = 0 }, "eps 0"},
		{func(c *GPTConfig) { c.Blocks, c.RotaryBase = LlamaBlocks, 0 }, "rotary base is 0"},
		{func(c *GPTConfig) { c.Blocks, c.Heads, c.KeyHeads = LlamaBlocks, 32, 32 },
			"heads have width 1"},
		{func(c *GPTConfig) { c.Schedule.Rate = 0 }, "learning rate is 0"},
	} {
		c := gptConfig(t, "s512", GPT2Blocks)
		row.change(&c)
		_, err := GPT(c)
		if err == nil || !strings.Contains(err.Error(), row.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q", err, row.want)
		}
	}
	if _, err := DecodeGPT(gptConfig(t, "s512", GPT2Blocks), 0); err == nil {
		t.Error("a decoder of no text was built")
	}
}

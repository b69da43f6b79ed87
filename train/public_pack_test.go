package train

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/quant"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// wide is a small network whose rows every format divides.
func wide(t *testing.T) models.GPTConfig {
	t.Helper()
	c, err := models.NewGPTConfig("s512", models.LlamaBlocks)
	if err != nil {
		t.Fatal(err)
	}
	c.Texts, c.Length, c.Layers, c.Width, c.Heads, c.KeyHeads = adaptedTexts, adaptedLength, 1, 256,
		4, 2
	c.Hidden, c.Vocab, c.Untied = 256, 40, true
	return c
}

// mixed is that with experts.
func mixed(t *testing.T) models.GPTConfig {
	t.Helper()
	c := wide(t)
	c.Family, c.HeadNorms, c.Experts, c.PerToken, c.Renorm = "qwen3_moe", true, 4, 2, true
	return c
}

// publishWide writes a checkpoint of the network, of drawn numbers that a format has rounded.
func publishWide(t *testing.T, dir string, c models.GPTConfig, rounded models.GPTConfig) {
	t.Helper()
	m, err := models.GPT(c)
	if err != nil {
		t.Fatal(err)
	}
	get := func(v graph.Value) (gomem.Tensor, error) {
		x := tensor.New(v.Type())
		for i := range x.F32() {
			x.F32()[i] = float32(0.3 * hashed(i, int(v.Node.ID)))
		}
		if v.Type().Rank() != 2 {
			return x, nil
		}
		width := v.Type().Size(1)
		if f, err := quant.Parse(rounded.Stored(v.Node.Name, width)); err == nil {
			n, err := f.RowBytes(width)
			if err != nil {
				return x, err
			}
			row := make([]byte, n)
			for at := 0; at < len(x.F32()); at += width {
				f.Pack(row, x.F32()[at:at+width])
				f.Unpack(x.F32()[at:at+width], row)
			}
		}
		return x, nil
	}
	if err := WritePublic(dir, c, nil, m.Parameters(), get); err != nil {
		t.Fatal(err)
	}
}

// TestStoredWeights: the loss with weights of few bits is that of the same numbers as f32, under
// every policy and budget to the bit, and peaks are as predicted.
func TestStoredWeights(t *testing.T) {
	for i, f := range append(quant.All(), quant.Q4_K, quant.BF16) {
		c := wide(t)
		if i >= len(quant.All()) {
			c = mixed(t)
		}
		stored := c
		stored.Store = f.String()
		whole, rounded := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "rounded")
		publishWide(t, whole, c, c)
		publishWide(t, rounded, c, stored)
		want := storedLoss(t, rounded, "", gomem.Options{})
		first := storedLoss(t, whole, f.String(), gomem.Options{})
		if math.Abs(first-want) > 2e-5 {
			t.Errorf("%s: loss %.7f, of its numbers as f32 %.7f", f, first, want)
		}
		for _, o := range []gomem.Options{{Policy: "vanilla"}, {Policy: "thesis", Partition: 3},
			{Policy: "auto", DeviceBytes: 500 << 10}} {
			if got := storedLoss(t, whole, f.String(), o); got != first {
				t.Errorf("%s under %+v: loss %v, want %v", f, o, got, first)
			}
		}
	}
}

// storedLoss evaluates a checkpoint whose matrices are held in a format.
func storedLoss(t *testing.T, path, format string, o gomem.Options) float64 {
	t.Helper()
	p, err := OpenPublic(path)
	if err != nil {
		t.Fatal(err)
	}
	p.Config.Store = format
	return lossOf(t, p, o)
}

// lossOf evaluates a checkpoint as its configuration says.
func lossOf(t *testing.T, p *Public, o gomem.Options) float64 {
	t.Helper()
	config := p.Config
	config.Texts, config.Length = adaptedTexts, adaptedLength
	m, err := models.GPT(config)
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.Evaluation()
	if err != nil {
		t.Fatal(err)
	}
	var packed, all int64
	p.Packed = func(done, of int64) {
		if done <= packed || done > of {
			t.Errorf("%s: %d of %d elements are packed, %d before", p.Path, done, of, packed)
		}
		packed, all = done, of
	}
	r, err := Evaluate(t.Context(), EvalOptions{Model: &e.Model, Executions: 1, Public: p,
		Session: o, Loader: adaptedTextsOf(config.Vocab)})
	if err != nil {
		t.Fatalf("%s under %+v: %v", p.Path, o, err)
	}
	if kept := config.Store != "" || config.Stores != nil; packed != all || (all > 0) != kept {
		t.Errorf("%s: at the end %d of %d elements are packed", p.Path, packed, all)
	}
	for _, u := range r.Usage {
		if u.Actual != u.Predicted {
			t.Errorf("%s: %+v", p.Path, u)
		}
	}
	return r.Loss
}

// TestStoredWeightsLearnAsWhole: adapters beside weights of few bits learn what they do beside the
// same numbers as f32, and what is merged has the numbers of the checkpoint.
func TestStoredWeightsLearnAsWhole(t *testing.T) {
	t.Run("dense", func(t *testing.T) { learnAsWhole(t, wide(t)) })
	t.Run("experts", func(t *testing.T) { learnAsWhole(t, mixed(t)) })
}

func learnAsWhole(t *testing.T, c models.GPTConfig) {
	t.Helper()
	c.Clip, c.Training.Adapters = 0, &nn.Adapters{Rank: 4}
	stored := c
	stored.Store = "nf4"
	dir := t.TempDir()
	base := filepath.Join(dir, "rounded")
	plain := c
	plain.Training = models.Training{}
	publishWide(t, base, plain, stored)
	var losses [2][]float64
	for i, config := range []models.GPTConfig{c, stored} {
		m, err := models.GPT(config)
		if err != nil {
			t.Fatal(err)
		}
		run := filepath.Join(dir, config.Store+"run")
		o := Options{Model: &m.Model, Name: "gpt", Size: m.Size, Steps: 12, Save: run, Init: base,
			Loader: adaptedTextsOf(config.Vocab), Observe: func(e Event) {
				if e.Kind == Step {
					losses[i] = append(losses[i], e.Loss)
				}
			}}
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := Export(filepath.Join(dir, config.Store+"merged"), run, config); err != nil {
			t.Fatal(err)
		}
	}
	for i := range losses[0] {
		if math.Abs(losses[0][i]-losses[1][i]) > 1e-4 {
			t.Fatalf("step %d: loss %v, want %v", i+1, losses[1][i], losses[0][i])
		}
	}
	if last := len(losses[0]) - 1; losses[0][last] > losses[0][0]-0.01 {
		t.Errorf("nothing is learnt: %v", losses[0])
	}
	one := storedLoss(t, filepath.Join(dir, "merged"), "", gomem.Options{})
	two := storedLoss(t, filepath.Join(dir, "nf4merged"), "", gomem.Options{})
	if math.Abs(one-two) > 1e-4 {
		t.Errorf("merged: loss %v, want %v", two, one)
	}
}

// TestStoredParameters: those in few bits count by their elements.
func TestStoredParameters(t *testing.T) {
	for _, c := range []models.GPTConfig{wide(t), mixed(t)} {
		for _, format := range append(quant.All(), 0) {
			if c.Store = ""; format != 0 {
				c.Store = format.String()
			}
			m, err := models.GPT(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := ops.Parameters(m.Graph); got != c.Parameters() {
				t.Errorf("%q: %d parameters, want %d", c.Store, got, c.Parameters())
			}
		}
	}
}

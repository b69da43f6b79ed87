package models

import (
	"math"
	"strings"
	"testing"
)

func transformerConfig(t testing.TB, size string) TransformerConfig {
	t.Helper()
	c, err := NewTransformerConfig(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buildTransformer(t testing.TB, c TransformerConfig) *Model {
	t.Helper()
	m, err := Transformer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTransformerParameters: transformer_base on a vocabulary of 33,708 has
// 61,378,560 parameters, its target space embedding included.
func TestTransformerParameters(t *testing.T) {
	c := transformerConfig(t, "base")
	m := buildTransformer(t, c)
	if got := m.Graph.Parameters(); got != 61_378_560 || c.Parameters() != got {
		t.Errorf("%d parameters, by formula %d, want 61,378,560", got, c.Parameters())
	}
	for _, size := range []string{"s64", "s512"} {
		c := transformerConfig(t, size)
		if got := buildTransformer(t, c).Graph.Parameters(); got != c.Parameters() {
			t.Errorf("%s: %d parameters, by formula %d", size, got, c.Parameters())
		}
	}
}

// TestTransformerReplica: s64 is base in small, but for the sizes.
func TestTransformerReplica(t *testing.T) {
	small, large := shape(buildTransformer(t, transformerConfig(t, "s64"))),
		shape(buildTransformer(t, transformerConfig(t, "base")))
	if strings.Join(small, "\n") != strings.Join(large, "\n") {
		t.Error("the replica's graph is another one")
	}
}

func TestTransformerLearns(t *testing.T) {
	const steps = 80
	m := buildTransformer(t, transformerConfig(t, "s512"))
	x := newMachine(t, m, true, m.EvalLoss, m.EvalMetrics[0].Value)
	var held [steps]float64
	for step := range steps {
		x.step(t, step)
		held[step] = x.scalar(m.EvalLoss)
	}
	t.Logf("held-out loss %.3f to %.3f, accuracy %.3f", held[0], held[steps-1],
		x.scalar(m.EvalMetrics[0].Value))
	if even := math.Log(float64(m.Classes)); math.Abs(held[0]-even) > 2 {
		t.Errorf("the first loss is %.3f, want about %.3f", held[0], even)
	}
	if !(held[steps-1] < held[0]-3) {
		t.Errorf("does not learn: held-out loss %.3f to %.3f", held[0], held[steps-1])
	}
}

// TestFine: the fine lowering computes the same function and the same updates,
// up to rounding, of more operations.
func TestFine(t *testing.T) {
	builders := map[string]func(fine bool) *Model{
		"transformer": func(fine bool) *Model {
			c := transformerConfig(t, "s512")
			c.Fine = fine
			return buildTransformer(t, c)
		},
		"moe": func(fine bool) *Model {
			c := config(t, "s512")
			c.Fine = fine
			return build(t, c)
		},
	}
	for name, builder := range builders {
		t.Run(name, func(t *testing.T) {
			coarse, fine := builder(false), builder(true)
			if fine.Graph.Len() < coarse.Graph.Len()*3/2 {
				t.Errorf("%d nodes, %d without the lowering", fine.Graph.Len(), coarse.Graph.Len())
			}
			compareRuns(t, coarse, fine, 1e-3)
		})
	}
}

// compareRuns trains two forms of a model, without noise that differs, for a few
// steps and compares their held-out losses.
func compareRuns(t *testing.T, a, b *Model, tolerance float64) {
	t.Helper()
	x, y := newMachine(t, a, true, a.EvalLoss), newMachine(t, b, true, b.EvalLoss)
	for step := range 4 {
		x.step(t, step)
		y.step(t, step)
		p, q := x.scalar(a.EvalLoss), y.scalar(b.EvalLoss)
		if !(math.Abs(p-q) <= tolerance*math.Abs(p)) {
			t.Errorf("step %d: held-out losses %v and %v", step, p, q)
		}
	}
}

// TestTransformerRefuses: every bad number is refused on one line.
func TestTransformerRefuses(t *testing.T) {
	for _, row := range []struct {
		change func(*TransformerConfig)
		want   string
	}{
		{func(c *TransformerConfig) { c.Size = "s1" }, `unknown size "s1"`},
		{func(c *TransformerConfig) { c.Pairs = 0 }, "--batch is 0"},
		{func(c *TransformerConfig) { c.Length = 1 }, "--length is 1"},
		{func(c *TransformerConfig) { c.Layers = 0 }, "--depth is 0"},
		{func(c *TransformerConfig) { c.Heads = 5 }, "multiple of the 5 heads"},
		{func(c *TransformerConfig) { c.Width, c.Heads = 33, 3 }, "want an even number"},
		{func(c *TransformerConfig) { c.Vocab = 1 }, "vocabulary is 1"},
		{func(c *TransformerConfig) { c.Dropout = 1 }, "dropout is 1"},
		{func(c *TransformerConfig) { c.Smoothing = float32(math.NaN()) }, "label smoothing is " +
			"NaN"},
		{func(c *TransformerConfig) { c.Pairs = math.MaxInt32 }, "--batch is 2147483647: want " +
			"1048576 or less"},
		{func(c *TransformerConfig) { c.Pairs, c.Length = 1<<20, 1<<10 }, "--batch times " +
			"--length is 1073741824: want 67108864 or less"},
		{func(c *TransformerConfig) { c.Schedule = InverseSqrt{} }, "learning rate scale is 0"},
	} {
		c := transformerConfig(t, "s512")
		row.change(&c)
		_, err := Transformer(c)
		if err == nil || !strings.Contains(err.Error(), row.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q", err, row.want)
		}
	}
}

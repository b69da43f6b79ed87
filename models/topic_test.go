package models

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

func topicConfig(t testing.TB, size string) TopicConfig {
	t.Helper()
	c, err := NewTopicConfig(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buildTopic(t testing.TB, c TopicConfig) *Model {
	t.Helper()
	m, err := Topic(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTopicParameters: there are as many as words times topics, also where topics are not a
// multiple of the parts, and base is the paper's.
func TestTopicParameters(t *testing.T) {
	if n := topicConfig(t, "base").Parameters(); n != 141_000*50_000 {
		t.Errorf("base has %d parameters", n)
	}
	for _, size := range []string{"base", "s64", "s512"} {
		for more := range 3 {
			c := topicConfig(t, size)
			c.Topics += more
			if got := buildTopic(t, c).Graph.Parameters(); got != c.Parameters() {
				t.Errorf("%s: %d parameters, by formula %d", size, got, c.Parameters())
			}
		}
	}
	if !slices.Equal(shape(buildTopic(t, topicConfig(t, "s64"))),
		shape(buildTopic(t, topicConfig(t, "base")))) {
		t.Error("the replica's graph is another one")
	}
}

// TestTopicHasFactors: what is exchanged of every part is a pair of vectors a document: the
// gradient of what it makes of the words, and its proportions.
func TestTopicHasFactors(t *testing.T) {
	c := topicConfig(t, "s512")
	c.Training.Given = always{}
	o := buildTopic(t, c).Objectives[0]
	if len(o.Factors) != c.Parts || len(o.Updates) > 0 {
		t.Fatalf("factors of %d parts, %d updates", len(o.Factors), len(o.Updates))
	}
	for _, f := range o.Factors {
		if !slices.Equal(f.Left.Type().Sizes(), []int{c.Documents, c.Vocab}) ||
			!slices.Equal(f.Right.Type().Sizes(), []int{c.Documents, c.Topics / c.Parts}) {
			t.Errorf("%s has %s and %s", f.Parameter, f.Left, f.Right)
		}
	}
}

// always exchanges factors.
type always struct{}

func (always) Factors(_, _ int64) bool { return true }

// documentsOf fills a machine's words with bags, the last row with nothing that counts.
func documentsOf(x machine, m *Model) (words, counts []float32) {
	rng := rand.New(rand.NewPCG(1, 2))
	words, counts = x.Value(m.Data[0]).F32(), x.Value(m.Data[1]).F32()
	for i := range words {
		words[i] = max(0, rng.Float32()-0.8)
	}
	for i := range counts {
		counts[i] = 1
	}
	counts[len(counts)-1] = 0
	return words, counts
}

// TestTopicProportions: what is found for each document is non-negative, and, with enough
// iterations, least: where a proportion is above zero, the slope by it is none, and where it is
// zero, none leads down (Karush, Kuhn and Tucker). By a plain loop.
func TestTopicProportions(t *testing.T) {
	c := topicConfig(t, "s512")
	c.Vocab, c.Topics, c.Parts, c.Iterations, c.Sparsity = 40, 7, 3, 300, 0.01
	m := nn.NewModel()
	words := m.Input("words", graph.F32, c.Documents, c.Vocab)
	d := dictionary{TopicConfig: c}
	at := m.Evaluation()
	for i, n := range []int{2, 2, 3} {
		d.parts = append(d.parts, at.In(string(rune('a'+i))).Param("weight",
			nn.Uniform(0.5), c.Vocab, n))
	}
	a := ops.Concat(1, d.solve(words)...)
	model := &Model{Model: *m}
	x := newMachine(t, model, false, append(slices.Clone(d.parts), a)...)
	rng := rand.New(rand.NewPCG(1, 2))
	bags := x.Value(words).F32()
	for i := range bags {
		bags[i] = rng.Float32()
	}
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
	found, above := x.Value(a).F32(), 0
	for doc := range c.Documents {
		rest := slices.Clone(bags[doc*c.Vocab:][:c.Vocab])
		eachTopic(x, d, func(k, word int, b float32) { rest[word] -= b * found[doc*c.Topics+k] })
		slope := make([]float64, c.Topics)
		eachTopic(x, d, func(k, word int, b float32) {
			slope[k] -= float64(b) * float64(rest[word])
		})
		for k, s := range slope {
			s += float64(c.Sparsity)
			switch p := found[doc*c.Topics+k]; {
			case p < 0 || p == 0 && s < -1e-3 || p > 0 && math.Abs(s) > 1e-3:
				t.Errorf("document %d has %g of topic %d, where the slope is %g", doc, p, k, s)
			case p > 0:
				above++
			}
		}
	}
	if n := len(found); above == 0 || above == n {
		t.Errorf("%d of %d proportions are above zero", above, n)
	}
}

// eachTopic visits all elements of a dictionary.
func eachTopic(x machine, d dictionary, visit func(topic, word int, b float32)) {
	first := 0
	for _, part := range d.parts {
		n := part.Type().Size(1)
		for i, b := range x.Value(part).F32() {
			visit(first+i%n, i/n, b)
		}
		first += n
	}
}

// TestTopicStep: a step changes the dictionary by the sum over documents of (d − B·a)·aᵀ, times the
// rate over their number, where a is found by a plain loop; and a row that counts for nothing
// changes nothing.
func TestTopicStep(t *testing.T) {
	c := topicConfig(t, "s512")
	c.Vocab, c.Topics, c.Parts = 30, 5, 2
	m := buildTopic(t, c)
	x := newMachine(t, m, true, m.Objectives[0].Loss)
	words, counts := documentsOf(x, m)
	x.Value(m.LearningRate).F32()[0] = 2
	d := dictionary{TopicConfig: c}
	d.parts = append(d.parts, m.Parameters()...)
	b := make([]float64, c.Vocab*c.Topics)
	eachTopic(x, d, func(k, word int, v float32) { b[word*c.Topics+k] = float64(v) })
	want := slices.Clone(b)
	for doc := range c.Documents {
		if counts[doc] == 0 {
			continue
		}
		a := plainProportions(c, b, words[doc*c.Vocab:][:c.Vocab])
		for word := range c.Vocab {
			rest := float64(words[doc*c.Vocab+word])
			for k, p := range a {
				rest -= b[word*c.Topics+k] * p
			}
			for k, p := range a {
				want[word*c.Topics+k] += 2 * rest * p / float64(c.Documents-1)
			}
		}
	}
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
	var most float64
	eachTopic(x, d, func(k, word int, v float32) {
		at := word*c.Topics + k
		if math.Abs(float64(v)-want[at]) > 1e-6 {
			t.Errorf("topic %d, word %d: %g, want %g", k, word, v, want[at])
		}
		most = max(most, math.Abs(want[at]-b[at]))
	})
	if most < 0.01 {
		t.Errorf("the step changes nothing by more than %g", most)
	}
}

// plainProportions are a document's, by the iterations that [Topic] names, in float64.
func plainProportions(c TopicConfig, b []float64, words []float32) []float64 {
	power := make([]float64, c.Topics)
	for k := range power {
		power[k] = 1
	}
	var most float64
	for range powers {
		next := make([]float64, c.Topics)
		for word := range c.Vocab {
			var sum float64
			for k, p := range power {
				sum += math.Abs(b[word*c.Topics+k]) * p
			}
			for k := range next {
				next[k] += math.Abs(b[word*c.Topics+k]) * sum
			}
		}
		most = 0
		for k := range next {
			most = max(most, next[k]/power[k])
		}
		power = next
	}
	a, ahead := make([]float64, c.Topics), make([]float64, c.Topics)
	t := 1.0
	for range c.Iterations {
		slope := make([]float64, c.Topics)
		for word := range c.Vocab {
			rest := -float64(words[word])
			for k, p := range ahead {
				rest += b[word*c.Topics+k] * p
			}
			for k := range slope {
				slope[k] += b[word*c.Topics+k] * rest
			}
		}
		after := (1 + math.Sqrt(1+4*t*t)) / 2
		for k := range a {
			now := max(0, ahead[k]-(slope[k]+float64(c.Sparsity))/most)
			a[k], ahead[k] = now, now+(t-1)/after*(now-a[k])
		}
		t = after
	}
	return a
}

// TestTopicRefuses: what no model can have is a line that names the option.
func TestTopicRefuses(t *testing.T) {
	for want, change := range map[string]func(*TopicConfig){
		"unknown size":           func(c *TopicConfig) { c.Size = "large" },
		"--batch is 0":           func(c *TopicConfig) { c.Documents = 0 },
		"--vocabulary is 0":      func(c *TopicConfig) { c.Vocab = 0 },
		"--topics is 1: want 2":  func(c *TopicConfig) { c.Topics = 1 },
		"--batch times":          func(c *TopicConfig) { c.Documents, c.Vocab = 1<<20, 1<<20 },
		"iterations is 0":        func(c *TopicConfig) { c.Iterations = 0 },
		"sparsity is NaN":        func(c *TopicConfig) { c.Sparsity = float32(math.NaN()) },
		"learning rate is -1: w": func(c *TopicConfig) { c.Schedule = -1 },
	} {
		c := topicConfig(t, "s512")
		change(&c)
		_, err := Topic(c)
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

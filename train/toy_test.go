package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/nn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The toy model predicts every token by its frequency alone: logits w [V], and
// a momentum of the same shape. It makes a run of twenty steps a matter of
// milliseconds. Like dropout, its noise depends on the seed and the step.
const (
	toyVocab  = 300
	toyPairs  = 4
	toyLength = 16
)

// unigram is loss f32[], gradient f32[V] and accuracy f32[] of ids i32[P L],
// logits f32[V] and seed i32[2]. It can be told to fail.
type unigram struct {
	Noise    bool
	NaNLoss  int // the step that has no loss; 0: none
	NaNGrads int // the step that ruins the variables; 0: none
}

func (unigram) Name() string { return "unigram" }

func (unigram) Infer(in []graph.Type) ([]graph.Type, error) {
	return []graph.Type{tensor.Of(graph.F32), in[1], tensor.Of(graph.F32)}, nil
}

func (unigram) Cost(in, _ []graph.Type) graph.Cost { return graph.Cost{Bytes: in[1].Bytes()} }

func (unigram) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

func (u unigram) run(c *kernel.Call) error {
	ids, w, seed := c.In[0].I32(), c.In[1].F32(), c.In[2].I32()
	p := make([]float64, len(w))
	var sum float64
	best := 0
	for i, x := range w {
		if u.Noise {
			x += float32((int(seed[0])+7*int(seed[1])+i)%5) * 1e-3
		}
		p[i] = math.Exp(float64(x))
		sum += p[i]
		if w[i] > w[best] {
			best = i
		}
	}
	var loss, n, right float64
	grad := c.Out[1].F32()
	clear(grad)
	for _, id := range ids {
		if id == data.PAD {
			continue
		}
		if int(id) >= len(p) {
			return fmt.Errorf("id %d is none of %d", id, len(p))
		}
		loss -= math.Log(p[id] / sum)
		grad[id]--
		n++
		if int(id) == best {
			right++
		}
	}
	for i := range grad {
		grad[i] = (grad[i] + float32(n*p[i]/sum)) / float32(n)
	}
	if step := int(seed[1]) + 1; step == u.NaNLoss {
		loss = math.NaN()
	} else if step == u.NaNGrads {
		grad[0] = float32(math.Inf(1))
	}
	c.Out[0].F32()[0], c.Out[2].F32()[0] = float32(loss/n), float32(right/n)
	return nil
}

// momentum updates w and m with a gradient, a learning rate and a step.
type momentum struct{}

func (momentum) Name() string                             { return "momentum" }
func (momentum) Infer([]graph.Type) ([]graph.Type, error) { return nil, nil }
func (momentum) Cost(in, _ []graph.Type) graph.Cost {
	return graph.Cost{Bytes: in[0].Bytes()}
}
func (momentum) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

func (momentum) run(c *kernel.Call) error {
	w, m, g, lr, step := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32()[0],
		c.In[4].F32()[0]
	for i := range w {
		m[i] = 0.9*m[i] + g[i]
		w[i] -= lr * (1 + 1/step) * m[i]
	}
	return nil
}

func init() {
	kernel.Register(kernel.CPU, unigram.run)
	kernel.Register(kernel.CPU, momentum.run)
}

// toy makes the model; u says how its training step fails.
func toy(vocab int, u unigram) *nn.Model {
	g := graph.New()
	ids := tensor.Of(graph.I32, toyPairs, toyLength)
	m := &nn.Model{
		Graph: g, Schedule: nn.InverseSqrt{Scale: 2, Warmup: 4},
		Data: []graph.Value{g.Input("source", ids), g.Input("target", ids)}, Seed: g.Input("seed",
			tensor.Of(graph.I32, 2)),
		LearningRate: g.Input("rate", tensor.Of(graph.F32)), Step: g.Input("step",
			tensor.Of(graph.F32)),
	}
	w := g.Variable("w", tensor.Named(graph.F32, graph.Dim{Name: "vocab", Size: vocab}),
		graph.Init{Dist: graph.Normal, Scale: 0.1})
	v := g.State("w/momentum", w.Type(), graph.Init{})
	u.Noise = true
	t := g.Apply(u, m.Data[1], w, m.Seed)
	e := g.Apply(unigram{}, m.Data[1], w, m.Seed)
	m.EvalLoss, m.EvalMetrics = e.Value(0), []nn.Metric{{Name: "accuracy", Value: e.Value(2)}}
	m.Objectives = []nn.Objective{{
		Name: "train", Times: 1, Loss: t.Value(0), Metrics: []nn.Metric{{Name: "accuracy",
			Value: t.Value(2)}},
		Updates: []*graph.Node{g.Update(momentum{}, []graph.Value{w, v}, t.Value(1), m.LearningRate,
			m.Step)},
	}}
	return m
}

// corpus is some text to learn, with its tokenizer.
func corpus(t testing.TB, vocab int) (*data.Corpus, *data.Tokenizer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pairs.tsv")
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "the number %d\tdie Nummer %d\n", i, i*i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := data.Open(context.Background(), "tsv:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := data.TrainTokenizer(context.Background(), c, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return c, tok
}

// loader makes batches for a model.
func loader(t testing.TB, c *data.Corpus, tok *data.Tokenizer, m *nn.Model) *data.Loader {
	t.Helper()
	l, err := data.NewLoader(c, tok,
		data.LoaderOptions{Pairs: m.Data[0].Type().Size(0), Length: m.Data[0].Type().Size(1)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// toyOptions are a run of 20 steps.
func toyOptions(t testing.TB, m *nn.Model) Options {
	c, tok := corpus(t, toyVocab)
	return Options{
		Model: m, Name: "toy", Size: "tiny", Unit: "token",
		Loader: loader(t, c, tok, m), Tokenizer: tok, Session: gomem.Options{Threads: 1},
		Steps: 20, Seed: 7, Config: map[string]string{"data": "squares", "batch": "4"},
	}
}

// watch makes o keep its events.
func watch(o *Options) *[]Event {
	var events []Event
	o.Observe = func(e Event) { events = append(events, e) }
	return &events
}

// mustRun is a run that has to succeed, with the losses of its steps.
func mustRun(t testing.TB, o Options) (Summary, []float64) {
	t.Helper()
	events := watch(&o)
	s, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for _, e := range *events {
		if e.Kind == Step {
			losses = append(losses, e.Loss)
		}
	}
	return s, losses
}

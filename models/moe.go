package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/internal/tensor"
)

// MoE builds a Transformer with mixture-of-experts layers. Its data are sources
// and targets, ids i32[batch length] of which 0 is padding. It takes no memory
// but that of the graph.
func MoE(c MoEConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := newModel("moe", c.Size, Texts, c.Vocab, c.Schedule)
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	source, target := m.texts(c.Pairs, c.Length)
	if w := newWeights(m.Graph, c); m.Graph.Err() == nil {
		trainMoE(m, c, w, source, target)
		evaluateMoE(m, c, w, source, target)
	}
	return m.done()
}

// texts are the inputs of models that map a text to another.
func (m *Model) texts(pairs, length int) (source, target graph.Value) {
	ids := tensor.Named(graph.I32, graph.Dim{Name: "batch", Size: pairs},
		graph.Dim{Name: "length", Size: length})
	return m.InputOf("source", ids), m.InputOf("target", ids)
}

// trainMoE appends the training pass, the gradients and the updates.
func trainMoE(m *Model, c MoEConfig, w *weights, source, target graph.Value) {
	p := &moe{part: part{g: m.Graph, seed: m.Seed, training: true, fine: c.Fine}, MoEConfig: c,
		w: w}
	entropy, _ := p.run(source, target)
	balance := ops.Scale(sum(p.balance), c.AuxWeight)
	m.minimize(Objective{
		Name: "train", Times: 1, Loss: ops.Add(entropy, balance),
		Metrics: []Metric{{Name: "cross-entropy", Value: entropy},
			{Name: "balance", Value: balance}},
	}, w.all, adafactor{FactorMin: c.FactorMin, Fine: c.Fine})
}

// evaluateMoE appends the held-out pass: the same variables without dropout,
// jitter and label smoothing, and with evaluation's room for experts.
func evaluateMoE(m *Model, c MoEConfig, w *weights, source, target graph.Value) {
	defer m.Graph.Scope("eval")()
	defer m.Graph.Rerun()() // routing draws what it would in training
	c.Dropout, c.Jitter, c.Smoothing = 0, 0, 0
	p := &moe{part: part{g: m.Graph, seed: m.Seed, fine: c.Fine}, MoEConfig: c, w: w}
	entropy, logits := p.run(source, target)
	m.EvalLoss = entropy
	m.EvalMetrics = []Metric{{Name: "accuracy", Value: p.mean(ops.Correct(logits, target), target)}}
	_, best := ops.TopK(logits, 1)
	m.EvalOutputs = []graph.Value{best}
}

// weights are the variables of the model.
type weights struct {
	embedding  graph.Value // [vocab width], also the last layer's weights
	positional graph.Value // [length width]
	enc, dec   stack
	parameters
}

// stack is the weights of the encoder or the decoder.
type stack struct {
	layers []layer
	norm   graph.Value // of the output
}

// layer is the weights of one layer; cross is the decoder's alone.
type layer struct {
	att, cross attention
	moe        mixture
}

// attention is a norm's scale and [4 width heads·size]: the weights of queries,
// keys, values and output, the last one transposed.
type attention struct{ norm, qkvo graph.Value }

// mixture is a norm's scale, the gate [width experts], and the experts' two
// layers: a variable each, [width hidden] and [hidden width], or if stacked one
// of rank 3.
type mixture struct {
	norm, gate graph.Value
	w0, w1     []graph.Value
}

func newWeights(g *graph.Graph, c MoEConfig) *weights {
	w := &weights{parameters: parameters{g: g}}
	w.embedding = w.add("embedding", normal(1), c.Vocab, c.Width)
	w.positional = w.add("positional", normal(1), c.Length, c.Width)
	w.enc = w.stack(g, c, "enc", false)
	w.dec = w.stack(g, c, "dec", true)
	return w
}

func (w *weights) scale(c MoEConfig) graph.Value { return w.add("norm", one(), c.Width) }

func (w *weights) stack(g *graph.Graph, c MoEConfig, name string, cross bool) (s stack) {
	defer g.Scope(name)()
	for i := range c.Layers {
		s.layers = append(s.layers, w.layer(g, c, fmt.Sprint(i), cross))
	}
	s.norm = w.scale(c)
	return s
}

func (w *weights) layer(g *graph.Graph, c MoEConfig, name string, cross bool) (l layer) {
	defer g.Scope(name)()
	l.att = w.attention(g, c, "att")
	if cross {
		l.cross = w.attention(g, c, "cross")
	}
	l.moe = w.mixture(g, c, "moe")
	return l
}

func (w *weights) attention(g *graph.Graph, c MoEConfig, name string) attention {
	defer g.Scope(name)()
	in := 1 / math.Sqrt(float64(c.Width))
	qk := normal(in / libm.Pow(float64(c.HeadWidth), 0.25)) // logits have variance 1
	each := graph.Init{Each: []graph.Init{qk, qk, normal(in),
		normal(in / math.Sqrt(float64(c.Heads)))}}
	return attention{w.scale(c), w.add("qkvo", each, 4, c.Width, c.Heads*c.HeadWidth)}
}

func (w *weights) mixture(g *graph.Graph, c MoEConfig, name string) mixture {
	defer g.Scope(name)()
	m := mixture{norm: w.scale(c)}
	m.gate = w.add("gate", fanIn(c.Width), c.Width, c.Experts)
	if c.Stacked {
		m.w0 = []graph.Value{w.add("experts/w0", fanIn(c.Width), c.Experts, c.Width,
			c.ExpertHidden)}
		m.w1 = []graph.Value{w.add("experts/w1", fanIn(c.ExpertHidden), c.Experts, c.ExpertHidden,
			c.Width)}
		return m
	}
	for i := range c.Experts {
		name := fmt.Sprintf("expert%d/", i)
		m.w0 = append(m.w0, w.add(name+"w0", fanIn(c.Width), c.Width, c.ExpertHidden))
		m.w1 = append(m.w1, w.add(name+"w1", fanIn(c.ExpertHidden), c.ExpertHidden, c.Width))
	}
	return m
}

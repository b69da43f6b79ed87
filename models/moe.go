package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
)

// MoE builds a Transformer with mixture-of-experts layers. It takes no memory
// but that of the graph.
func MoE(c MoEConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	g := graph.New()
	ids := tensor.Named(graph.I32, graph.Dim{Name: "batch", Size: c.Pairs}, graph.Dim{Name: "length", Size: c.Length})
	m := &Model{
		Graph: g, Name: "moe", Size: c.Size, Vocab: c.Vocab, Schedule: c.Schedule,
		Source: g.Input("source", ids), Target: g.Input("target", ids), Seed: g.Input("seed", tensor.Of(graph.I32, 2)),
		LearningRate: g.Input("rate", tensor.Of(graph.F32)), Step: g.Input("step", tensor.Of(graph.F32)),
	}
	m.DeviceBytes, m.HostBytes = c.budget()
	if w := newWeights(g, c); g.Err() == nil {
		train(m, c, w)
		evaluate(m, c, w)
	}
	if err := g.Err(); err != nil {
		return nil, fmt.Errorf("model %s of size %s: %w", m.Name, c.Size, err)
	}
	return m, nil
}

// train appends the training pass, the gradients and the updates.
func train(m *Model, c MoEConfig, w *weights) {
	p := &pass{MoEConfig: c, g: m.Graph, w: w, seed: m.Seed, training: true}
	entropy, _ := p.run(m.Source, m.Target)
	balance := ops.Scale(sum(p.balance), c.AuxWeight)
	m.Loss = ops.Add(entropy, balance)
	m.TrainMetrics = []Metric{{"cross-entropy", entropy}, {"balance", balance}}
	grads := autodiff.Grad(m.Loss, w.all...)
	for i := len(w.all) - 1; i >= 0; i-- {
		m.Updates = append(m.Updates, adafactor(m, c, w.all[i], grads[i]))
	}
}

// evaluate appends the held-out pass: the same variables without dropout,
// jitter and label smoothing, and with evaluation's room for experts.
func evaluate(m *Model, c MoEConfig, w *weights) {
	defer m.Graph.Scope("eval")()
	c.Dropout, c.Jitter, c.Smoothing = 0, 0, 0
	p := &pass{MoEConfig: c, g: m.Graph, w: w, seed: m.Seed}
	entropy, logits := p.run(m.Source, m.Target)
	m.EvalLoss = entropy
	m.EvalMetrics = []Metric{{"accuracy", p.mean(ops.Correct(logits, m.Target), m.Target)}}
}

// adafactor updates a variable. The gradient is done with then, and there are
// no others to wait for: nothing clips by the norm of all gradients.
func adafactor(m *Model, c MoEConfig, w, grad graph.Value) *graph.Node {
	var state []graph.Value
	types := ops.AdafactorState(w.Type(), c.FactorMin)
	for i, t := range types {
		name := "second"
		if len(types) == 2 {
			name = [...]string{"second-rows", "second-columns"}[i]
		}
		state = append(state, m.Graph.State(w.Node.Name+"/"+name, t, graph.Init{}))
	}
	var n *graph.Node
	m.Graph.On(w.Node, func() {
		n = ops.Adafactor(w, state, grad, m.LearningRate, m.Step, ops.AdafactorConfig{MinDim: c.FactorMin})
	})
	return n
}

// weights are the variables of the model.
type weights struct {
	embedding  graph.Value // [vocab width], also the last layer's weights
	positional graph.Value // [length width]
	enc, dec   stack
	all        []graph.Value // in the order of first use
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
	w := &weights{}
	w.embedding = w.add(g, "embedding", tensor.Of(graph.F32, c.Vocab, c.Width), normal(1))
	w.positional = w.add(g, "positional", tensor.Of(graph.F32, c.Length, c.Width), normal(1))
	w.enc = w.stack(g, c, "enc", false)
	w.dec = w.stack(g, c, "dec", true)
	return w
}

func (w *weights) add(g *graph.Graph, name string, t graph.Type, init graph.Init) graph.Value {
	v := g.Variable(name, t, init)
	w.all = append(w.all, v)
	return v
}

func (w *weights) scale(g *graph.Graph, c MoEConfig) graph.Value {
	return w.add(g, "norm", tensor.Of(graph.F32, c.Width), graph.Init{Dist: graph.Constant, Scale: 1})
}

func (w *weights) stack(g *graph.Graph, c MoEConfig, name string, cross bool) (s stack) {
	defer g.Scope(name)()
	for i := range c.Layers {
		s.layers = append(s.layers, w.layer(g, c, fmt.Sprint(i), cross))
	}
	s.norm = w.scale(g, c)
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
	qk := normal(in / math.Pow(float64(c.HeadWidth), 0.25)) // logits have variance 1
	each := graph.Init{Each: []graph.Init{qk, qk, normal(in), normal(in / math.Sqrt(float64(c.Heads)))}}
	packed := tensor.Of(graph.F32, 4, c.Width, c.Heads*c.HeadWidth)
	return attention{w.scale(g, c), w.add(g, "qkvo", packed, each)}
}

func (w *weights) mixture(g *graph.Graph, c MoEConfig, name string) mixture {
	defer g.Scope(name)()
	m := mixture{norm: w.scale(g, c)}
	m.gate = w.add(g, "gate", tensor.Of(graph.F32, c.Width, c.Experts), fanIn(c.Width))
	if c.Stacked {
		m.w0 = []graph.Value{w.add(g, "experts/w0", tensor.Of(graph.F32, c.Experts, c.Width, c.ExpertHidden), fanIn(c.Width))}
		m.w1 = []graph.Value{w.add(g, "experts/w1", tensor.Of(graph.F32, c.Experts, c.ExpertHidden, c.Width), fanIn(c.ExpertHidden))}
		return m
	}
	for i := range c.Experts {
		name := fmt.Sprintf("expert%d/", i)
		m.w0 = append(m.w0, w.add(g, name+"w0", tensor.Of(graph.F32, c.Width, c.ExpertHidden), fanIn(c.Width)))
		m.w1 = append(m.w1, w.add(g, name+"w1", tensor.Of(graph.F32, c.ExpertHidden, c.Width), fanIn(c.ExpertHidden)))
	}
	return m
}

func normal(deviation float64) graph.Init {
	return graph.Init{Dist: graph.Normal, Scale: deviation}
}

// fanIn keeps the variance of what n inputs are multiplied with.
func fanIn(n int) graph.Init { return normal(1 / math.Sqrt(float64(n))) }

// sum adds values of one type up.
func sum(vs []graph.Value) graph.Value {
	total := vs[0]
	for _, v := range vs[1:] {
		total = ops.Add(total, v)
	}
	return total
}

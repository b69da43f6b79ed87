package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// config is a model's kind and size; the peer gets it as JSON.
type config struct {
	Kind    string `json:"kind"`   // a model of builders
	Layers  int    `json:"layers"` // of the encoder, and as many of the decoder
	Width   int    `json:"width"`
	Heads   int    `json:"heads"`
	Hidden  int    `json:"hidden"` // width inside a feed-forward layer or an expert
	Experts int    `json:"experts"`
	Vocab   int    `json:"vocab"`
	Batch   int    `json:"batch"`
	Length  int    `json:"length"`
}

// builders make a model's loss from its inputs, by kind.
var builders = map[string]func(b *builder) graph.Value{
	"transformer": transformer,
	"moe-einsum":  func(b *builder) graph.Value { return languageModel(b, b.einsumExperts) },
	"moe-gather":  func(b *builder) graph.Value { return languageModel(b, b.gatheredExperts) },
}

// configs are the models of the tables.
func configs() []config {
	base := config{Width: 512, Heads: 8, Hidden: 2048, Vocab: 32000, Batch: 4, Length: 64}
	var all []config
	for _, c := range []struct {
		kind            string
		layers, experts int
	}{{"transformer", 6, 0}, {"moe-einsum", 2, 32}, {"moe-gather", 2, 32}} {
		base.Kind, base.Layers, base.Experts = c.kind, c.layers, c.experts
		all = append(all, base)
	}
	return all
}

// The optimizer is Adam with PyTorch's defaults and this learning rate.
const (
	learningRate = 1e-4
	beta1        = 0.9
	beta2        = 0.999
	adamEps      = 1e-8
)

// model is a training step as a graph.
type model struct {
	config
	graph      *graph.Graph
	tokens     []graph.Value // inputs i32[batch length]
	constants  []graph.Value // what the peer is to have from here
	rate, step graph.Value   // inputs of the optimizer
	loss       graph.Value
}

// build makes the graph of a model.
func build(c config) (*model, error) {
	loss, ok := builders[c.Kind]
	if !ok {
		return nil, fmt.Errorf("no model %q", c.Kind)
	}
	g := graph.New()
	b := &builder{model: &model{config: c, graph: g}}
	b.rate, b.step = g.Input("rate", tensor.Of(graph.F32)), g.Input("step", tensor.Of(graph.F32))
	b.loss = loss(b)
	b.minimize()
	if err := g.Err(); err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Kind, err)
	}
	return b.model, nil
}

// target is a training step.
func (m *model) target() gomem.Target { return gomem.Training(m.graph, m.loss) }

// feeds are the inputs of a step, counted from 1: the same tokens at every step.
func (m *model) feeds(step int) gomem.Feeds {
	f := gomem.Feeds{
		m.rate: gomem.Scalar(learningRate),
		m.step: gomem.Scalar(float32(step)),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, v := range m.tokens {
		ids := gomem.NewTensor(v.Type())
		for i := range ids.I32() {
			ids.I32()[i] = rng.Int32N(int32(m.Vocab))
		}
		f[v] = ids
	}
	return f
}

// builder appends a model to a graph.
type builder struct {
	*model
	parameters []graph.Value // in the order of first use
	embedding  graph.Value
	table      graph.Value // of positions
}

func (b *builder) parameter(name string, init graph.Init, sizes ...int) graph.Value {
	v := b.graph.Variable(name, tensor.Of(graph.F32, sizes...), init)
	b.parameters = append(b.parameters, v)
	return v
}

func (b *builder) input(name string) graph.Value {
	v := b.graph.Input(name, tensor.Of(graph.I32, b.Batch, b.Length))
	b.tokens = append(b.tokens, v)
	return v
}

func normal(deviation float64) graph.Init {
	return graph.Init{Dist: graph.Normal, Scale: deviation}
}

// minimize appends the gradients of the loss and the updates, the last
// parameter's first.
func (b *builder) minimize() {
	grads := autodiff.Grad(b.loss, b.parameters...)
	for i := len(b.parameters) - 1; i >= 0; i-- {
		w := b.parameters[i]
		if !grads[i].Valid() {
			continue // the graph's error says why
		}
		first := b.graph.State(w.Node.Name+"/first", w.Type(), graph.Init{})
		second := b.graph.State(w.Node.Name+"/second", w.Type(), graph.Init{})
		ops.Adam(w, first, second, grads[i], b.rate, b.step, beta1, beta2, adamEps)
	}
}

// embed looks tokens up, times √width, and adds the positions.
func (b *builder) embed(ids graph.Value) graph.Value {
	if !b.embedding.Valid() {
		deviation := 1 / math.Sqrt(float64(b.Width))
		b.embedding = b.parameter("embedding", normal(deviation), b.Vocab, b.Width)
		b.table = b.graph.Constant("positions", positions(b.Length, b.Width))
		b.constants = append(b.constants, b.table)
	}
	x := ops.Scale(ops.Embedding(b.embedding, ids), float32(math.Sqrt(float64(b.Width))))
	return ops.Add(x, b.table)
}

// positions are sines and cosines of geometrically growing wavelengths, in turn.
func positions(length, width int) tensor.View {
	x := make([]float32, length*width)
	for p := range length {
		for i := range width {
			sin, cos := math.Sincos(float64(p) * math.Pow(10000, -float64(i/2*2)/float64(width)))
			x[p*width+i] = float32(sin)
			if i%2 == 1 {
				x[p*width+i] = float32(cos)
			}
		}
	}
	return tensor.FromF32(x, length, width)
}

// entropy is the mean cross-entropy of the labels, by products with the
// embedding.
func (b *builder) entropy(x, labels graph.Value) graph.Value {
	logits := ops.MatMulT(x, b.embedding, false, true)
	return ops.Mean(ops.CrossEntropy(logits, labels, 0))
}

// linear is x·w + bias, from in numbers to out.
func (b *builder) linear(name string, x graph.Value, in, out int) graph.Value {
	defer b.graph.Scope(name)()
	w := b.parameter("weight", normal(1/math.Sqrt(float64(in))), in, out)
	return ops.Add(ops.MatMul(x, w), b.parameter("bias", normal(0.02), out))
}

// norm is layer normalisation.
func (b *builder) norm(name string, x graph.Value) graph.Value {
	defer b.graph.Scope(name)()
	scale := b.parameter("scale", graph.Init{Dist: graph.Constant, Scale: 1}, b.Width)
	return ops.LayerNorm(x, scale, b.parameter("bias", graph.Init{}, b.Width), 1e-5)
}

// attend is multi-head attention of x to memory, with mask added to the logits
// if there is one.
func (b *builder) attend(name string, x, memory, mask graph.Value) graph.Value {
	defer b.graph.Scope(name)()
	q := b.heads(b.linear("query", x, b.Width, b.Width))
	k := b.heads(b.linear("key", memory, b.Width, b.Width))
	v := b.heads(b.linear("value", memory, b.Width, b.Width))
	a := ops.Scale(ops.MatMulT(q, k, false, true), float32(1/math.Sqrt(float64(b.Width/b.Heads))))
	if mask.Valid() {
		a = ops.Add(a, mask)
	}
	y := ops.Transpose(ops.MatMul(ops.Softmax(a), v), 0, 2, 1, 3)
	return b.linear("output", ops.ReshapeSizes(y, b.Batch, b.Length, b.Width), b.Width, b.Width)
}

// heads takes [batch length width] apart into [batch heads length width/heads].
func (b *builder) heads(x graph.Value) graph.Value {
	split := ops.ReshapeSizes(x, b.Batch, b.Length, b.Heads, b.Width/b.Heads)
	return ops.Transpose(split, 0, 2, 1, 3)
}

// forward is a feed-forward layer.
func (b *builder) forward(x graph.Value) graph.Value {
	return b.linear("second", ops.Relu(b.linear("first", x, b.Width, b.Hidden)), b.Hidden, b.Width)
}

// encode is a layer of the encoder, normalised after each of its two parts.
func (b *builder) encode(name string, x, mask graph.Value,
	second func(graph.Value) graph.Value) graph.Value {
	defer b.graph.Scope(name)()
	x = b.norm("norm1", ops.Add(x, b.attend("attention", x, x, mask)))
	return b.norm("norm2", ops.Add(x, second(x)))
}

package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// gptSteps are the numbers of tokens that a decoder's steps take: large ones for a
// prompt, down to single tokens. A prompt of 100 takes 2 executions, not 100, each of
// which reads all weights; one of fewer than 64 takes 5 at most.
var gptSteps = [...]int{64, 16, 4, 1}

// DecodeGPT builds the decoder of [GPT] for a batch of texts of c.Length tokens at
// most. It has the model's parameters by their names, and state variables
// "cache/LAYER/keys" and "cache/LAYER/values", f32[batch heads length size].
func DecodeGPT(c GPTConfig, batch int) (*Decoder, error) {
	return decodeGPT(c, batch, partBytes)
}

// partBytes is how much of an embedding is on the device at a time.
const partBytes = 32 << 20

func decodeGPT(c GPTConfig, batch, partBytes int) (*Decoder, error) {
	c.Texts = batch
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := nn.NewModel()
	m.Adapters, m.Packing = c.Training.Adapters, c.packing
	d := &Decoder{Graph: m.Graph, Batch: batch, Length: c.Length, Vocab: c.Vocab}
	past := &gptPast{partBytes: partBytes}
	leave := m.Graph.Scope("cache")
	for i := range c.Layers {
		past.keys = append(past.keys, c.cache(m.Graph, i, "keys"))
		past.values = append(past.values, c.cache(m.Graph, i, "values"))
	}
	leave()
	for _, n := range gptSteps {
		if n < c.Length || n == 1 {
			d.Steps = append(d.Steps, gptStep(m, c, past, n))
		}
	}
	if err := m.Err(); err != nil {
		return nil, fmt.Errorf("decoder of model gpt of size %s: %w", c.Size, err)
	}
	return d, nil
}

// cache is a state variable for the keys or the values of a layer.
func (c GPTConfig) cache(g *graph.Graph, layer int, name string) graph.Value {
	defer g.Scope(fmt.Sprint(layer))()
	return g.State(name, tensor.Of(graph.F32, c.Texts, c.KeyHeads, c.Length, c.size()),
		graph.Init{})
}

// gptStep is the step that takes n tokens.
func gptStep(m *nn.Model, c GPTConfig, past *gptPast, n int) DecodeStep {
	ctx := m.Pass(nn.Pass{Name: fmt.Sprintf("step%d", n)})
	leave := ctx.Enter()
	s := DecodeStep{
		Tokens:   m.Graph.Input("tokens", tensor.Of(graph.I32, c.Texts, n)),
		Position: m.Graph.Input("position", tensor.Of(graph.I32)),
		Parent:   m.Graph.Input("parent", tensor.Of(graph.I32, c.Texts)),
	}
	past.parent, past.updates = s.Parent, nil
	p := &gpt{GPTConfig: c, past: past, first: s.Position, rates: c.scaled(m.Graph)}
	leave()
	x := p.hidden(ctx, s.Tokens)
	leave = ctx.Enter()
	if x.Valid() {
		x = ops.ReshapeSizes(ops.Slice(x, 1, n-1, n), c.Texts, c.Width)
	}
	leave()
	s.Logits, s.Updates = p.head(ctx, x), past.updates
	return s
}

// gptPast is what is kept of the tokens before: keys and values of every layer.
type gptPast struct {
	partBytes    int // how much of an embedding is on the device at a time
	keys, values []graph.Value
	parent       graph.Value   // of the step that is being built
	updates      []*graph.Node // of it
}

// recall is the keys and values of a layer, heads first, with those of new tokens in their places,
// which are kept. With one text there is none that another could continue.
func (p *gptPast) recall(layer int, k, v, position graph.Value) (keys, values graph.Value) {
	return p.put(p.keys[layer], headsFirst(k), position),
		p.put(p.values[layer], headsFirst(v), position)
}

func (p *gptPast) put(cache, rows, position graph.Value) graph.Value {
	const along = 2
	if cache.Type().Size(0) == 1 {
		p.updates = append(p.updates, ops.WriteAt(cache, rows, position, along))
		return ops.PutAt(cache, rows, position, along)
	}
	p.updates = append(p.updates, ops.ReorderWriteAt(cache, p.parent, rows, position, along))
	return ops.PutAt(ops.Reorder(cache, p.parent), rows, position, along)
}

package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// transformer builds the computation of one loss.
type transformer struct {
	TransformerConfig
	positions graph.Value // [length width]
	parts     int         // in which the embedding is read, see nn.EmbeddingOptions
}

// declare is a pass that uses the parameters in the order of checkpoints.
func (p *transformer) declare(c *nn.Ctx, in ...graph.Value) {
	q := transformer{TransformerConfig: p.TransformerConfig}
	q.table(c, in[0])
	q.run(c, in[0], in[1])
}

// run is the mean cross-entropy of a target's tokens, f32[], and the logits,
// f32[pairs length vocab].
func (p *transformer) run(c *nn.Ctx, source, target graph.Value) (loss, logits graph.Value) {
	if !p.positions.Valid() {
		p.positions = nn.Sinusoids(c.Graph(), p.Length, p.Width)
	}
	defer c.Enter()()
	padding, causal := ops.PaddingMask(source), ops.CausalMask(c.Graph(), p.Length)
	memory := p.encode(c.In("enc"), source, padding)
	y := p.decode(c.In("dec"), target, memory, causal, padding)
	logits = nn.Unembedding(c.Share(""), y, p.Vocab, p.shared())
	return nn.CrossEntropy(logits, target, nn.CrossEntropyOptions{Smoothing: p.Smoothing,
		Padding: true}), logits
}

func (p *transformer) encode(c *nn.Ctx, source, padding graph.Value) graph.Value {
	defer c.Enter()()
	space := nn.Embedding(c.Share(""), c.Graph().Constant("space", tensor.FromI32([]int32{0}, 1)),
		targetSpaces, p.Width, p.embedding("target-space"))
	x := p.drop(c, ops.Add(p.embed(c, source), space), "embedding")
	for i := range p.Layers {
		layer := c.In(fmt.Sprint(i))
		x = p.attend(layer.In("att"), x, graph.Value{}, padding)
		x = p.feedForward(layer.In("ff"), x)
	}
	return p.norm(c, x)
}

// decode sees, at each position, the tokens before it, and is to predict the
// token there.
func (p *transformer) decode(c *nn.Ctx, target, memory, causal, padding graph.Value) graph.Value {
	defer c.Enter()()
	shifted := ops.Pad(ops.Slice(target, 1, 0, p.Length-1), 1, 1, 0)
	x := p.drop(c, p.embed(c, shifted), "embedding")
	for i := range p.Layers {
		layer := c.In(fmt.Sprint(i))
		x = p.attend(layer.In("att"), x, graph.Value{}, causal)
		x = p.attend(layer.In("cross"), x, memory, padding)
		x = p.feedForward(layer.In("ff"), x)
	}
	return p.norm(c, x)
}

func (p *transformer) embed(c *nn.Ctx, ids graph.Value) graph.Value {
	x := ops.Scale(p.table(c, ids), float32(math.Sqrt(float64(p.Width))))
	return ops.Add(x, p.positions)
}

// table is the rows of ids of the embedding of source, target and logits.
func (p *transformer) table(c *nn.Ctx, ids graph.Value) graph.Value {
	return nn.Embedding(c.Share(""), ids, p.Vocab, p.Width, p.shared())
}

// shared are the options of the embedding of source, target and logits.
func (p *transformer) shared() nn.EmbeddingOptions {
	o := p.embedding("embedding")
	o.Parts = p.parts
	return o
}

func (p *transformer) embedding(name string) nn.EmbeddingOptions {
	return nn.EmbeddingOptions{Name: name, Table: nn.Normal(1 / math.Sqrt(float64(p.Width)))}
}

func (p *transformer) drop(c *nn.Ctx, x graph.Value, name string) graph.Value {
	return nn.Dropout(c, x, p.Dropout, nn.DropoutOptions{Name: name})
}

func (p *transformer) norm(c *nn.Ctx, x graph.Value) graph.Value {
	return nn.LayerNorm(c.Of("norm"), x, nn.NormOptions{Eps: layerNormEps})
}

// attend is an attention sublayer of x to memory, or to x itself without one.
func (p *transformer) attend(c *nn.Ctx, x, memory, mask graph.Value) graph.Value {
	defer c.Enter()()
	y := nn.Attention(c, p.norm(c, x), nn.AttentionOptions{Heads: p.Heads, Memory: memory,
		Mask: mask, Dropout: p.Dropout})
	return ops.Add(x, p.drop(c, y, "residual"))
}

func (p *transformer) feedForward(c *nn.Ctx, x graph.Value) graph.Value {
	defer c.Enter()()
	y := nn.FeedForward(c, p.norm(c, x), p.Hidden, nn.FeedForwardOptions{Dropout: p.Dropout})
	return ops.Add(x, p.drop(c, y, "residual"))
}

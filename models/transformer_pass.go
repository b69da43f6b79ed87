package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
)

// transformer builds the computation of one loss.
type transformer struct {
	part
	TransformerConfig
	w         *transformerWeights
	positions graph.Value // [length width]
}

// run is the mean cross-entropy of a target's tokens, f32[], and the logits,
// f32[pairs length vocab].
func (p *transformer) run(source, target graph.Value) (loss, logits graph.Value) {
	if !p.positions.Valid() {
		p.positions = sinusoids(p.g, p.Length, p.Width)
	}
	padding, causal := ops.PaddingMask(source), ops.CausalMask(p.g, p.Length)
	memory := p.encode(source, padding)
	y := p.decode(target, memory, causal, padding)
	logits = ops.MatMulT(y, p.w.embedding, false, true)
	// smoothing is over all sub-words, the target included
	others := float32(p.Vocab-1) / float32(p.Vocab)
	return p.mean(ops.CrossEntropy(logits, target, p.Smoothing*others), target), logits
}

func (p *transformer) encode(source, padding graph.Value) graph.Value {
	defer p.scope("enc")()
	space := ops.Embedding(p.w.space, p.g.Constant("space", tensor.FromI32([]int32{0}, 1)))
	x := p.drop(ops.Add(p.embed(source), space), "embedding")
	for i, l := range p.w.enc.layers {
		leave := p.scope(fmt.Sprint(i))
		x = p.attend("att", l.att, x, graph.Value{}, padding)
		x = p.feedForward(l.ff, x)
		leave()
	}
	return p.norm(p.w.enc.norm, x)
}

// decode sees, at each position, the tokens before it, and is to predict the
// token there.
func (p *transformer) decode(target, memory, causal, padding graph.Value) graph.Value {
	defer p.scope("dec")()
	shifted := ops.Pad(ops.Slice(target, 1, 0, p.Length-1), 1, 1, 0)
	x := p.drop(p.embed(shifted), "embedding")
	for i, l := range p.w.dec.layers {
		leave := p.scope(fmt.Sprint(i))
		x = p.attend("att", l.att, x, graph.Value{}, causal)
		x = p.attend("cross", l.cross, x, memory, padding)
		x = p.feedForward(l.ff, x)
		leave()
	}
	return p.norm(p.w.dec.norm, x)
}

func (p *transformer) embed(ids graph.Value) graph.Value {
	x := ops.Scale(ops.Embedding(p.w.embedding, ids), float32(math.Sqrt(float64(p.Width))))
	return ops.Add(x, p.positions)
}

func (p *transformer) drop(x graph.Value, name string) graph.Value {
	return p.dropout(x, p.Dropout, name)
}

func (p *transformer) norm(w scaleBias, x graph.Value) graph.Value {
	return p.layerNorm(x, w.scale, w.bias, layerNormEps)
}

// attend is an attention sublayer of x to memory, or to x itself without one.
func (p *transformer) attend(name string, w transformerAttention, x, memory,
	mask graph.Value) graph.Value {
	defer p.scope(name)()
	y := p.norm(w.norm, x)
	if !memory.Valid() {
		memory = y
	}
	scale := 1 / math.Sqrt(float64(p.Width/p.Heads))
	q := p.heads(ops.Scale(ops.MatMul(y, w.q), float32(scale)))
	k, v := p.heads(ops.MatMul(memory, w.k)), p.heads(ops.MatMul(memory, w.v))
	a := p.drop(ops.Softmax(ops.Add(ops.MatMulT(q, k, false, true), mask)), "weights")
	y = ops.Transpose(ops.MatMul(a, v), 0, 2, 1, 3)
	y = ops.ReshapeSizes(y, p.Pairs, p.Length, p.Width)
	return ops.Add(x, p.drop(ops.MatMul(y, w.o), "residual"))
}

// heads takes [pairs length width] apart into [pairs heads length size].
func (p *transformer) heads(x graph.Value) graph.Value {
	split := ops.ReshapeSizes(x, p.Pairs, p.Length, p.Heads, p.Width/p.Heads)
	return ops.Transpose(split, 0, 2, 1, 3)
}

func (p *transformer) feedForward(w feedForward, x graph.Value) graph.Value {
	defer p.scope("ff")()
	y := ops.Relu(ops.Add(ops.MatMul(p.norm(w.norm, x), w.w0), w.b0))
	y = ops.Add(ops.MatMul(p.drop(y, "hidden"), w.w1), w.b1)
	return ops.Add(x, p.drop(y, "residual"))
}

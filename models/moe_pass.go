package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// normEps is added to the mean square that a norm divides by.
const normEps = 1e-6

// moe builds the computation of one loss.
type moe struct {
	part
	MoEConfig
	w       *weights
	balance []graph.Value // the layers' auxiliary losses, in training
}

// run is the mean cross-entropy of a target's tokens, f32[], and the logits,
// f32[pairs length vocab].
func (p *moe) run(source, target graph.Value) (loss, logits graph.Value) {
	padding, causal := ops.PaddingMask(source), ops.CausalMask(p.g, p.Length)
	memory := p.stack("enc", p.w.enc, p.embed("source", source),
		func(y graph.Value, l layer) graph.Value {
			return p.attend("att", l.att, y, graph.Value{}, padding)
		})
	y := p.stack("dec", p.w.dec, p.embed("target", p.shift(target)),
		func(y graph.Value, l layer) graph.Value {
			y = p.attend("att", l.att, y, graph.Value{}, causal)
			return p.attend("cross", l.cross, y, memory, padding)
		})
	logits = p.logits(y)
	// smoothing is over all sub-words, the target included
	others := float32(p.Vocab-1) / float32(p.Vocab)
	return p.mean(ops.CrossEntropy(logits, target, p.Smoothing*others), target), logits
}

// shift puts padding before every target and drops its last token: position i
// sees the tokens before i, and is to predict token i.
func (p *moe) shift(ids graph.Value) graph.Value {
	return ops.Pad(ops.Slice(ids, 1, 0, p.Length-1), 1, 1, 0)
}

func (p *moe) embed(name string, ids graph.Value) graph.Value {
	defer p.scope(name)()
	return p.noisy(ops.Add(ops.Embedding(p.w.embedding, ids), p.w.positional))
}

// logits are products with the embedding, as if that were normal with deviation
// 1/√width.
func (p *moe) logits(x graph.Value) graph.Value {
	defer p.scope("logits")()
	x = ops.Scale(x, float32(1/math.Sqrt(float64(p.Width))))
	return ops.Jitter(ops.MatMulT(x, p.w.embedding, false, true), p.seed, p.Jitter, p.path)
}

// stack is the layers of the encoder or the decoder, which differ in what they
// attend to, and the norm of their output.
func (p *moe) stack(name string, s stack, x graph.Value,
	attend func(graph.Value, layer) graph.Value) graph.Value {
	defer p.scope(name)()
	for i, l := range s.layers {
		leave := p.scope(fmt.Sprint(i))
		x = p.residual("moe", attend(x, l), l.moe.norm, func(y graph.Value) graph.Value {
			return p.mixture(l.moe, y)
		})
		leave()
	}
	return p.noisy(p.rmsNorm(x, s.norm, normEps))
}

// attend is an attention sublayer of x to memory, or to x itself without one.
func (p *moe) attend(name string, w attention, x, memory, mask graph.Value) graph.Value {
	return p.residual(name, x, w.norm, func(y graph.Value) graph.Value {
		if !memory.Valid() {
			return p.attention(w.qkvo, y, y, mask)
		}
		return p.attention(w.qkvo, y, memory, mask)
	})
}

// residual is x + dropout(f(norm(x))).
func (p *moe) residual(name string, x, norm graph.Value,
	f func(graph.Value) graph.Value) graph.Value {
	defer p.scope(name)()
	return ops.Add(x, p.noisy(f(p.rmsNorm(x, norm, normEps))))
}

// noisy is dropout that shares its noise among the positions of a text.
func (p *moe) noisy(x graph.Value) graph.Value { return p.dropout(x, p.Dropout, "", 1) }

// attention is multi-head attention of x to memory, f32[pairs length width]
// both. Nothing is divided by the size of a head: the weights start so that
// logits have variance 1.
func (p *moe) attention(qkvo, x, memory, mask graph.Value) graph.Value {
	w := ops.Unstack(qkvo)
	q := p.heads(ops.MatMul(x, w[0]))
	k := p.heads(ops.MatMul(memory, w[1]))
	v := p.heads(ops.MatMul(memory, w[2]))
	a := ops.Softmax(ops.Add(ops.MatMulT(q, k, false, true), mask))
	a = p.dropout(a, p.Dropout, "weights", 2)
	y := ops.Transpose(ops.MatMul(a, v), 0, 2, 1, 3)
	y = ops.ReshapeSizes(y, p.Pairs, p.Length, p.Heads*p.HeadWidth)
	return ops.MatMulT(y, w[3], false, true)
}

// heads takes [pairs length heads·size] apart into [pairs heads length size].
func (p *moe) heads(x graph.Value) graph.Value {
	return ops.Transpose(ops.ReshapeSizes(x, p.Pairs, p.Length, p.Heads, p.HeadWidth), 0, 2, 1, 3)
}

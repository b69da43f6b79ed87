package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/nn"
)

// MoE builds a Transformer with mixture-of-experts layers. Its data are sources
// and targets, ids i32[batch length] of which 0 is padding. It takes no memory
// but that of the graph.
func MoE(c MoEConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := newModel("moe", c.Size, Texts, c.Vocab, c.Schedule, c.Fine)
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	source, target := m.texts(c.Pairs, c.Length)
	m.Declare(func(at *nn.Ctx, in ...graph.Value) {
		(&moe{MoEConfig: c}).run(at, in[0], in[1])
	}, source, target)
	trainMoE(m, c, source, target)
	evaluateMoE(m, c, source, target)
	return m.done()
}

// texts are the inputs of models that map a text to another.
func (m *Model) texts(pairs, length int) (source, target graph.Value) {
	ids := tensor.Named(graph.I32, graph.Dim{Name: "batch", Size: pairs},
		graph.Dim{Name: "length", Size: length})
	return m.InputOf("source", ids), m.InputOf("target", ids)
}

// trainMoE appends the training pass, the gradients and the updates.
func trainMoE(m *Model, c MoEConfig, source, target graph.Value) {
	p := &moe{MoEConfig: c}
	entropy, _ := p.run(m.Training(), source, target)
	balance := ops.Scale(sum(p.balance), c.AuxWeight)
	by := nn.Adafactor{MinDim: c.FactorMin}
	c.Training.Minimize(&m.Model, ops.Add(entropy, balance), by, nn.MinimizeOptions{
		Metrics: []Metric{{Name: "cross-entropy", Value: entropy},
			{Name: "balance", Value: balance}}})
}

// evaluateMoE appends the held-out pass: the same variables without dropout,
// jitter and label smoothing, and with evaluation's room for experts.
func evaluateMoE(m *Model, c MoEConfig, source, target graph.Value) {
	defer m.Graph.Rerun()() // routing draws what it would in training
	at := m.Pass(nn.Pass{Name: "eval", SameNoise: true})
	defer at.Enter()()
	c.Dropout, c.Jitter, c.Smoothing = 0, 0, 0
	entropy, logits := (&moe{MoEConfig: c}).run(at, source, target)
	m.Evaluate(entropy, nn.Accuracy(logits, target, nn.CrossEntropyOptions{Padding: true}))
	_, best := ops.TopK(logits, 1)
	m.Output(best)
}

// normEps is added to the mean square that a norm divides by.
const normEps = 1e-6

// moe builds the computation of one loss.
type moe struct {
	MoEConfig
	balance []graph.Value // the layers' auxiliary losses, in training
	parts   int           // in which the embedding is read, see nn.EmbeddingOptions
}

// embedding are the options of the embedding.
func (p *moe) embedding() nn.EmbeddingOptions {
	return nn.EmbeddingOptions{Name: "embedding", Parts: p.parts}
}

// run is the mean cross-entropy of a target's tokens, f32[], and the logits,
// f32[pairs length vocab].
func (p *moe) run(c *nn.Ctx, source, target graph.Value) (loss, logits graph.Value) {
	defer c.Enter()()
	padding, causal := ops.PaddingMask(source), ops.CausalMask(c.Graph(), p.Length)
	memory := p.stack(c.In("enc"), p.embed(c.In("source"), source),
		func(c *nn.Ctx, y graph.Value) graph.Value {
			return p.attend(c.In("att"), y, graph.Value{}, padding)
		})
	y := p.stack(c.In("dec"), p.embed(c.In("target"), p.shift(target)),
		func(c *nn.Ctx, y graph.Value) graph.Value {
			y = p.attend(c.In("att"), y, graph.Value{}, causal)
			return p.attend(c.In("cross"), y, memory, padding)
		})
	logits = p.logits(c.In("logits"), y)
	return nn.CrossEntropy(logits, target, nn.CrossEntropyOptions{Smoothing: p.Smoothing,
		Padding: true}), logits
}

// shift puts padding before every target and drops its last token: position i
// sees the tokens before i, and is to predict token i.
func (p *moe) shift(ids graph.Value) graph.Value {
	return ops.Pad(ops.Slice(ids, 1, 0, p.Length-1), 1, 1, 0)
}

// embed is the tokens' and the positions' representations, which source and target
// share.
func (p *moe) embed(c *nn.Ctx, ids graph.Value) graph.Value {
	defer c.Enter()()
	root := c.Share("")
	x := nn.Embedding(root, ids, p.Vocab, p.Width, p.embedding())
	return p.noisy(c, nn.Positions(root, x, p.Length,
		nn.EmbeddingOptions{Name: "positional", Table: nn.Normal(1)}))
}

// logits are products with the embedding, as if that were normal with deviation
// 1/√width.
func (p *moe) logits(c *nn.Ctx, x graph.Value) graph.Value {
	defer c.Enter()()
	x = ops.Scale(x, float32(1/math.Sqrt(float64(p.Width))))
	logits := nn.Unembedding(c.Share(""), x, p.Vocab, p.embedding())
	return ops.Jitter(logits, c.Seed(), p.Jitter, c.Noise(""))
}

// stack is the layers of the encoder or the decoder, which differ in what they
// attend to, and the norm of their output.
func (p *moe) stack(c *nn.Ctx, x graph.Value,
	attend func(*nn.Ctx, graph.Value) graph.Value) graph.Value {
	defer c.Enter()()
	for i := range p.Layers {
		layer := c.In(fmt.Sprint(i))
		x = p.residual(layer.In("moe"), attend(layer, x), p.mixture)
	}
	return p.noisy(c, p.norm(c, x))
}

// qkvo is how the weights of an attention start: logits have variance 1, though
// nothing is divided by the size of a head.
func (p *moe) qkvo() nn.Init {
	normal := func(deviation float64) graph.Init { return nn.Normal(deviation)(1, 1) }
	in := 1 / math.Sqrt(float64(p.Width))
	qk := normal(in / libm.Pow(float64(p.HeadWidth), 0.25))
	return nn.Exactly(graph.Init{Each: []graph.Init{qk, qk, normal(in),
		normal(in / math.Sqrt(float64(p.Heads)))}})
}

// attend is an attention sublayer of x to memory, or to x itself without one.
func (p *moe) attend(c *nn.Ctx, x, memory, mask graph.Value) graph.Value {
	return p.residual(c, x, func(c *nn.Ctx, y graph.Value) graph.Value {
		return nn.Attention(c, y, nn.AttentionOptions{Heads: p.Heads, HeadWidth: p.HeadWidth,
			Memory: memory, Mask: mask, Dropout: p.Dropout, Along: []int{2}, Packed: true,
			Unscaled: true, Weight: p.qkvo()})
	})
}

// mixture is the mixture of experts of x.
func (p *moe) mixture(c *nn.Ctx, x graph.Value) graph.Value {
	y, balance := nn.MixtureOfExperts(c, x, p.experts())
	p.balance = append(p.balance, balance)
	return y
}

// sum adds values of one type up.
func sum(vs []graph.Value) graph.Value {
	total := vs[0]
	for _, v := range vs[1:] {
		total = ops.Add(total, v)
	}
	return total
}

// residual is x + dropout(f(norm(x))).
func (p *moe) residual(c *nn.Ctx, x graph.Value,
	f func(*nn.Ctx, graph.Value) graph.Value) graph.Value {
	defer c.Enter()()
	return ops.Add(x, p.noisy(c, f(c, p.norm(c, x))))
}

func (p *moe) norm(c *nn.Ctx, x graph.Value) graph.Value {
	return nn.RMSNorm(c, x, nn.NormOptions{Eps: normEps, Name: "norm"})
}

// noisy is dropout that shares its noise among the positions of a text.
func (p *moe) noisy(c *nn.Ctx, x graph.Value) graph.Value {
	return nn.Dropout(c, x, p.Dropout, nn.DropoutOptions{Along: []int{1}})
}

package models

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
)

// DecodeMoE is the model of [MoE] as a decoder, see [DecodeTransformer]. Which experts
// a token has depends on nothing but the token: no expert is ever full, and the second
// best of a token is always asked. In training and its evaluations both depend on what
// else is in the batch, and on chance; a translation must not.
func DecodeMoE(c MoEConfig, texts, beams int) (*Decoder, error) {
	c.Pairs = texts
	c.Sparse, c.SecondThreshold, c.Jitter = true, 0, 0
	if err := checkDecoding(texts, beams); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	g := graph.New()
	w := newWeights(g, c)
	r := newRooms(g, texts, beams, c.Length, c.Layers, c.Heads, c.HeadWidth)
	// what is random draws nothing, and so needs no seed
	seed := g.Constant("no-seed", tensor.FromI32([]int32{0, 0}, 2))
	reading := &moe{part: part{g: g, seed: seed, fine: c.Fine}, MoEConfig: c, w: w}
	writing := &moe{part: part{g: g, seed: seed, fine: c.Fine}, MoEConfig: c, w: w}
	writing.Pairs, writing.Length = r.rows(), 1
	d := &Decoder{Graph: g, Batch: r.rows(), Length: c.Length, Vocab: c.Vocab,
		Encode: reading.encoding(r), Steps: []DecodeStep{writing.step(r)}}
	return d.done("moe", c.Size)
}

// encoding reads sources, and keeps the keys and values that the decoder's layers
// attend to.
func (p *moe) encoding(r *rooms) *Encoding {
	source := p.g.Input("source", tensor.Of(graph.I32, r.sentences, r.length))
	padding := ops.PaddingMask(source)
	memory := p.stack("enc", p.w.enc, p.embed("source", source),
		func(y graph.Value, l layer) graph.Value {
			return p.attend("att", l.att, y, graph.Value{}, padding)
		})
	defer p.scope("dec")()
	return r.encoding(source, padding, func(layer int) [2]graph.Value {
		w := ops.Unstack(p.w.dec.layers[layer].cross.qkvo)
		return [2]graph.Value{headsOf(ops.MatMul(memory, w[1]), p.Heads),
			headsOf(ops.MatMul(memory, w[2]), p.Heads)}
	})
}

// step takes a token of every row.
func (p *moe) step(r *rooms) DecodeStep {
	s := r.stepping(p.Length)
	x := ops.Add(ops.Embedding(p.w.embedding, s.Tokens),
		ops.SliceAt(p.w.positional, s.Position, 0, p.Length))
	at := 0
	x = p.stack("dec", p.w.dec, x, func(y graph.Value, l layer) graph.Value {
		y = p.recall(s, at, l.att, y)
		y = p.consult(s, at, l.cross, y)
		at++
		return y
	})
	s.Logits = p.logits(s.last(x))
	return s.DecodeStep
}

// recall is the attention sublayer of new tokens to all so far.
func (p *moe) recall(s *stepping, layer int, w attention, x graph.Value) graph.Value {
	return p.residual("att", x, w.norm, func(y graph.Value) graph.Value {
		w := ops.Unstack(w.qkvo)
		k, v := s.past(layer, headsOf(ops.MatMul(y, w[1]), p.Heads),
			headsOf(ops.MatMul(y, w[2]), p.Heads))
		y = attended(headsOf(ops.MatMul(y, w[0]), p.Heads), k, v, s.mask)
		return ops.MatMulT(y, w[3], false, true)
	})
}

// consult is the attention sublayer of new tokens to the source.
func (p *moe) consult(s *stepping, layer int, w attention, x graph.Value) graph.Value {
	return p.residual("cross", x, w.norm, func(y graph.Value) graph.Value {
		w := ops.Unstack(w.qkvo)
		q := headsOf(ops.MatMul(s.bySource(y), w[0]), p.Heads)
		y = attended(q, s.cross[layer][0], s.cross[layer][1], s.source)
		return s.byRow(ops.MatMulT(y, w[3], false, true))
	})
}

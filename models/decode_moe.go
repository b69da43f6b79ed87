package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// DecodeMoE is the model of [MoE] as a decoder, see [DecodeTransformer]. Which experts
// a token has depends on nothing but the token: no expert is ever full, and the second
// best of a token is always asked. In training and its evaluations both depend on what
// else is in the batch, and on chance; a translation must not.
func DecodeMoE(c MoEConfig, texts, beams int) (*Decoder, error) {
	return decodeMoE(c, texts, beams, partBytes)
}

func decodeMoE(c MoEConfig, texts, beams, partBytes int) (*Decoder, error) {
	c.Pairs = texts
	c.Sparse, c.SecondThreshold, c.Jitter = true, 0, 0
	if err := checkDecoding(texts, beams); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := newDecoder(c.Fine)
	r := newRooms(m.Graph, texts, beams, c.Length, c.Layers, c.Heads, c.HeadWidth)
	// what is random draws nothing, and so needs no seed
	m.Seed = m.Graph.Constant("no-seed", tensor.FromI32([]int32{0, 0}, 2))
	parts := partsOf(c.Vocab, c.Width, partBytes)
	reading, writing := &moe{MoEConfig: c, parts: parts}, &moe{MoEConfig: c, parts: parts}
	writing.Pairs, writing.Length = r.rows(), 1
	d := &Decoder{Graph: m.Graph, Batch: r.rows(), Length: c.Length, Vocab: c.Vocab,
		Encode: reading.encoding(m.Pass(nn.Pass{}), r),
		Steps:  []DecodeStep{writing.step(m.Pass(nn.Pass{}), r)}}
	return d.done("moe", c.Size)
}

// encoding reads sources, and keeps the keys and values that the decoder's layers
// attend to.
func (p *moe) encoding(c *nn.Ctx, r *rooms) *Encoding {
	source := c.Graph().Input("source", tensor.Of(graph.I32, r.sentences, r.length))
	padding := ops.PaddingMask(source)
	memory := p.stack(c.In("enc"), p.embed(c.In("source"), source),
		func(c *nn.Ctx, y graph.Value) graph.Value {
			return p.attend(c.In("att"), y, graph.Value{}, padding)
		})
	c = c.In("dec")
	defer c.Enter()()
	return r.encoding(source, padding, func(layer int) [2]graph.Value {
		w := p.unpacked(c.Of(fmt.Sprint(layer, "/cross")))
		return [2]graph.Value{headsOf(ops.MatMul(memory, w[1]), p.Heads),
			headsOf(ops.MatMul(memory, w[2]), p.Heads)}
	})
}

// unpacked are the weights of an attention's queries, keys, values and output.
func (p *moe) unpacked(c *nn.Ctx) []graph.Value {
	return ops.Unstack(c.Param("qkvo", p.qkvo(), 4, p.Width, p.Heads*p.HeadWidth))
}

// step takes a token of every row.
func (p *moe) step(c *nn.Ctx, r *rooms) DecodeStep {
	s := r.stepping(p.Length)
	root := c.Share("")
	positional := root.Param("positional", nn.Normal(1), r.length, p.Width)
	x := ops.Add(nn.Embedding(root, s.Tokens, p.Vocab, p.Width, p.embedding()),
		ops.SliceAt(positional, s.Position, 0, p.Length))
	at := 0
	x = p.stack(c.In("dec"), x, func(c *nn.Ctx, y graph.Value) graph.Value {
		y = p.recall(c.In("att"), s, at, y)
		y = p.consult(c.In("cross"), s, at, y)
		at++
		return y
	})
	s.Logits = p.logits(c.In("logits"), s.last(x))
	return s.DecodeStep
}

// recall is the attention sublayer of new tokens to all so far.
func (p *moe) recall(c *nn.Ctx, s *stepping, layer int, x graph.Value) graph.Value {
	return p.residual(c, x, func(c *nn.Ctx, y graph.Value) graph.Value {
		w := p.unpacked(c)
		k, v := s.past(layer, headsOf(ops.MatMul(y, w[1]), p.Heads),
			headsOf(ops.MatMul(y, w[2]), p.Heads))
		y = attended(headsOf(ops.MatMul(y, w[0]), p.Heads), k, v, s.mask)
		return ops.MatMulT(y, w[3], false, true)
	})
}

// consult is the attention sublayer of new tokens to the source.
func (p *moe) consult(c *nn.Ctx, s *stepping, layer int, x graph.Value) graph.Value {
	return p.residual(c, x, func(c *nn.Ctx, y graph.Value) graph.Value {
		w := p.unpacked(c)
		q := headsOf(ops.MatMul(s.bySource(y), w[0]), p.Heads)
		y = attended(q, s.cross[layer][0], s.cross[layer][1], s.source)
		return s.byRow(ops.MatMulT(y, w[3], false, true))
	})
}

package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
)

// DecodeTransformer is the model of [Transformer] as a decoder of so many texts at
// once, with so many beams for each: it reads sources i32[texts length] once, and has
// texts·beams rows, those of a text beside each other. A step takes one token, of
// which the first is padding, as before every target in training. Parents must be of
// the same text. Dropout and smoothing do not act.
func DecodeTransformer(c TransformerConfig, texts, beams int) (*Decoder, error) {
	c.Pairs = texts
	if err := checkDecoding(texts, beams); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	g := graph.New()
	p := &transformer{part: part{g: g, fine: c.Fine}, TransformerConfig: c,
		w: newTransformerWeights(g, c), positions: sinusoids(g, c.Length, c.Width)}
	r := newRooms(g, texts, beams, c.Length, c.Layers, c.Heads, c.Width/c.Heads)
	d := &Decoder{Graph: g, Batch: r.rows(), Length: c.Length, Vocab: c.Vocab,
		Encode: p.encoding(r), Steps: []DecodeStep{p.step(r, 1)}}
	return d.done("transformer", c.Size)
}

// done is the decoder, or what is wrong with its graph.
func (d *Decoder) done(name, size string) (*Decoder, error) {
	if err := d.Graph.Err(); err != nil {
		return nil, fmt.Errorf("decoder of %s of size %s: %w", name, size, err)
	}
	return d, nil
}

// encoding reads sources, and keeps the keys and values that the decoder's layers
// attend to.
func (p *transformer) encoding(r *rooms) *Encoding {
	source := p.g.Input("source", tensor.Of(graph.I32, r.sentences, r.length))
	padding := ops.PaddingMask(source)
	memory := p.encode(source, padding)
	defer p.scope("dec")()
	return r.encoding(source, padding, func(layer int) [2]graph.Value {
		w := p.w.dec.layers[layer].cross
		return [2]graph.Value{headsOf(ops.MatMul(memory, w.k), p.Heads),
			headsOf(ops.MatMul(memory, w.v), p.Heads)}
	})
}

// step takes so many tokens of every row.
func (p *transformer) step(r *rooms, tokens int) DecodeStep {
	defer p.scope("dec")()
	s := r.stepping(tokens)
	x := ops.Scale(ops.Embedding(p.w.embedding, s.Tokens), float32(math.Sqrt(float64(p.Width))))
	x = ops.Add(x, ops.SliceAt(p.positions, s.Position, 0, tokens))
	for i, l := range p.w.dec.layers {
		leave := p.scope(fmt.Sprint(i))
		x = p.recall(s, i, l.att, x)
		x = p.consult(s, i, l.cross, x)
		x = p.feedForward(l.ff, x)
		leave()
	}
	x = p.norm(p.w.dec.norm, s.last(x))
	s.Logits = ops.MatMulT(x, p.w.embedding, false, true)
	return s.DecodeStep
}

// queries are those of a sublayer for its normalised input.
func (p *transformer) queries(w transformerAttention, y graph.Value) graph.Value {
	scale := 1 / math.Sqrt(float64(p.Width/p.Heads))
	return headsOf(ops.Scale(ops.MatMul(y, w.q), float32(scale)), p.Heads)
}

// recall is the attention sublayer of new tokens to all so far.
func (p *transformer) recall(s *stepping, layer int, w transformerAttention,
	x graph.Value) graph.Value {
	defer p.scope("att")()
	y := p.norm(w.norm, x)
	k, v := s.past(layer, headsOf(ops.MatMul(y, w.k), p.Heads),
		headsOf(ops.MatMul(y, w.v), p.Heads))
	return ops.Add(x, ops.MatMul(attended(p.queries(w, y), k, v, s.mask), w.o))
}

// consult is the attention sublayer of new tokens to the source.
func (p *transformer) consult(s *stepping, layer int, w transformerAttention,
	x graph.Value) graph.Value {
	defer p.scope("cross")()
	y := s.bySource(p.norm(w.norm, x))
	room := s.cross[layer]
	y = attended(p.queries(w, y), room[0], room[1], s.source)
	return ops.Add(x, s.byRow(ops.MatMul(y, w.o)))
}

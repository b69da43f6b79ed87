package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// DecodeTransformer is the model of [Transformer] as a decoder of so many texts at
// once, with so many beams for each: it reads sources i32[texts length] once, and has
// texts·beams rows, those of a text beside each other. A step takes one token, of
// which the first is padding, as before every target in training. Parents must be of
// the same text. Dropout and smoothing do not act.
func DecodeTransformer(c TransformerConfig, texts, beams int) (*Decoder, error) {
	return decodeTransformer(c, texts, beams, partBytes)
}

func decodeTransformer(c TransformerConfig, texts, beams, partBytes int) (*Decoder, error) {
	c.Pairs = texts
	if err := checkDecoding(texts, beams); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := newDecoder(c.Fine)
	p := &transformer{TransformerConfig: c, positions: nn.Sinusoids(m.Graph, c.Length, c.Width),
		parts: partsOf(c.Vocab, c.Width, partBytes)}
	r := newRooms(m.Graph, texts, beams, c.Length, c.Layers, c.Heads, c.Width/c.Heads)
	d := &Decoder{Graph: m.Graph, Batch: r.rows(), Length: c.Length, Vocab: c.Vocab,
		Encode: p.encoding(m.Pass(nn.Pass{}), r),
		Steps:  []DecodeStep{p.step(m.Pass(nn.Pass{}), r, 1)}}
	return d.done("transformer", c.Size)
}

// partsOf is in how many parts a table of embeddings is read, so that no more than so
// many bytes of it are on the device at a time.
func partsOf(vocab, width, bytes int) int { return (4*vocab*width + bytes - 1) / bytes }

// newDecoder is what a decoder is built in.
func newDecoder(fine bool) *nn.Model {
	m := nn.NewModel()
	m.Unnamed, m.Fine = true, fine
	return m
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
func (p *transformer) encoding(c *nn.Ctx, r *rooms) *Encoding {
	source := c.Graph().Input("source", tensor.Of(graph.I32, r.sentences, r.length))
	padding := ops.PaddingMask(source)
	memory := p.encode(c.In("enc"), source, padding)
	c = c.In("dec")
	defer c.Enter()()
	return r.encoding(source, padding, func(layer int) [2]graph.Value {
		cross := c.Of(fmt.Sprint(layer, "/cross"))
		return [2]graph.Value{p.project(cross, "k", memory), p.project(cross, "v", memory)}
	})
}

// project is a projection to heads.
func (p *transformer) project(c *nn.Ctx, name string, x graph.Value) graph.Value {
	return headsOf(p.linear(c, name, x), p.Heads)
}

func (p *transformer) linear(c *nn.Ctx, name string, x graph.Value) graph.Value {
	return nn.Linear(c, x, p.Width, nn.LinearOptions{WeightName: name, NoBias: true})
}

// step takes so many tokens of every row.
func (p *transformer) step(c *nn.Ctx, r *rooms, tokens int) DecodeStep {
	c = c.In("dec")
	defer c.Enter()()
	s := r.stepping(tokens)
	x := ops.Scale(p.table(c, s.Tokens), float32(math.Sqrt(float64(p.Width))))
	x = ops.Add(x, ops.SliceAt(p.positions, s.Position, 0, tokens))
	for i := range p.Layers {
		layer := c.In(fmt.Sprint(i))
		x = p.recall(layer.In("att"), s, i, x)
		x = p.consult(layer.In("cross"), s, i, x)
		x = p.feedForward(layer.In("ff"), x)
	}
	x = p.norm(c, s.last(x))
	s.Logits = nn.Unembedding(c.Share(""), x, p.Vocab, p.shared())
	return s.DecodeStep
}

// queries are those of a sublayer for its normalised input.
func (p *transformer) queries(c *nn.Ctx, y graph.Value) graph.Value {
	scale := 1 / math.Sqrt(float64(p.Width/p.Heads))
	return headsOf(ops.Scale(p.linear(c, "q", y), float32(scale)), p.Heads)
}

// recall is the attention sublayer of new tokens to all so far.
func (p *transformer) recall(c *nn.Ctx, s *stepping, layer int, x graph.Value) graph.Value {
	defer c.Enter()()
	y := p.norm(c, x)
	k, v := s.past(layer, p.project(c, "k", y), p.project(c, "v", y))
	return ops.Add(x, p.linear(c, "o", attended(p.queries(c, y), k, v, s.mask)))
}

// consult is the attention sublayer of new tokens to the source.
func (p *transformer) consult(c *nn.Ctx, s *stepping, layer int, x graph.Value) graph.Value {
	defer c.Enter()()
	y := s.bySource(p.norm(c, x))
	room := s.cross[layer]
	y = attended(p.queries(c, y), room[0], room[1], s.source)
	return ops.Add(x, s.byRow(p.linear(c, "o", y)))
}

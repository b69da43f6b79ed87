package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// gpt builds the computation of one pass. In decoding it goes on from what is before.
type gpt struct {
	GPTConfig
	first graph.Value // i32[]: the position of the first token
	rates graph.Value // of rotary positions that are scaled
	// positions are those of tokens within documents, i32[texts length], of which there are
	// several in a text; none: there is one, from first on.
	positions graph.Value
	documents graph.Value // i32[texts length]: the numbers of these documents, from 1
	past      *gptPast    // nil: the first token is the text's first
}

// losses is the cross-entropy of each position, f32[texts length], and the logits,
// f32[texts length vocab], of which there are none in training where they would be large.
func (p *gpt) losses(c *nn.Ctx, tokens, labels graph.Value) (losses, logits graph.Value) {
	if !tokens.Valid() || !labels.Valid() {
		return // the graph's error says why
	}
	g := c.Graph()
	leave := c.Enter()
	p.first, p.rates = g.Constant("first", tensor.FromI32([]int32{0})), p.scaled(g)
	if p.positions.Valid() {
		begins := ops.Cast(ops.Equal(p.positions, p.first), graph.I32)
		p.documents = ops.CumSum(begins, 1)
	}
	leave()
	x := p.hidden(c, tokens)
	if c.Training() && p.largeLogits() {
		return p.linearLosses(c, x, labels), logits
	}
	logits = p.head(c, x)
	defer c.Enter()()
	return ops.CrossEntropy(logits, labels, 0), logits
}

// largeLogits reports whether logits are larger than what a loss without them needs.
func (p *gpt) largeLogits() bool {
	most := lossRows
	if p.Training.Adapters == nil && p.Stored(p.headName(), p.Width) == "" || p.trainsStored() {
		most += p.Width
	}
	return p.Texts*p.Length > most
}

// lossRows are the rows whose logits a loss without logits has at a time, at most. Where the matrix
// is trained it needs that and its gradient beside them, of a row for every element of the width;
// of fewer rows than those, logits are the smaller.
const lossRows = 512

// linearLosses is the cross-entropy of each position by representations and the matrix.
func (p *gpt) linearLosses(c *nn.Ctx, x, labels graph.Value) graph.Value {
	x, c = p.last(c, x)
	defer c.Enter()()
	table := p.table(c)
	if table.format != "" {
		return ops.LinearCrossEntropyPacked(x, table.Value, labels, table.format, 0)
	}
	return ops.LinearCrossEntropy(x, table.Value, labels, true, 0)
}

// hidden is the representation of every token before the last norm, f32[texts n
// width], of ids i32[texts n].
func (p *gpt) hidden(c *nn.Ctx, ids graph.Value) graph.Value {
	x := p.embed(c, ids)
	for i := range p.Layers {
		x = p.block(c.In(p.path("layers")).In(fmt.Sprint(i)), i, x)
	}
	return x
}

// path is what public checkpoints call a part of the model.
func (p *gpt) path(part string) string {
	names := map[string]string{"embedding": "wte", "layers": "h", "norm": "ln_f",
		"before": "ln_1", "between": "ln_2", "attention": "attn", "hidden": "mlp"}
	if p.Blocks == LlamaBlocks {
		names = map[string]string{"embedding": "model/embed_tokens", "layers": "model/layers",
			"norm": "model/norm", "before": "input_layernorm",
			"between": "post_attention_layernorm", "attention": "self_attn", "hidden": "mlp"}
	}
	return names[part]
}

// embed looks ids up, with learned positions in GPT2Blocks.
func (p *gpt) embed(c *nn.Ctx, ids graph.Value) graph.Value {
	x := p.lookUp(c.In(p.path("embedding")), ids)
	if p.Blocks == GPT2Blocks {
		at := c.In("wpe")
		defer at.Enter()()
		table := at.Table("weight", nn.Normal(0.02), tensor.Of(graph.F32, p.Positions, p.Width))
		switch {
		case p.past != nil:
			table = ops.SliceAt(table, p.first, 0, ids.Type().Size(1))
		case p.positions.Valid():
			table = ops.Embedding(table, p.positions)
		default:
			table = ops.Slice(table, 0, 0, p.Length)
		}
		x = ops.Add(x, table)
	}
	return nn.Dropout(c, x, p.Dropout, nn.DropoutOptions{Name: "embedding"})
}

// table is the embedding, or the matrix of the logits if that is another.
type table struct {
	graph.Value
	format string // "" if it is f32
	width  int
}

func (p *gpt) table(c *nn.Ctx) table {
	w, format := nn.Packed(c, "weight", p.Vocab, p.Width)
	if format == "" {
		w = c.Table("weight", nn.Normal(0.02), tensor.Of(graph.F32, p.Vocab, p.Width))
	}
	return table{w, format, p.Width}
}

// rows are some rows of the table, which is itself if those are all.
func (t table) rows(first, end int) graph.Value {
	if !t.Valid() || first == 0 && end == t.Type().Size(0) {
		return t.Value
	}
	return ops.Slice(t.Value, 0, first, end)
}

// lookUp takes rows by ids, those from first to end alone: others are zeros.
func (t table) lookUp(ids graph.Value, first, end int) graph.Value {
	switch rows := t.rows(first, end); {
	case t.format != "":
		return ops.EmbeddingPacked(rows, ids, first, t.width, t.format)
	case rows == t.Value:
		return ops.Embedding(rows, ids)
	default:
		return ops.EmbeddingPart(rows, ids, first)
	}
}

// products are those with the rows from first to end.
func (t table) products(x graph.Value, first, end int) graph.Value {
	if t.format != "" {
		return ops.MatMulPacked(x, t.rows(first, end), t.format)
	}
	return ops.MatMulT(x, t.rows(first, end), false, true)
}

// parts are the rows at which a table is taken apart: in decoding those of large
// vocabularies, so that a model can be larger than the device in every respect.
func (p *gpt) parts() []int {
	n := 1
	if p.past != nil {
		n = (4*p.Vocab*p.Width + p.past.partBytes - 1) / p.past.partBytes
	}
	var rows []int
	for i := range n + 1 {
		rows = append(rows, i*p.Vocab/n)
	}
	return rows
}

func (p *gpt) lookUp(c *nn.Ctx, ids graph.Value) graph.Value {
	defer c.Enter()()
	table := p.table(c)
	rows := p.parts()
	var all []graph.Value
	for i := range len(rows) - 1 {
		all = append(all, table.lookUp(ids, rows[i], rows[i+1]))
	}
	return sum(all)
}

// last is representations after the last norm, and where the matrix of the logits is.
func (p *gpt) last(c *nn.Ctx, x graph.Value) (graph.Value, *nn.Ctx) {
	x = p.norm(c.In(p.path("norm")), x)
	if p.Untied {
		return x, c.In("lm_head")
	}
	return x, c.Share(p.path("embedding"))
}

// headName is the name of the matrix of the logits.
func (p *gpt) headName() string {
	if p.Untied {
		return "lm_head/weight"
	}
	return p.EmbeddingName()
}

// head is the logits of representations, f32[… width] → f32[… vocab].
func (p *gpt) head(c *nn.Ctx, x graph.Value) graph.Value {
	x, c = p.last(c, x)
	defer c.Enter()()
	table := p.table(c)
	rows := p.parts()
	var all []graph.Value
	for i := range len(rows) - 1 {
		all = append(all, table.products(x, rows[i], rows[i+1]))
	}
	if len(all) == 1 {
		return all[0]
	}
	return ops.Concat(-1, all...)
}

func (p *gpt) norm(c *nn.Ctx, x graph.Value) graph.Value {
	if p.Blocks == LlamaBlocks {
		return nn.RMSNorm(c, x, nn.NormOptions{Eps: p.Eps, Name: "weight"})
	}
	return nn.LayerNorm(c, x, nn.NormOptions{Eps: p.Eps})
}

// block is one layer.
func (p *gpt) block(c *nn.Ctx, layer int, x graph.Value) graph.Value {
	attention := c.In(p.path("attention"))
	y := p.norm(c.In(p.path("before")), x)
	y = p.attend(attention, layer, y)
	x = p.residual(attention, x, y)
	y = p.norm(c.In(p.path("between")), x)
	if e := p.experts(); e != nil {
		at := c.In(e.place)
		return p.residual(at, x, p.mixture(at, y, e))
	}
	hidden := c.In(p.path("hidden"))
	return p.residual(hidden, x, p.feedForward(hidden, y))
}

// residual adds a branch.
func (p *gpt) residual(c *nn.Ctx, x, y graph.Value) graph.Value {
	y = nn.Dropout(c, y, p.Dropout, nn.DropoutOptions{Name: "residual"})
	defer c.Enter()()
	return ops.Add(x, y)
}

// linear is a projection: with a bias and [in out] in GPT2Blocks, [out in] in
// LlamaBlocks, where a bias is said. Those that end a residual branch start smaller, so that the
// sum of all branches does not.
func (p *gpt) linear(c *nn.Ctx, x graph.Value, out int, last, bias bool) graph.Value {
	deviation := 0.02
	if last {
		deviation /= math.Sqrt(2 * float64(p.Layers))
	}
	return nn.Linear(c, x, out, nn.LinearOptions{Weight: nn.Normal(deviation), NoBias: !bias,
		Rows: p.Blocks == LlamaBlocks})
}

func (p *gpt) feedForward(c *nn.Ctx, x graph.Value) graph.Value {
	if p.Blocks == GPT2Blocks {
		y := p.linear(c.In("c_fc"), x, p.Hidden, false, true)
		leave := c.Enter()
		y = ops.GeluTanh(y)
		leave()
		return p.linear(c.In("c_proj"), y, p.Width, true, true)
	}
	gate := p.linear(c.In("gate_proj"), x, p.Hidden, false, p.HiddenBias)
	up := p.linear(c.In("up_proj"), x, p.Hidden, false, p.HiddenBias)
	leave := c.Enter()
	y := ops.Mul(ops.Silu(gate), up)
	leave()
	return p.linear(c.In("down_proj"), y, p.Width, true, p.HiddenBias)
}

// attend is the attention sublayer of x, f32[texts n width].
func (p *gpt) attend(c *nn.Ctx, layer int, x graph.Value) graph.Value {
	q, k, v := p.project(c, x)
	if !q.Valid() || !k.Valid() || !v.Valid() {
		return graph.Value{}
	}
	leave := c.Enter()
	q, k, v = p.split(q, p.Heads), p.split(k, p.KeyHeads), p.split(v, p.KeyHeads)
	leave()
	if p.HeadNorms {
		q, k = p.norm(c.In("q_norm"), q), p.norm(c.In("k_norm"), k)
	}
	leave = c.Enter()
	q, k = p.turn(q), p.turn(k)
	o := p.attention(c, layer)
	if p.past != nil {
		k, v = p.past.recall(layer, k, v, p.first)
		q, o.HeadsFirst, o.Position = headsFirst(q), true, p.first
	}
	y := ops.Attention(q, k, v, o)
	if o.HeadsFirst {
		y = headsFirst(y)
	}
	y = ops.ReshapeSizes(y, x.Type().Size(0), x.Type().Size(1), p.Heads*p.size())
	leave()
	if p.Blocks == GPT2Blocks {
		return p.linear(c.In("c_proj"), y, p.Width, true, true)
	}
	return p.linear(c.In("o_proj"), y, p.Width, true, p.OutputBias)
}

// attention is what a layer's is like.
func (p *gpt) attention(c *nn.Ctx, layer int) ops.AttentionOptions {
	o := ops.AttentionOptions{Causal: true, Documents: p.documents}
	if t := p.Rotary.temper(); t != 1 {
		o.Scale = float32(t / math.Sqrt(float64(p.size())))
	}
	if layer >= p.WindowFrom {
		o.Window = p.Window
	}
	if c.Training() && p.Dropout != 0 {
		o.Dropout, o.Seed, o.Name = p.Dropout, c.Seed(), c.Noise("weights")
	}
	return o
}

// project is queries, keys and values, f32[texts n heads·size].
func (p *gpt) project(c *nn.Ctx, x graph.Value) (q, k, v graph.Value) {
	if p.Blocks == GPT2Blocks {
		all := p.linear(c.In("c_attn"), x, 3*p.Width, false, true)
		if !all.Valid() {
			return
		}
		defer c.Enter()()
		part := func(i int) graph.Value { return ops.Slice(all, 2, i*p.Width, (i+1)*p.Width) }
		return part(0), part(1), part(2)
	}
	part := func(name string, heads int) graph.Value {
		return p.linear(c.In(name), x, heads*p.size(), false, p.QueryBias)
	}
	return part("q_proj", p.Heads), part("k_proj", p.KeyHeads), part("v_proj", p.KeyHeads)
}

// split takes [texts n heads·size] apart into [texts n heads size].
func (p *gpt) split(x graph.Value, heads int) graph.Value {
	t := x.Type()
	return ops.ReshapeSizes(x, t.Size(0), t.Size(1), heads, p.size())
}

// headsFirst changes [texts n heads size] to [texts heads n size], or back.
func headsFirst(x graph.Value) graph.Value { return ops.Transpose(x, 0, 2, 1, 3) }

package nn

import (
	"iter"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// LinearOptions are those of [Linear].
type LinearOptions struct {
	NoBias bool
	Weight Init // nil means [Glorot]
	Bias   Init // nil means zeros
	// Names of weight and bias; "" means "weight" and "bias".
	WeightName, BiasName string
	Axis                 string // the name of the axis that is made, if it is to have one
	// Rows has the weight as f32[out in], a row for each output, as other libraries keep it.
	Rows bool
}

// Linear is x·weight + bias: x f32[… in] → f32[… out], with weight f32[in out] and
// bias f32[out]. If the model has [Adapters] for it, theirs is added.
func Linear(c *Ctx, x graph.Value, out int, options ...LinearOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !rank("linear", x, 1) {
		return graph.Value{}
	}
	if out < 1 {
		c.Graph().Fail(errorf("linear with %d outputs: want 1 or more", out))
		return graph.Value{}
	}
	defer c.Enter()()
	in := x.Type().Shape[x.Type().Rank()-1]
	axis := c.Dim(o.Axis, out)
	shape := x.Type().Shape
	if len(shape) == 1 {
		x = ops.ReshapeSizes(x, 1, in.Size)
	}
	x = adapt(c, x, weigh(c, x, in, axis, o), in.Size, out)
	if len(shape) == 1 || o.NoBias && axis.Name != "" {
		x = c.shaped(x, append(slices.Clone(shape[:len(shape)-1]), axis))
	}
	if o.NoBias {
		return x
	}
	bias := c.ParamOf(either(o.BiasName, "bias"), o.Bias,
		graph.Type{DType: graph.F32, Shape: []graph.Dim{axis}})
	return ops.Add(x, bias)
}

// weigh is the product with a layer's weight.
func weigh(c *Ctx, x graph.Value, in, out graph.Dim, o LinearOptions) graph.Value {
	t := graph.Type{DType: graph.F32, Shape: []graph.Dim{in, out}}
	name := either(o.WeightName, "weight")
	if o.Rows {
		if w, format := Packed(c, name, out.Size, in.Size); format != "" {
			return ops.MatMulPacked(x, w, format)
		}
		slices.Reverse(t.Shape)
	}
	w := c.ParamOf(name, o.Weight.or(Glorot), t)
	return ops.MatMulT(x, w, false, o.Rows)
}

// shaped gives the axes of x their names, and is x itself in a model without any. It is
// a view, which nothing that follows is fused through: layers leave names that a
// product has lost to the sum that follows, whose other operand has them.
func (c *Ctx) shaped(x graph.Value, shape []graph.Dim) graph.Value {
	if !x.Valid() || c.model.Unnamed && x.Type().Rank() == len(shape) {
		return x
	}
	shape = c.distinct(graph.Type{Shape: shape}).Shape
	return ops.Reshape(x, shape...)
}

// EmbeddingOptions are those of [Embedding].
type EmbeddingOptions struct {
	Table Init   // nil means normal, of deviation 1
	Name  string // of the table; "" means "table"
	Axis  string // the name of the axis that is made, if it is to have one
	// Parts is in how many parts the table is read; 0 is whole. Inference with a table
	// that is larger than the device needs some; training would add up a gradient a part.
	Parts int
}

// Embedding looks up a row for every id: ids i32[…] in [0, rows) → f32[… width],
// with table f32[rows width]. An id outside the table is an error of the step.
func Embedding(c *Ctx, ids graph.Value, rows, width int, options ...EmbeddingOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !ids.Valid() {
		return graph.Value{}
	}
	if rows < 1 || width < 1 {
		c.Graph().Fail(errorf("embedding of %d rows of width %d: want 1 or more", rows, width))
		return graph.Value{}
	}
	defer c.Enter()()
	table := c.table(rows, width, o)
	if o.Parts < 2 || !table.Valid() {
		return ops.Embedding(table, ids)
	}
	var sum graph.Value
	for first, part := range parts(table, o.Parts) {
		x := ops.EmbeddingPart(part, ids, first)
		if sum.Valid() {
			x = ops.Add(sum, x)
		}
		sum = x
	}
	return sum
}

// parts are some rows of a table each, about equally many, with the number of their
// first.
func parts(table graph.Value, n int) iter.Seq2[int, graph.Value] {
	return func(yield func(int, graph.Value) bool) {
		rows := table.Type().Size(0)
		n = min(n, rows)
		for i := range n {
			first, end := i*rows/n, (i+1)*rows/n
			if !yield(first, ops.Slice(table, 0, first, end)) {
				return
			}
		}
	}
}

// table is the parameter of an embedding.
func (c *Ctx) table(rows, width int, o EmbeddingOptions) graph.Value {
	return c.Table(either(o.Name, "table"), o.Table.or(Normal(1)), graph.Type{DType: graph.F32,
		Shape: []graph.Dim{c.Dim("vocabulary", rows), c.Dim(o.Axis, width)}})
}

// Unembedding is the products with all rows of an embedding's table: x f32[…
// width] → logits f32[… rows]. With a context that shares the embedding's scope the
// two have one table.
func Unembedding(c *Ctx, x graph.Value, rows int, options ...EmbeddingOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !rank("unembedding", x, 2) {
		return graph.Value{}
	}
	defer c.Enter()()
	shape := append(slices.Clone(x.Type().Shape[:x.Type().Rank()-1]), c.Dim("vocabulary", rows))
	table := c.table(rows, x.Type().Size(-1), o)
	if o.Parts < 2 || !table.Valid() {
		return c.shaped(ops.MatMulT(x, table, false, true), shape)
	}
	var all []graph.Value
	for _, part := range parts(table, o.Parts) {
		all = append(all, ops.MatMulT(x, part, false, true))
	}
	return c.shaped(ops.Concat(-1, all...), shape)
}

// rank demands so many axes or more of a layer's operand, and says so.
func rank(layer string, x graph.Value, least int) bool {
	if !x.Valid() {
		return false // the graph's error says why
	}
	if have := x.Type().Rank(); have < least {
		x.Graph().Fail(errorf("%s of %s, which is %s: want %d axes or more", layer, x, x.Type(),
			least))
		return false
	}
	return true
}

// exact demands so many axes of a layer's operand, and says so.
func exact(layer string, x graph.Value, want int, what string) bool {
	if x.Valid() && x.Type().Rank() != want {
		x.Graph().Fail(errorf("%s of %s, which is %s: want %d axes, %s", layer, x, x.Type(), want,
			what))
		return false
	}
	return x.Valid()
}

// either is a name, or another if it is "".
func either(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

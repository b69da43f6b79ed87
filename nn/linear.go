package nn

import (
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
}

// Linear is x·weight + bias: x f32[… in] → f32[… out], with weight f32[in out] and
// bias f32[out].
func Linear(c *Ctx, x graph.Value, out int, options ...LinearOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !rank("linear", x, 1) {
		return graph.Value{}
	}
	defer c.Enter()()
	in := x.Type().Shape[x.Type().Rank()-1]
	axis := c.Dim(o.Axis, out)
	w := c.ParamOf(either(o.WeightName, "weight"), o.Weight.or(Glorot),
		graph.Type{DType: graph.F32, Shape: []graph.Dim{in, axis}})
	row := x.Type().Rank() == 1
	if row {
		x = ops.ReshapeSizes(x, 1, in.Size)
	}
	x = ops.MatMul(x, w)
	if row {
		x = ops.Reshape(x, axis)
	}
	if o.NoBias {
		return c.named(x, axis)
	}
	bias := c.ParamOf(either(o.BiasName, "bias"), o.Bias,
		graph.Type{DType: graph.F32, Shape: []graph.Dim{axis}})
	return ops.Add(x, bias)
}

// named gives the last axis of x the name of an axis, which takes no operation if
// it has it, or if another axis does.
func (c *Ctx) named(x graph.Value, axis graph.Dim) graph.Value {
	if !x.Valid() || axis.Name == "" {
		return x
	}
	shape := append([]graph.Dim{}, x.Type().Shape...)
	for _, d := range shape {
		if d.Name == axis.Name {
			return x
		}
	}
	shape[len(shape)-1].Name = axis.Name
	return ops.Reshape(x, shape...)
}

// EmbeddingOptions are those of [Embedding].
type EmbeddingOptions struct {
	Table Init   // nil means normal, of deviation 1
	Name  string // of the table; "" means "table"
	Axis  string // the name of the axis that is made, if it is to have one
}

// Embedding looks up a row for every id: ids i32[…] in [0, rows) → f32[… width],
// with table f32[rows width]. An id outside the table is an error of the step.
func Embedding(c *Ctx, ids graph.Value, rows, width int, options ...EmbeddingOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !ids.Valid() {
		return graph.Value{}
	}
	defer c.Enter()()
	return ops.Embedding(c.table(rows, width, o), ids)
}

// table is the parameter of an embedding.
func (c *Ctx) table(rows, width int, o EmbeddingOptions) graph.Value {
	return c.ParamOf(either(o.Name, "table"), o.Table.or(Normal(1)), graph.Type{DType: graph.F32,
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
	logits := ops.MatMulT(x, c.table(rows, x.Type().Size(-1), o), false, true)
	return c.named(logits, c.Dim("vocabulary", rows))
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

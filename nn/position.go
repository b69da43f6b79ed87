package nn

import (
	"math"
	"strconv"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/libm"
)

// once makes a value that all layers of a pass have in common, outside their
// scopes, when the first of them asks for it.
func (c *Ctx) once(key string, build func() graph.Value) graph.Value {
	if v, ok := c.pass.common[key]; ok {
		return v
	}
	scope := ""
	if c.pass.Name != "" {
		scope = c.pass.Name + "/"
	}
	defer c.Graph().Within(scope)()
	v := build()
	c.pass.common[key] = v
	return v
}

func itoa(n int) string { return strconv.Itoa(n) }

// Sinusoids are the positions' representations, f32[length width]: sines in the
// first half, cosines in the second, of wave lengths from 2π to 20,000π (Vaswani et
// al. 2017, as Tensor2Tensor has them). The width is even. Add them to embeddings.
func Sinusoids(g *graph.Graph, length, width int) graph.Value {
	if length < 1 || width < 2 || width%2 != 0 {
		g.Fail(errorf("%d positions of width %d: want 1 or more, and an even number", length,
			width))
		return graph.Value{}
	}
	x := tensor.New(tensor.Of(graph.F32, length, width))
	half := width / 2
	for i := range half {
		rate := libm.Pow(1e4, -float64(i)/math.Max(1, float64(half-1)))
		for position := range length {
			row := x.F32()[position*width:]
			row[i] = float32(libm.Sin(float64(position) * rate))
			row[half+i] = float32(libm.Cos(float64(position) * rate))
		}
	}
	return g.Constant("positions", x)
}

// Positions adds a learned vector for each position: x f32[batch length width], with
// table f32[positions width], of which the first length rows are used. Positions is
// length if it is 0.
func Positions(c *Ctx, x graph.Value, positions int, options ...EmbeddingOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !exact("positions", x, 3, "batch, length and width") {
		return graph.Value{}
	}
	length := x.Type().Size(1)
	if positions == 0 {
		positions = length
	}
	if positions < length {
		c.Graph().Fail(errorf("%d positions of %s, which is %s", positions, x, x.Type()))
		return graph.Value{}
	}
	defer c.Enter()()
	table := c.Table(either(o.Name, "table"), o.Table.or(Normal(0.02)), graph.Type{
		DType: graph.F32, Shape: []graph.Dim{{Size: positions}, c.like(x.Type().Shape[2])}})
	if positions > length {
		table = ops.Slice(table, 0, 0, length)
	}
	return ops.Add(x, table)
}

// Rotary turns pairs of elements by angles that grow with the position: see
// [ops.Rotary]. x is f32[… length size]; its rows are at positions 0, 1, ….
func Rotary(c *Ctx, x graph.Value, r ops.Rotation) graph.Value {
	if !x.Valid() {
		return x
	}
	start := c.once("start", func() graph.Value {
		return c.Graph().Constant("start", tensor.FromI32([]int32{0}))
	})
	defer c.Enter()()
	return ops.Rotary(x, start, r)
}

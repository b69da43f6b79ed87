package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
)

// TestBadAttributes: every attribute that is out of range is an error of the
// graph that names it, and never a panic.
func TestBadAttributes(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	type values struct{ x, scale, ids, scalar graph.Value } // f32[4 6], f32[6], i32[4], f32[]
	nine := make([]int, 9)
	for i := range nine {
		nine[i] = 1
	}
	for _, c := range []struct {
		want  string
		build func(g *graph.Graph, v values)
	}{
		{"operand 1 is i32[4]", func(_ *graph.Graph, v values) { ops.Add(v.x, v.ids) }},
		{"do not broadcast", func(g *graph.Graph, v values) {
			ops.Add(v.x,
				g.Input("y", tensor.Of(graph.F32, 4)))
		}},
		{"filled value of type", func(g *graph.Graph, _ values) {
			ops.Ones(g,
				tensor.Of(graph.I32, 2))
		}},
		{"9 axes are more than 8", func(g *graph.Graph, _ values) {
			ops.Zeros(g,
				tensor.Of(graph.F32, nine...))
		}},
		{"has size -1", func(g *graph.Graph, _ values) {
			ops.Full(g, tensor.Of(graph.F32, -1),
				1)
		}},
		{"sum over axis 2", func(_ *graph.Graph, v values) { ops.Sum(v.x, 2) }},
		{"sum over axis -3", func(_ *graph.Graph, v values) { ops.Mean(v.x, -3) }},
		{"does not broadcast to", func(_ *graph.Graph, v values) { ops.BroadcastTo(v.x, 6) }},
		{"has size 0", func(_ *graph.Graph, v values) { ops.BroadcastTo(v.x, 0, 6) }},
		{"f32[5 5] has 25", func(_ *graph.Graph, v values) { ops.ReshapeSizes(v.x, 5, 5) }},
		{"is too large", func(_ *graph.Graph, v values) {
			ops.ReshapeSizes(v.x, math.MaxInt,
				math.MaxInt)
		}},
		{"split into 0 parts", func(_ *graph.Graph, v values) { ops.Split(v.x, 0) }},
		{"split into -2 parts", func(_ *graph.Graph, v values) { ops.Split(v.x, -2) }},
		{"split into 3 parts", func(_ *graph.Graph, v values) { ops.Split(v.x, 3) }},
		{"split into 1099511627776", func(_ *graph.Graph, v values) { ops.Split(v.x, 1<<40) }},
		{"f32[] cannot be split", func(_ *graph.Graph, v values) { ops.Unstack(v.scalar) }},
		{"differ in more than axis", func(_ *graph.Graph, v values) { ops.Stack(v.x, v.scale) }},
		{"f32[4 6] has no axis", func(_ *graph.Graph, v values) { ops.Concat(2, v.x, v.x) }},
		{"no elements 0 to 6 along axis 1", func(_ *graph.Graph, v values) {
			ops.Slice(v.x, 1, 0,
				7)
		}},
		{"no elements -1 to 1 along axis 0", func(_ *graph.Graph, v values) {
			ops.Slice(v.x, 0, -1,
				2)
		}},
		{"no elements 2 to 1 along", func(_ *graph.Graph, v values) { ops.Slice(v.x, 0, 2, 2) }},
		{"along axis -1", func(_ *graph.Graph, v values) { ops.Slice(v.x, 5, 0, 1) }},
		{"padded by -1 and 0", func(_ *graph.Graph, v values) { ops.Pad(v.x, 0, -1, 0) }},
		{"padded by 0 and 9223", func(_ *graph.Graph, v values) {
			ops.Pad(v.x, 0, 0,
				math.MaxInt)
		}},
		{"order of 1 axes", func(_ *graph.Graph, v values) { ops.Transpose(v.x, 0) }},
		{"order of 9 axes", func(_ *graph.Graph, v values) { ops.Transpose(v.x, nine...) }},
		{"[0 2] is not an order", func(_ *graph.Graph, v values) { ops.Transpose(v.x, 0, 2) }},
		{"[1 1] is not an order", func(_ *graph.Graph, v values) { ops.Transpose(v.x, 1, 1) }},
		{"want rows", func(_ *graph.Graph, v values) { ops.Softmax(v.scalar) }},
		{"epsilon is -1", func(_ *graph.Graph, v values) { ops.RMSNorm(v.x, v.scale, -1) }},
		{"epsilon is NaN", func(_ *graph.Graph, v values) { ops.RMSNorm(v.x, v.scale, nan) }},
		{"epsilon is +Inf", func(_ *graph.Graph, v values) {
			ops.LayerNorm(v.x, v.scale, v.scale,
				inf)
		}},
		{"operand 1 is f32[4 6]", func(_ *graph.Graph, v values) { ops.RMSNorm(v.x, v.x, 1) }},
		{"the table is f32[6]", func(_ *graph.Graph, v values) { ops.Embedding(v.scale, v.ids) }},
		{"does not convert to dtype(99)", func(_ *graph.Graph, v values) { ops.Cast(v.x, 99) }},
		{"does not convert to inv", func(_ *graph.Graph, v values) { ops.Cast(v.x, 0) }},
		{"depth is 0", func(_ *graph.Graph, v values) { ops.OneHot(v.ids, 0) }},
		{"is too large", func(_ *graph.Graph, v values) { ops.OneHot(v.ids, math.MaxInt) }},
		{"operand 0 is f32[6]", func(_ *graph.Graph, v values) { ops.NotZero(v.scale) }},
		{"smoothing is 1,", func(_ *graph.Graph, v values) { ops.CrossEntropy(v.x, v.ids, 1) }},
		{"smoothing is -0.1", func(_ *graph.Graph, v values) {
			ops.CrossEntropy(v.x, v.ids,
				-0.1)
		}},
		{"smoothing is NaN", func(_ *graph.Graph, v values) { ops.CrossEntropy(v.x, v.ids, nan) }},
		{"single class", func(g *graph.Graph, v values) {
			ops.CrossEntropy(g.Input("y",
				tensor.Of(graph.F32, 4, 1)), v.ids, 0.1)
		}},
		{"do not match labels", func(_ *graph.Graph, v values) { ops.Correct(v.scale, v.ids) }},
		{"inner dimensions differ", func(_ *graph.Graph, v values) { ops.MatMul(v.x, v.x) }},
	} {
		t.Run(c.want, func(t *testing.T) {
			g := graph.New()
			f := func(name string, sizes ...int) graph.Value {
				return g.Input(name, tensor.Of(graph.F32, sizes...))
			}
			c.build(g, values{f("x", 4, 6), f("scale", 6), g.Input("ids", tensor.Of(graph.I32, 4)),
				f("scalar")})
			if g.Err() == nil {
				t.Fatal("accepted")
			}
			if msg := g.Err().Error(); !strings.Contains(msg, c.want) {
				t.Errorf("error is %q", msg)
			}
		})
	}
}

// TestNoValueIsPassedOn: an operation on no value gives no value, whatever its
// attributes.
func TestNoValueIsPassedOn(t *testing.T) {
	var none graph.Value
	for i, v := range []graph.Value{
		ops.Add(none, none), ops.Relu(none), ops.Scale(none, 2), ops.Sum(none), ops.SumKeep(none,
			1), ops.Mean(none, 0),
		ops.BroadcastTo(none, 3), ops.ReshapeSizes(none, 3), ops.Slice(none, 1, 0,
			2), ops.Slice(none, 0, 0, 2), ops.Pad(none, 1, 1, 1),
		ops.Stack(none, none), ops.Concat(0, none), ops.Concat(0), ops.Transpose(none, 1,
			0), ops.Softmax(none), ops.LogSoftmax(none),
		ops.RMSNorm(none, none, 1), ops.LayerNorm(none, none, none, 1), ops.Embedding(none,
			none), ops.Cast(none, graph.F32),
		ops.OneHot(none, 2), ops.NotZero(none), ops.CrossEntropy(none, none, 0), ops.Correct(none,
			none), ops.MatMul(none, none),
	} {
		if v.Valid() {
			t.Errorf("operation %d gives a value", i)
		}
	}
	if parts := ops.Split(none, 3); len(parts) != 3 || parts[0].Valid() {
		t.Errorf("split gives %v", parts)
	}
	if parts := ops.Unstack(none); len(parts) != 0 {
		t.Errorf("unstack gives %v", parts)
	}
}

// TestNamesOfAxes: an axis keeps its name through an operation that keeps it.
func TestNamesOfAxes(t *testing.T) {
	g := graph.New()
	input := func(name, typ string) graph.Value {
		parsed, err := tensor.ParseType(typ)
		if err != nil {
			t.Fatal(err)
		}
		return g.Input(name, parsed)
	}
	x := input("x", "f32[batch:4 length:6]")
	ids := input("ids", "i32[batch:4]")
	for _, c := range []struct {
		got  graph.Value
		want string
	}{
		{ops.Relu(x), "f32[batch:4 length:6]"},
		{ops.Add(x, input("row", "f32[6]")), "f32[batch:4 length:6]"},
		{ops.Add(input("rows", "f32[4 6]"), x), "f32[batch:4 length:6]"},
		{ops.BroadcastTo(x, 2, 4, 6), "f32[2 batch:4 length:6]"},
		{ops.Sum(x, 0), "f32[length:6]"},
		{ops.SumKeep(x, 1), "f32[batch:4 1]"},
		{ops.Transpose(x, 1, 0), "f32[length:6 batch:4]"},
		{ops.Slice(x, 1, 0, 3), "f32[batch:4 3]"},
		{ops.Pad(x, 0, 1, 1), "f32[6 length:6]"},
		{ops.Concat(1, x, x), "f32[batch:4 12]"},
		{ops.Split(x, 2)[0], "f32[batch:2 length:6]"},
		{ops.Unstack(x)[0], "f32[length:6]"},
		{ops.Stack(x, x), "f32[2 batch:4 length:6]"},
		{ops.Softmax(x), "f32[batch:4 length:6]"},
		{ops.Cast(ids, graph.F32), "f32[batch:4]"},
		{ops.OneHot(ids, 3), "f32[batch:4 3]"},
		{ops.Embedding(input("table", "f32[vocab:3 model:5]"), ids), "f32[batch:4 model:5]"},
		{ops.Embedding(input("odd", "f32[vocab:3 batch:5]"), ids), "f32[batch:4 5]"},
		{ops.CrossEntropy(x, ids, 0), "f32[batch:4]"},
	} {
		if got := c.got.Type().String(); got != c.want {
			t.Errorf("%s is %s, want %s", c.got, got, c.want)
		}
	}
	if g.Err() != nil {
		t.Error(g.Err())
	}
}

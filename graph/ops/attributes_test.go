package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
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
				tensor.Of(tensor.Invalid, 2))
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
		{"do not broadcast", func(_ *graph.Graph, v values) { ops.BroadcastTo(v.x, 0, 6) }},
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
		{"no elements 3 to 1 along", func(_ *graph.Graph, v values) { ops.Slice(v.x, 0, 3, 2) }},
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

// TestBadElementaryAttributes is the same of what moves, compares and reduces elements.
func TestBadElementaryAttributes(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	// f32[4 6], f32[6], i32[4], u8[4 6], i32[]
	type values struct{ x, y, ids, mask, at graph.Value }
	for _, c := range []struct {
		want  string
		build func(v values)
	}{
		{"f32[4 6] is compared with i32[4]: convert", func(v values) { ops.Equal(v.x, v.ids) }},
		{"f32[4 6] and f32[4] do not broadcast", func(v values) {
			ops.Less(v.x, ops.Slice(v.y, 0, 0, 4))
		}},
		{"operand 0 is f32[4 6], want bool", func(v values) { ops.And(v.x, v.mask) }},
		{"operand 0 is i32[4], want bool", func(v values) { ops.Not(v.ids) }},
		{"the condition is f32[4 6]", func(v values) { ops.Where(v.x, v.x, v.x) }},
		{"a choice of f32[4 6] and i32[4]", func(v values) { ops.Where(v.mask, v.x, v.ids) }},
		{"do not broadcast", func(v values) { ops.Where(v.mask, ops.Slice(v.y, 0, 0, 5), v.x) }},
		{"operand 0 is i32[4], want f32, bf16, f16, f64: convert it with Cast",
			func(v values) { ops.Sin(v.ids) }},
		{"clipped to 2 at least and 1 at most", func(v values) { ops.Clip(v.x, 2, 1) }},
		{"clipped to NaN at least", func(v values) { ops.Clip(v.x, nan, 1) }},
		{"the exponent is NaN", func(v values) { ops.PowScalar(v.x, nan) }},
		{"the exponent is +Inf", func(v values) { ops.PowScalar(v.x, inf) }},
		{"reduction over axis 2: f32[4 6] has none such", func(v values) { ops.Max(v.x, 2) }},
		{"reduction over axis -3", func(v values) { ops.LogSumExp(v.x, 0, -3) }},
		{"arg-max", func(v values) { ops.ArgMax(v.x, 2) }},
		{"f32[4 6] has no axis -1", func(v values) { ops.CumSum(v.x, 5) }},
		{"operand is u8[4 6], want f32 or f64", func(v values) { ops.CumSum(v.mask, 0) }},
		{"no elements -1 to 1, by 1, along axis 0", func(v values) {
			ops.SliceStep(v.x, 0, -1, 2, 1)
		}},
		{"no elements 0 to 3, by 0, along axis 1", func(v values) {
			ops.SliceStep(v.x, 1, 0, 4, 0)
		}},
		{"no elements 9 to -3, by 1", func(v values) { ops.SliceStep(v.x, -1, 9, -2, 1) }},
		{"f32[4 6] has no axis 2 to reverse", func(v values) { ops.Reverse(v.x, 2) }},
		{"repeated 0 times along axis 1", func(v values) { ops.Repeat(v.x, 1, 0) }},
		{"repeated 2 times along axis 2", func(v values) { ops.Repeat(v.x, 2, 2) }},
		{"tiled -1 times along axis 1", func(v values) { ops.Tile(v.x, 2, -1) }},
		{"cannot have a new axis 4", func(v values) { ops.ExpandDims(v.x, 4) }},
		{"cannot have a new axis 0", func(v values) { ops.ExpandDims(v.x, 0, 0) }},
		{"f32[4 6] has no axis 0 of size 1", func(v values) { ops.Squeeze(v.x, 0) }},
		{"has size -1", func(v values) { ops.ReshapeSizes(v.x, -1, -1) }},
		{"has size -1", func(v values) { ops.ReshapeSizes(v.x, 5, -1) }},
		{"has size -2", func(v values) { ops.ReshapeSizes(v.x, -2, -1) }},
		{"triangle from diagonal 0 of f32[6]", func(v values) { ops.Tril(v.y, 0) }},
		{"indices are f32[6], want i32: convert", func(v values) { ops.Take(v.x, v.y, 0) }},
		{"f32[4 6] has no axis -1", func(v values) { ops.Take(v.x, v.ids, 2) }},
		{"elements i32[4] of f32[4 6] along axis 0", func(v values) { ops.Gather(v.x, v.ids, 0) }},
		{"elements i32[1 4] of f32[1 3]", func(v values) {
			ops.Gather(ops.ReshapeSizes(ops.Slice(v.y, 0, 0, 3), 1, 3),
				ops.ReshapeSizes(v.ids, 1, 4), 0)
		}},
		{"f32[4 6] has no axis 3", func(v values) { ops.ScatterAdd(v.x, v.ids, v.y, 3) }},
		{"elements f32[6] where indices i32[4] say", func(v values) {
			ops.ScatterAdd(v.y, v.ids, v.y, 0)
		}},
		{"batch axes of f32[2 2 6] and f32[3 6 2] differ", func(v values) {
			ops.MatMul(ops.ReshapeSizes(v.x, 2, 2, 6), ops.ReshapeSizes(ops.Tile(v.y, 6), 3, 6, 2))
		}},
		{"the first 5 elements of rows", func(v values) {
			ops.Rotary(v.x, v.at, ops.Rotation{Width: 5})
		}},
		{"the base of the rates is NaN", func(v values) {
			ops.Rotary(v.x, v.at, ops.Rotation{Base: nan})
		}},
		{"positions are i32[3], want i32[], i32[4]", func(v values) {
			ops.Rotary(v.x, ops.Slice(v.ids, 0, 0, 3), ops.Rotation{})
		}},
		{"want i32: convert it with Cast", func(v values) { ops.CausalMaskAt(v.y, 1, 2) }},
		{"i32[] or i32[batch]", func(v values) {
			ops.CausalMaskAt(ops.ReshapeSizes(v.ids, 2, 2), 1, 2)
		}},
		{"5 rows where f32[4 6] has 4", func(v values) {
			ops.PutAt(v.x, ops.Tile(ops.Slice(v.x, 0, 0, 1), 5, 1), v.at, 0)
		}},
		{"f32[4 6] has no axis -1", func(v values) { ops.PutAt(v.x, v.x, v.at, 2) }},
		{"want i32[], or one for each element", func(v values) { ops.SliceAt(v.x, v.ids, 0, 1) }},
		{"has no 7 rows along axis 1", func(v values) { ops.SliceAt(v.x, v.at, 1, 7) }},
		{"f32[4 6] of axis 0 of f32[6], want i32", func(v values) { ops.Reorder(v.y, v.x) }},
		{"weights of 6 classes are f32[4 6]", func(v values) {
			ops.CrossEntropyIgnoring(v.x, v.ids, v.x, 0, 0)
		}},
		{"label 1099511627776 is ignored", func(v values) {
			ops.CrossEntropyIgnoring(v.x, v.ids, graph.Value{}, 1<<40, 0)
		}},
		{"do not match labels", func(v values) {
			ops.CrossEntropyIgnoring(v.y, v.ids, graph.Value{}, 0, 0)
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			g := graph.New()
			c.build(values{g.Input("x", tensor.Of(graph.F32, 4, 6)),
				g.Input("y", tensor.Of(graph.F32, 6)), g.Input("ids", tensor.Of(graph.I32, 4)),
				g.Input("mask", tensor.Of(graph.U8, 4, 6)), g.Input("at", tensor.Of(graph.I32))})
			if g.Err() == nil {
				t.Fatal("accepted")
			}
			if msg := g.Err().Error(); !strings.Contains(msg, c.want) ||
				!strings.Contains(msg, "attributes_test.go:") {
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
		ops.Equal(none, none), ops.Not(none), ops.Where(none, none, none), ops.Clip(none, 0, 1),
		ops.Pow(none, none), ops.PowScalar(none, 2), ops.Silu(none), ops.Max(none),
		ops.Min(none, 1),
		ops.Any(none), ops.Prod(none, 0), ops.LogSumExp(none, 0), ops.ArgMax(none, 0),
		ops.CumSum(none, 0), ops.SliceStep(none, 0, 0, 2, 2), ops.Reverse(none),
		ops.Repeat(none, 0, 2), ops.Tile(none, 2), ops.ExpandDims(none, 0), ops.Squeeze(none),
		ops.Tril(none, 0), ops.Take(none, none, 0), ops.Gather(none, none, 0),
		ops.ScatterAdd(none, none, none, 0), ops.Rotary(none, none, ops.Rotation{}),
		ops.CausalMaskAt(none, 1, 2), ops.PutAt(none, none, none, 0), ops.Reorder(none, none),
		ops.SliceAt(none, none, 0, 1), ops.StopGradient(none), ops.MatMulT(none, none, true, true),
	} {
		if v.Valid() {
			t.Errorf("operation %d gives a value", i)
		}
	}
	if ops.WriteAt(none, none, none, 0) != nil ||
		ops.ReorderWriteAt(none, none, none, none, 0) != nil {
		t.Error("an update of nothing is a node")
	}
	losses, counts := ops.CrossEntropyIgnoring(none, none, none, 0, 0)
	if losses.Valid() || counts.Valid() {
		t.Error("the cross-entropy of nothing is a value")
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
		{ops.Silu(x), "f32[batch:4 length:6]"},
		{ops.Less(x, input("limit", "f32[6]")), "bool[batch:4 length:6]"},
		{ops.Where(input("mask", "u8[batch:4 1]"), x, input("nothing", "f32[]")),
			"f32[batch:4 length:6]"},
		{ops.Max(x, 0), "f32[length:6]"},
		{ops.ArgMax(x, -1), "i32[batch:4]"},
		{ops.LogSumExp(x, 0), "f32[length:6]"},
		{ops.CumSum(x, 0), "f32[batch:4 length:6]"},
		{ops.SliceStep(x, 1, 0, 6, 2), "f32[batch:4 3]"},
		{ops.Repeat(x, 1, 2), "f32[batch:4 12]"},
		{ops.Tile(x, 2, 1), "f32[8 length:6]"},
		{ops.ExpandDims(x, 1), "f32[batch:4 1 length:6]"},
		{ops.Squeeze(ops.SumKeep(x, 0)), "f32[length:6]"},
		{ops.Take(x, input("some", "i32[some:3]"), 1), "f32[batch:4 some:3]"},
		{ops.Take(x, input("few", "i32[batch:3]"), 1), "f32[batch:4 3]"},
		{ops.Rotary(x, input("start", "i32[]"), ops.Rotation{}), "f32[batch:4 length:6]"},
		{ops.MatMul(input("q", "f32[batch:4 heads:3 2 length:6]"),
			input("k", "f32[batch:4 1 length:6 5]")), "f32[batch:4 heads:3 2 5]"},
	} {
		if got := c.got.Type().String(); got != c.want {
			t.Errorf("%s is %s, want %s", c.got, got, c.want)
		}
	}
	if g.Err() != nil {
		t.Error(g.Err())
	}
}

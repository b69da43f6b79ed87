package ops_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// scatterWays are what a loop does with an element and an update.
var scatterWays = map[ops.ScatterHow]func(a, b float64) float64{
	ops.ScatterSet:     func(_, b float64) float64 { return b },
	ops.ScatterSum:     func(a, b float64) float64 { return a + b },
	ops.ScatterProduct: func(a, b float64) float64 { return a * b },
	ops.ScatterMax:     math.Max,
	ops.ScatterMin:     math.Min,
}

// drawIndices are indices below n.
func drawIndices(t *rapid.T, n int, sizes ...int) tensor.View {
	v := tensor.New(tensor.Of(graph.I32, sizes...))
	for i := range v.I32() {
		v.I32()[i] = int32(rapid.IntRange(0, n-1).Draw(t, "index"))
	}
	return v
}

// drawHow is one of the ways.
func drawHow(t *rapid.T) ops.ScatterHow {
	return ops.ScatterHow(rapid.IntRange(0, len(scatterWays)-1).Draw(t, "how"))
}

// TestScatter compares with a loop over the updates.
func TestScatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t, rapid.IntRange(1, 4).Draw(t, "rank"))
		axis, how := rapid.IntRange(0, len(sizes)-1).Draw(t, "axis"), drawHow(t)
		part := slices.Clone(sizes)
		for i := range part {
			part[i] = rapid.IntRange(1, sizes[i]).Draw(t, "part")
		}
		part[axis] = rapid.IntRange(1, 7).Draw(t, "updates")
		x, updates := random(sizes...), random(part...)
		indices := drawIndices(t, sizes[axis], part...)
		want := wide(x)
		for i, k := range indices.I32() {
			to := indexOf(updates.Type, i)
			to[axis] = int(k)
			p := at(x.Type, to)
			want[p] = scatterWays[how](want[p], float64(updates.F32()[i]))
		}
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.Scatter(in[0], in[1], in[2], axis-rapid.SampledFrom([]int{0,
				len(sizes)}).Draw(t, "counted"), how)
		}, x, indices, updates)
		expect(t, how.String(), got, func(i int) float64 { return want[i] })
	})
}

// wide is a value's elements in float64.
func wide(x tensor.View) []float64 {
	out := make([]float64, x.Type.Elems())
	for i, v := range x.F32() {
		out[i] = float64(v)
	}
	return out
}

// drawVectors are a value, and vectors of indices into k axes after a batch.
func drawVectors(t *rapid.T) (x, indices tensor.View, batch, k int) {
	sizes := drawSizes(t, rapid.IntRange(1, 4).Draw(t, "rank"))
	batch = rapid.IntRange(0, len(sizes)-1).Draw(t, "batch")
	k = rapid.IntRange(1, len(sizes)-batch).Draw(t, "k")
	rows := append(slices.Clone(sizes[:batch]), drawSizes(t, rapid.IntRange(0, 2).Draw(t, "of"))...)
	indices = drawIndices(t, 5, append(rows, k)...)
	for i := range indices.I32() {
		indices.I32()[i] %= int32(sizes[batch+i%k])
	}
	return random(sizes...), indices, batch, k
}

// places are those of the elements that vectors name, in order.
func places(x, indices tensor.View, batch, k int) (list []int) {
	sizes := x.Type.Sizes()
	inner := tensor.Of(graph.F32, sizes[batch+k:]...).Elems()
	parts := tensor.Of(graph.F32, sizes[:batch]...).Elems()
	rows := len(indices.I32()) / k
	for r := range rows {
		p := r / (rows / parts)
		for j := range k {
			p = p*sizes[batch+j] + int(indices.I32()[r*k+j])
		}
		for c := range inner {
			list = append(list, p*inner+c)
		}
	}
	return list
}

// TestGatherND compares with a loop, and its gradient with another.
func TestGatherND(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, indices, batch, k := drawVectors(t)
		from := places(x, indices, batch, k)
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.GatherND(in[0], in[1], batch)
		}, x, indices)
		expect(t, "gathered", got, func(i int) float64 { return float64(x.F32()[from[i]]) })
		counts := make([]float64, x.Type.Elems())
		for _, p := range from {
			counts[p]++
		}
		grad := compute(t, func(in []graph.Value) graph.Value {
			return autodiff.Grad(ops.Sum(ops.GatherND(in[0], in[1], batch)), in[0])[0]
		}, x, indices)
		expect(t, "gradient", grad, func(i int) float64 { return counts[i] })
	})
}

// TestScatterND compares with a loop over the updates.
func TestScatterND(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, indices, batch, k := drawVectors(t)
		if batch > 0 {
			t.Skip("ScatterND has no batch")
		}
		how, to := drawHow(t), places(x, indices, 0, k)
		sizes := indices.Type.Sizes()
		updates := random(append(sizes[:len(sizes)-1], x.Type.Sizes()[k:]...)...)
		want := wide(x)
		for i, p := range to {
			want[p] = scatterWays[how](want[p], float64(updates.F32()[i]))
		}
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.ScatterND(in[0], in[1], in[2], how)
		}, x, indices, updates)
		expect(t, how.String(), got, func(i int) float64 { return want[i] })
	})
}

// TestScatterGradients: of updates of one place the last is the only one with a gradient when
// elements are set, equals share that of a largest, and a factor's is the product of the others.
func TestScatterGradients(t *testing.T) {
	x := tensor.FromF32([]float32{1, 2, 3}, 3)
	indices := tensor.New(tensor.Of(graph.I32, 4))
	copy(indices.I32(), []int32{0, 2, 0, 2})
	for _, c := range []struct {
		how     ops.ScatterHow
		updates []float32
		dx, du  []float64
	}{
		{ops.ScatterSet, []float32{5, 6, 7, 8}, []float64{0, 1, 0}, []float64{0, 0, 1, 1}},
		{ops.ScatterSum, []float32{5, 6, 7, 8}, []float64{1, 1, 1}, []float64{1, 1, 1, 1}},
		{ops.ScatterMax, []float32{1, 3, 0, 3}, []float64{0.5, 1, 1. / 3}, []float64{0.5, 1. / 3, 0,
			1. / 3}},
		{ops.ScatterMin, []float32{0, 4, 1, 2}, []float64{0, 1, 0}, []float64{1, 0, 0, 1}},
		{ops.ScatterProduct, []float32{0, 4, 5, 2}, []float64{0, 1, 8}, []float64{5, 6, 0, 12}},
		{ops.ScatterProduct, []float32{0, 4, 0, 2}, []float64{0, 1, 8}, []float64{0, 6, 0, 12}},
	} {
		for i, want := range [][]float64{c.dx, c.du} {
			got := compute(t, func(in []graph.Value) graph.Value {
				y := ops.Scatter(in[0], in[1], in[2], 0, c.how)
				return autodiff.Grad(ops.Sum(y), in[0], in[2])[i]
			}, x, indices, tensor.FromF32(c.updates, 4))
			expect(t, c.how.String(), got, func(i int) float64 { return want[i] })
		}
	}
}

// TestScatterNaN: what is not a number is not lost among the largest.
func TestScatterNaN(t *testing.T) {
	nan := float32(math.NaN())
	indices := tensor.New(tensor.Of(graph.I32, 3))
	for _, how := range []ops.ScatterHow{ops.ScatterMax, ops.ScatterMin} {
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.Scatter(in[0], in[1], in[2], 0, how)
		}, tensor.FromF32([]float32{1}, 1), indices, tensor.FromF32([]float32{2, nan, 3}, 3))
		if v := got.F32()[0]; v == v {
			t.Errorf("the %s of 1, 2, NaN and 3 is %g", how, v)
		}
	}
}

// TestScatterRejects: what does not fit is an error of the graph, and an index outside one of the
// data.
func TestScatterRejects(t *testing.T) {
	for want, build := range map[string]func(x, ids, whole graph.Value){
		"along axis -1": func(x, ids, _ graph.Value) {
			ops.Scatter(x, ids, x, 2, ops.ScatterSet)
		},
		"want i32": func(x, _, _ graph.Value) { ops.Scatter(x, x, x, 0, ops.ScatterSet) },
		"updates i32[2 3] of f32[2 3]": func(x, ids, _ graph.Value) {
			ops.Scatter(x, ids, ids, 0, ops.ScatterSet)
		},
		"the sum of elements of u8": func(_, ids, whole graph.Value) {
			ops.Scatter(whole, ids, whole, 0, ops.ScatterSum)
		},
		"unknown way to scatter 9": func(x, ids, _ graph.Value) { ops.Scatter(x, ids, x, 0, 9) },
		"updates f32[2 3] of f32[2 3] where": func(x, ids, _ graph.Value) {
			ops.ScatterND(x, ops.Slice(ids, 1, 0, 2), x, ops.ScatterSet)
		},
		"along the axes of f32[2 3] after 1": func(x, ids, _ graph.Value) {
			ops.GatherND(x, ids, 1)
		},
	} {
		g := graph.New()
		build(g.Input("x", tensor.Of(graph.F32, 2, 3)), g.Input("ids", tensor.Of(graph.I32, 2, 3)),
			g.Input("whole", tensor.Of(graph.U8, 2, 3)))
		if g.Err() == nil || !strings.Contains(g.Err().Error(), want) {
			t.Errorf("want %q, have %v", want, g.Err())
		}
	}
	g := graph.New()
	x, ids := g.Input("x", tensor.Of(graph.F32, 3)), g.Input("ids", tensor.Of(graph.I32, 1))
	bad := tensor.New(ids.Type())
	bad.I32()[0] = 3
	y := ops.GatherND(x, ids, 0)
	err := y.Node.Op.(graph.Checker).CheckData([]tensor.View{random(3), bad})
	if err == nil || !strings.Contains(err.Error(), "index 3 at position 0 is outside the 3") {
		t.Errorf("an index outside: %v", err)
	}
}

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

// TestPooling compares with loops over windows.
func TestPooling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pair := func(lo, hi int, what string) [2]int {
			draw := rapid.IntRange(lo, hi)
			return [2]int{draw.Draw(t, what), draw.Draw(t, what)}
		}
		w := ops.Window{Size: pair(1, 4, "size"), Stride: pair(1, 3, "stride")}
		for i := range w.Pad {
			w.Pad[i] = rapid.IntRange(0, w.Size[i%2]-1).Draw(t, "pad")
		}
		x := random(2, 3, rapid.IntRange(4, 9).Draw(t, "h"), rapid.IntRange(4, 9).Draw(t, "w"))
		window := func(y graph.Type, i int) (elements []float64) {
			index := indexOf(y, i)
			for r := range w.Size[0] {
				for c := range w.Size[1] {
					row, col := index[2]*w.Stride[0]-w.Pad[0]+r, index[3]*w.Stride[1]-w.Pad[1]+c
					if row >= 0 && row < x.Type.Size(2) && col >= 0 && col < x.Type.Size(3) {
						elements = append(elements, float64(x.F32()[at(x.Type,
							[]int{index[0], index[1], row, col})]))
					}
				}
			}
			return elements
		}
		most := compute(t, func(in []graph.Value) graph.Value { return ops.MaxPool2D(in[0], w) }, x)
		expect(t, "max", most, func(i int) float64 {
			m := math.Inf(-1)
			for _, v := range window(most.Type, i) {
				m = math.Max(m, v)
			}
			return m
		})
		mean := compute(t, func(in []graph.Value) graph.Value { return ops.AvgPool2D(in[0], w) }, x)
		expect(t, "mean", mean, func(i int) float64 {
			sum := 0.0
			elements := window(mean.Type, i)
			for _, v := range elements {
				sum += v
			}
			return sum / float64(len(elements))
		})
	})
}

// TestMaxPoolTies: the gradient goes to the first of equals alone, and NaN is not
// lost.
func TestMaxPoolTies(t *testing.T) {
	x := tensor.FromF32([]float32{1, 1, 1, 1, 0, 2, 2, -1}, 1, 2, 2, 2)
	d := compute(t, func(in []graph.Value) graph.Value {
		y := ops.MaxPool2D(in[0], ops.Window{Size: [2]int{2, 2}})
		return autodiff.Grad(ops.Sum(y), in[0])[0]
	}, x)
	expect(t, "gradient", d, func(i int) float64 { return []float64{1, 0, 0, 0, 0, 1, 0, 0}[i] })
	nan := float32(math.NaN())
	y := compute(t, func(in []graph.Value) graph.Value {
		return ops.MaxPool2D(in[0], ops.Window{Size: [2]int{1, 3}})
	}, tensor.FromF32([]float32{1, nan, 3}, 1, 1, 1, 3))
	if v := y.F32()[0]; v == v {
		t.Errorf("the largest of 1, NaN and 3 is %g", v)
	}
}

// TestLargestWindow: the last of 256 places is told apart.
func TestLargestWindow(t *testing.T) {
	for _, size := range [][2]int{{1, 256}, {256, 1}, {16, 16}} {
		x := tensor.New(tensor.Of(graph.F32, 1, 1, size[0], size[1]))
		x.F32()[255] = 1
		d := compute(t, func(in []graph.Value) graph.Value {
			return autodiff.Grad(ops.MaxPool2D(in[0], ops.Window{Size: size}), in[0])[0]
		}, x)
		expect(t, "gradient", d, func(i int) float64 { return float64(i / 255) })
	}
}

func TestGlobalMean(t *testing.T) {
	x := random(2, 3, 4, 5)
	got := compute(t, func(in []graph.Value) graph.Value { return ops.GlobalMean(in[0]) }, x)
	expect(t, "mean", got, func(i int) float64 {
		sum := 0.0
		for _, v := range x.F32()[i*20 : (i+1)*20] {
			sum += float64(v)
		}
		return sum / 20
	})
}

// TestDepthToSpace: the order of a block's elements, and that the two undo each
// other.
func TestDepthToSpace(t *testing.T) {
	x := random(2, 18, 2, 3) // 3×3 blocks of 2 channels
	y := compute(t, func(in []graph.Value) graph.Value { return ops.DepthToSpace(in[0], 3) }, x)
	if want := tensor.Of(graph.F32, 2, 2, 6, 9); !y.Type.Equal(want) {
		t.Fatalf("result is %s, want %s", y.Type, want)
	}
	expect(t, "depth to space", y, func(i int) float64 {
		k := indexOf(y.Type, i)
		from := []int{k[0], (k[2]%3*3+k[3]%3)*2 + k[1], k[2] / 3, k[3] / 3}
		return float64(x.F32()[at(x.Type, from)])
	})
	back := compute(t, func(in []graph.Value) graph.Value {
		return ops.SpaceToDepth(ops.DepthToSpace(in[0], 3), 3)
	}, x)
	expect(t, "and back", back, func(i int) float64 { return float64(x.F32()[i]) })
}

func TestResizeNearest(t *testing.T) {
	x := random(2, 3, 4, 5)
	got := compute(t, func(in []graph.Value) graph.Value { return ops.ResizeNearest(in[0], 3) }, x)
	expect(t, "nearest", got, func(i int) float64 {
		k := indexOf(got.Type, i)
		return float64(x.F32()[at(x.Type, []int{k[0], k[1], k[2] / 3, k[3] / 3})])
	})
}

// TestResizeBilinear compares with known values, and with interpolation of a
// plane, which is exact but at the border.
func TestResizeBilinear(t *testing.T) {
	x := tensor.FromF32([]float32{1, 2, 3, 4}, 1, 1, 2, 2)
	got := compute(t, func(in []graph.Value) graph.Value { return ops.ResizeBilinear(in[0], 4, 4) },
		x)
	want := []float64{1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75,
		4}
	expect(t, "2×2 to 4×4", got, func(i int) float64 { return want[i] })
	same := random(2, 3, 4, 5)
	got = compute(t, func(in []graph.Value) graph.Value { return ops.ResizeBilinear(in[0], 4, 5) },
		same)
	expect(t, "the same size", got, func(i int) float64 { return float64(same.F32()[i]) })
	const h, w, oh, ow = 7, 9, 12, 5
	plane := tensor.New(tensor.Of(graph.F32, 1, 1, h, w))
	for i := range plane.F32() {
		plane.F32()[i] = float32(2*(i/w) - 3*(i%w))
	}
	got = compute(t, func(in []graph.Value) graph.Value {
		return ops.ResizeBilinear(in[0], oh,
			ow)
	}, plane)
	clamp := func(i, n, m int) float64 {
		return min(max((float64(i)+0.5)*float64(m)/float64(n)-0.5, 0), float64(m-1))
	}
	expect(t, "plane", got, func(i int) float64 {
		return 2*clamp(i/ow, oh, h) - 3*clamp(i%ow, ow, w)
	})
}

func TestClippedRelu(t *testing.T) {
	x := tensor.FromF32([]float32{-1, 0, 0.5, 19.5, 20, 25}, 6)
	y := compute(t, func(in []graph.Value) graph.Value { return ops.ClippedRelu(in[0], 20) }, x)
	expect(t, "result", y, func(i int) float64 { return []float64{0, 0, 0.5, 19.5, 20, 20}[i] })
	d := compute(t, func(in []graph.Value) graph.Value {
		return autodiff.Grad(ops.Sum(ops.ClippedRelu(in[0], 20)), in[0])[0]
	}, x)
	expect(t, "gradient", d, func(i int) float64 { return []float64{0, 0, 1, 1, 0, 0}[i] })
}

// TestTopK: the first of equals is first, and NaN is the largest, as in PyTorch.
func TestTopK(t *testing.T) {
	x := tensor.FromF32([]float32{3, 7, 7, 1, 5, nan, 2, nan, 1, 4}, 2, 5)
	values := compute(t, func(in []graph.Value) graph.Value {
		v, _ := ops.TopK(in[0], 3)
		return v
	}, x)
	if want := []float32{7, 7, 5, nan, nan, 4}; !slices.EqualFunc(values.F32(), want, equalOrNaN) {
		t.Errorf("values are %v, want %v", values, want)
	}
	indices := compute(t, func(in []graph.Value) graph.Value {
		_, i := ops.TopK(in[0], 3)
		return ops.Cast(i, graph.F32)
	}, x)
	expect(t, "indices", indices, func(i int) float64 { return []float64{1, 2, 4, 0, 2, 4}[i] })
}

// TestBadImageAttributes: attributes that are out of range, and operands of the
// wrong form, are errors that say what is wrong.
func TestBadImageAttributes(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		want  string
		build func(x, v graph.Value)
	}{
		{"windows of [0 2]", func(x, _ graph.Value) {
			ops.MaxPool2D(x,
				ops.Window{Size: [2]int{0, 2}})
		}},
		{"[-1 1] apart", func(x, _ graph.Value) {
			ops.AvgPool2D(x, ops.Window{Size: [2]int{2, 2}, Stride: [2]int{-1, 1}})
		}},
		{"padding [2 0 0 0]", func(x, _ graph.Value) {
			ops.AvgPool2D(x, ops.Window{Size: [2]int{2, 2}, Pad: [4]int{2}})
		}},
		{"do not fit into", func(x, _ graph.Value) {
			ops.MaxPool2D(x,
				ops.Window{Size: [2]int{9, 1}})
		}},
		{"more than 256 elements", func(x, _ graph.Value) {
			ops.MaxPool2D(ops.ResizeNearest(x, 8), ops.Window{Size: [2]int{17, 17}})
		}},
		{"want four axes", func(_, v graph.Value) {
			ops.AvgPool2D(v,
				ops.Window{Size: [2]int{1, 1}})
		}},
		{"blocks of 3×3", func(x, _ graph.Value) { ops.DepthToSpace(x, 3) }},
		{"blocks of 0×0", func(x, _ graph.Value) { ops.SpaceToDepth(x, 0) }},
		{"do not fall into blocks", func(_, v graph.Value) { ops.SpaceToDepth(v, 1) }},
		{"is not images", func(x, _ graph.Value) { ops.ResizeNearest(x, 0) }},
		{"is not images", func(_, v graph.Value) { ops.ResizeNearest(v, 2) }},
		{"cannot be resized to 0×3", func(x, _ graph.Value) { ops.ResizeBilinear(x, 0, 3) }},
		{"want four axes", func(_, v graph.Value) { ops.ResizeBilinear(v, 2, 3) }},
		{"limit is 0", func(x, _ graph.Value) { ops.ClippedRelu(x, 0) }},
		{"limit is +Inf", func(x, _ graph.Value) { ops.ClippedRelu(x, inf) }},
		{"the 0 largest", func(x, _ graph.Value) { ops.TopK(x, 0) }},
		{"the 7 largest", func(x, _ graph.Value) { ops.TopK(x, 7) }},
		{"epsilon is -1", func(x, v graph.Value) { ops.BatchNorm(x, v, v, -1) }},
		{"want f32[4]", func(x, _ graph.Value) { ops.BatchNorm(x, x, x, 1) }},
		{"no axis 1 for channels", func(_, v graph.Value) { ops.BatchNorm(v, v, v, 1) }},
		{"no axis -1", func(x, v graph.Value) { ops.LayerNormOver(x, v, v, 4, 1) }},
		{"no such axis", func(x, v graph.Value) { ops.LayerNormComposed(x, v, v, 4, 1) }},
		{"epsilon is +Inf", func(x, v graph.Value) { ops.LayerNormOver(x, v, v, 1, inf) }},
		{"epsilon is -1", func(x, v graph.Value) { ops.LayerNormComposed(x, v, v, 1, -1) }},
		{"epsilon is -1", func(x, v graph.Value) { ops.BatchNormInference(x, v, v, v, v, -1) }},
		{"momentum 2 is outside", func(_, v graph.Value) { ops.RunningAverage(v, v, 2) }},
		{"forget bias is +Inf", func(x, v graph.Value) {
			ops.LSTMCell(ops.ReshapeSizes(x, 18, 8), ops.Slice(ops.ReshapeSizes(x, 18, 8), 1, 0, 2),
				inf)
		}},
	} {
		t.Run(c.want, func(t *testing.T) {
			g := graph.New()
			c.build(g.Input("x", tensor.Of(graph.F32, 1, 4, 6, 6)),
				g.Variable("v", tensor.Of(graph.F32, 4), graph.Init{}))
			if g.Err() == nil {
				t.Fatal("accepted")
			}
			if msg := g.Err().Error(); !strings.Contains(msg, c.want) {
				t.Errorf("error is %q", msg)
			}
		})
	}
}

// TestNoImageIsPassedOn: no value gives no value.
func TestNoImageIsPassedOn(t *testing.T) {
	var none graph.Value
	w := ops.Window{Size: [2]int{2, 2}}
	norm, _, _ := ops.BatchNorm(none, none, none, 1)
	h, _ := ops.LSTMCell(none, none, 1)
	y, _ := ops.LSTM(none, none, none, none, none, 1)
	top, _ := ops.TopK(none, 1)
	for i, v := range []graph.Value{
		norm, h, y, top, ops.BatchNormInference(none, none, none, none, none,
			1), ops.LayerNormOver(none, none, none, 1, 1),
		ops.LayerNormComposed(none, none, none, 1, 1), ops.MaxPool2D(none, w), ops.AvgPool2D(none,
			w), ops.GlobalMean(none),
		ops.DepthToSpace(none, 2), ops.SpaceToDepth(none, 2), ops.ResizeNearest(none,
			2), ops.ResizeBilinear(none, 2, 2),
		ops.ClippedRelu(none, 1), ops.CTCLoss(none, none, none, none),
	} {
		if v.Valid() {
			t.Errorf("operation %d gives a value", i)
		}
	}
}

package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// TestConvByHand: attributes reach the kernel in their order.
func TestConvByHand(t *testing.T) {
	x := tensor.FromF32([]float32{1, 2, 3, 4, 5, 6}, 1, 1, 2, 3)
	w := tensor.FromF32([]float32{1, 10}, 1, 1, 1, 2)
	for _, c := range []struct {
		conv ops.Conv
		want []float32
	}{
		{ops.Conv{}, []float32{21, 32, 54, 65}},
		{ops.Conv{Stride: [2]int{2, 1}}, []float32{21, 32}},
		{ops.Conv{Stride: [2]int{1, 2}}, []float32{21, 54}},
		{ops.Conv{Dilation: [2]int{1, 2}}, []float32{31, 64}},
		{ops.Conv{Dilation: [2]int{2, 1}}, []float32{21, 32, 54, 65}},
		{ops.Conv{Pad: [4]int{1, 0, 0, 0}}, []float32{0, 0, 21, 32, 54, 65}},
		{ops.Conv{Pad: [4]int{0, 1, 0, 0}}, []float32{10, 21, 32, 40, 54, 65}},
		{ops.Conv{Pad: [4]int{0, 0, 1, 0}}, []float32{21, 32, 54, 65, 0, 0}},
		{ops.Conv{Pad: [4]int{0, 0, 0, 1}}, []float32{21, 32, 3, 54, 65, 6}},
	} {
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.Conv2D(in[0], in[1],
				c.conv)
		}, x, w).F32()
		if len(got) != len(c.want) {
			t.Fatalf("%+v gives %v, want %v", c.conv, got, c.want)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Fatalf("%+v gives %v, want %v", c.conv, got, c.want)
			}
		}
	}
}

// TestConvTransposeIsAdjoint: ⟨conv(x), y⟩ = ⟨x, transpose(y)⟩.
func TestConvTransposeIsAdjoint(t *testing.T) {
	c := ops.Conv{Stride: [2]int{2, 3}, Pad: [4]int{1, 0, 1, 2}, Dilation: [2]int{1, 2}, Groups: 2}
	x, w := random(2, 4, 8, 9), random(6, 2, 3, 2)
	dot := func(in []graph.Value) graph.Value { return ops.Sum(ops.Mul(in[0], in[1])) }
	y := compute(t, func(in []graph.Value) graph.Value { return ops.Conv2D(in[0], in[1], c) }, x, w)
	cotangent := random(y.Type.Sizes()...)
	back := compute(t, func(in []graph.Value) graph.Value {
		return ops.ConvTranspose2D(in[0], in[1], c, [2]int{8, 9})
	}, cotangent, w)
	a, b := compute(t, dot, y, cotangent).F32()[0], compute(t, dot, x, back).F32()[0]
	if math.Abs(float64(a-b)) > 1e-4*(1+math.Abs(float64(a))) {
		t.Errorf("%g and %g", a, b)
	}
}

// TestConvTypes: the sizes of results, and the name of the batch axis.
func TestConvTypes(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Named(graph.F32, graph.Dim{Name: "batch", Size: 2}, graph.Dim{Size: 3},
		graph.Dim{Size: 9}, graph.Dim{Size: 8}))
	w := g.Input("w", tensor.Of(graph.F32, 5, 3, 3, 3))
	y := ops.Conv2D(x, w, ops.Conv{Stride: [2]int{2, 2}, Pad: ops.SamePad(3)})
	for _, c := range []struct {
		got  graph.Value
		want string
	}{
		{y, "f32[batch:2 5 5 4]"},
		{ops.ConvTranspose2D(y, w, ops.Conv{}, [2]int{}), "f32[batch:2 3 7 6]"},
		{ops.ConvTranspose2D(y, w, ops.Conv{Stride: [2]int{2, 2}, Pad: ops.SamePad(3)}, [2]int{}),
			"f32[batch:2 3 9 7]"},
		{ops.ConvTranspose2D(y, w, ops.Conv{Stride: [2]int{2, 2}, Pad: ops.SamePad(3)},
			[2]int{9, 8}), "f32[batch:2 3 9 8]"},
	} {
		if got := c.got.Type().String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if g.Err() != nil {
		t.Error(g.Err())
	}
}

// TestBadConvolutions: every mistake is an error that names it.
func TestBadConvolutions(t *testing.T) {
	huge := math.MaxInt
	for _, c := range []struct {
		want  string
		build func(x, w graph.Value) graph.Value // f32[2 4 6 6], f32[4 4 3 3]
	}{
		{"vertical stride is -1", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Stride: [2]int{-1, 0}})
		}},
		{"horizontal dilation is", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Dilation: [2]int{0, huge}})
		}},
		{"left padding is -2", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Pad: [4]int{0, -2, 0, 0}})
		}},
		{"bottom padding is", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Pad: [4]int{0, 0, huge, 0}})
		}},
		{"into 3 groups", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Groups: 3})
		}},
		{"groups is -1", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Groups: -1})
		}},
		{"for 4 in 2 groups", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Groups: 2})
		}},
		{"spans 9 rows", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(x, w,
				ops.Conv{Dilation: [2]int{4, 1}})
		}},
		{"want four axes", func(x, w graph.Value) graph.Value {
			return ops.Conv2D(ops.Sum(x, 0), w,
				ops.Conv{})
		}},
		{"input height is -1", func(x, w graph.Value) graph.Value {
			return ops.ConvTranspose2D(x, w, ops.Conv{Pad: [4]int{9, 0, 0, 0}}, [2]int{})
		}},
		{"of a result of 4 channels, 7×6", func(x, w graph.Value) graph.Value {
			return ops.ConvTranspose2D(x, w, ops.Conv{}, [2]int{9, 8})
		}},
		{"groups is 9223", func(x, w graph.Value) graph.Value {
			return ops.ConvTranspose2D(x, w, ops.Conv{Groups: huge}, [2]int{9, 8})
		}},
	} {
		g := graph.New()
		y := c.build(g.Input("x", tensor.Of(graph.F32, 2, 4, 6, 6)),
			g.Input("w", tensor.Of(graph.F32, 4, 4, 3, 3)))
		if err := g.Err(); err == nil || y.Valid() || !strings.Contains(err.Error(), c.want) {
			t.Errorf("have %v, want %q", err, c.want)
		}
	}
}

package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// TestGradientsOfNothing: gradients are right where operands have no elements, and
// others of the same operation have some.
func TestGradientsOfNothing(t *testing.T) {
	for _, whole := range ops.Samples() {
		if whole.Update > 0 || len(whole.NoGrad) == len(whole.In) {
			continue
		}
		for _, s := range whole.Emptied(t) {
			t.Run(s.TestName(), func(t *testing.T) {
				if !s.Runs(t) || s.Op.Name() == "grouped-matmul" {
					t.Skip("its data are indices into nothing")
				}
				check(t, s, first)
				if s.Second {
					check(t, s, second)
				}
			})
		}
	}
}

// TestOfNothing: what operations make of no elements is what PyTorch says.
func TestOfNothing(t *testing.T) {
	f := func(sizes ...int) tensor.View { return tensor.New(tensor.Of(graph.F32, sizes...)) }
	ones := tensor.FromF32([]float32{1, 1, 1, 1, 1, 1}, 2, 3)
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		build func(in []graph.Value) graph.Value
		in    []tensor.View
		want  tensor.View
	}{
		"sum": {func(in []graph.Value) graph.Value { return ops.Sum(in[0], 0) },
			[]tensor.View{f(0, 3)}, tensor.FromF32([]float32{0, 0, 0}, 3)},
		"sum of all": {func(in []graph.Value) graph.Value { return ops.Sum(in[0]) },
			[]tensor.View{f(0, 3)}, tensor.FromF32([]float32{0})},
		"mean": {func(in []graph.Value) graph.Value { return ops.Mean(in[0], 0) },
			[]tensor.View{f(0, 2)}, tensor.FromF32([]float32{nan, nan}, 2)},
		"means of none": {func(in []graph.Value) graph.Value { return ops.Mean(in[0], 1) },
			[]tensor.View{f(0, 3)}, f(0)},
		"product": {func(in []graph.Value) graph.Value { return ops.Prod(in[0], 1) },
			[]tensor.View{f(2, 0)}, tensor.FromF32([]float32{1, 1}, 2)},
		"maxima of none": {func(in []graph.Value) graph.Value { return ops.Max(in[0], 1) },
			[]tensor.View{f(0, 3)}, f(0)},
		"log-sum-exp": {func(in []graph.Value) graph.Value { return ops.LogSumExp(in[0], 1) },
			[]tensor.View{f(2, 0)}, tensor.FromF32([]float32{-inf, -inf}, 2)},
		"softmax": {func(in []graph.Value) graph.Value { return ops.Softmax(in[0]) },
			[]tensor.View{f(2, 0)}, f(2, 0)},
		"product of matrices": {func(in []graph.Value) graph.Value {
			return ops.MatMul(in[0], in[1])
		}, []tensor.View{f(2, 0), f(0, 2)}, tensor.FromF32([]float32{0, 0, 0, 0}, 2, 2)},
		"convolution": {func(in []graph.Value) graph.Value {
			return ops.Conv2D(in[0], in[1], ops.Conv{})
		}, []tensor.View{f(0, 3, 4, 4), f(5, 3, 2, 2)}, f(0, 5, 3, 3)},
		"concat": {func(in []graph.Value) graph.Value { return ops.Concat(0, in...) },
			[]tensor.View{f(0, 3), ones, f(0, 3)}, ones},
		"empty slice": {func(in []graph.Value) graph.Value { return ops.Slice(in[0], 1, 2, 2) },
			[]tensor.View{ones}, f(2, 0)},
		"broadcast": {func(in []graph.Value) graph.Value {
			return ops.Add(in[0], ops.BroadcastTo(in[1], 0, 3))
		}, []tensor.View{f(0, 3), f(1, 3)}, f(0, 3)},
		"reverse": {func(in []graph.Value) graph.Value { return ops.Reverse(in[0]) },
			[]tensor.View{f(0, 3)}, f(0, 3)},
		"padding": {func(in []graph.Value) graph.Value { return ops.Pad(in[0], 0, 1, 1) },
			[]tensor.View{f(0, 3)}, f(2, 3)},
	} {
		got := compute(t, c.build, c.in...)
		same := got.Type.Equal(c.want.Type)
		for i, x := range got.F32() {
			w := c.want.F32()[i]
			same = same && (x == w || x != x && w != w)
		}
		if !same {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestNotOfNothing: what PyTorch refuses is refused.
func TestNotOfNothing(t *testing.T) {
	for want, build := range map[string]func(x func(sizes ...int) graph.Value){
		"none is the max": func(x func(...int) graph.Value) { ops.Max(x(0, 3), 0) },
		"have no elements": func(x func(...int) graph.Value) {
			ops.AvgPool2D(x(2, 3, 0, 4), ops.Window{Size: [2]int{1, 1}})
		},
		"cannot be resized to 2×2": func(x func(...int) graph.Value) {
			ops.ResizeBilinear(x(1, 3, 0, 4), 2, 2)
		},
	} {
		g := graph.New()
		n := 0
		build(func(sizes ...int) graph.Value {
			n++
			return g.Input("x"+strings.Repeat("'", n), tensor.Of(graph.F32, sizes...))
		})
		if g.Err() == nil || !strings.Contains(g.Err().Error(), want) {
			t.Errorf("want %q, have %v", want, g.Err())
		}
	}
}

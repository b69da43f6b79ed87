package ops_test

import (
	"math"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// group gives the elements of t that are normalised together a number.
type group func(index []int) int

// moments are the means and the variances of groups.
func moments(x tensor.View, groups int, of group) (mean, variance []float64) {
	mean, variance = make([]float64, groups), make([]float64, groups)
	count := float64(len(x.F32()) / groups)
	for i, v := range x.F32() {
		mean[of(indexOf(x.Type, i))] += float64(v) / count
	}
	for i, v := range x.F32() {
		k := of(indexOf(x.Type, i))
		variance[k] += (float64(v) - mean[k]) * (float64(v) - mean[k]) / count
	}
	return mean, variance
}

// shifted moves all elements, which costs a naive variance its digits.
func shifted(v tensor.View, by float32) tensor.View {
	for i := range v.F32() {
		v.F32()[i] += by
	}
	return v
}

func TestBatchNorm(t *testing.T) {
	const eps = 1e-3
	for _, sizes := range [][]int{{3, 5, 4, 2}, {17, 3}, {2, 1, 300}} {
		x, scale, bias := shifted(random(sizes...), 100), random(sizes[1]),
			shifted(random(sizes[1]), 1)
		mean, variance := moments(x, sizes[1], func(index []int) int { return index[1] })
		for result := range 3 {
			got := compute(t, func(in []graph.Value) graph.Value {
				y, m, v := ops.BatchNorm(in[0], in[1], in[2], eps)
				return []graph.Value{y, m, v}[result]
			}, x, scale, bias)
			within(t, got, 1e-4, func(i int) float64 {
				c := indexOf(x.Type, i)[1]
				return []func() float64{
					func() float64 {
						y := (float64(x.F32()[i]) - mean[c]) / math.Sqrt(variance[c]+eps)
						return y*float64(scale.F32()[c]) + float64(bias.F32()[c])
					},
					func() float64 { return mean[i] },
					func() float64 { return variance[i] },
				}[result]()
			})
		}
	}
}

// within compares with a tolerance of its own.
func within(t *testing.T, got tensor.View, tol float64, want func(i int) float64) {
	t.Helper()
	for i, v := range got.F32() {
		if w := want(i); !(math.Abs(float64(v)-w) <= tol*(1+math.Abs(w))) {
			t.Fatalf("element %d of %s is %g, want %g", i, got.Type, v, w)
		}
	}
}

// TestBatchNormInference: with the batch's own moments it is BatchNorm.
func TestBatchNormInference(t *testing.T) {
	x, scale, bias := random(3, 5, 4, 2), random(5), random(5)
	train := compute(t, func(in []graph.Value) graph.Value {
		y, _, _ := ops.BatchNorm(in[0], in[1], in[2], 1e-3)
		return y
	}, x, scale, bias)
	infer := compute(t, func(in []graph.Value) graph.Value {
		_, m, v := ops.BatchNorm(in[0], in[1], in[2], 1e-3)
		return ops.BatchNormInference(in[0], in[1], in[2], m, v, 1e-3)
	}, x, scale, bias)
	expect(t, "inference", infer, func(i int) float64 { return float64(train.F32()[i]) })
}

func TestRunningAverage(t *testing.T) {
	g := graph.New()
	v := g.Variable("v", tensor.Of(graph.F32, 2), graph.Init{Scale: 1})
	ops.RunningAverage(v, g.Constant("x", tensor.FromF32([]float32{5, -3}, 2)), 0.75)
	live := g.Ancestors([]graph.NodeID{v.Node.ID, g.Updates()[0].ID})
	m, err := reference.New(g, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Value(v).F32(), []float32{1, 1})
	if err := m.Step(); err != nil {
		t.Fatal(err)
	}
	expect(t, "average", m.Value(v), func(i int) float64 { return []float64{2, 0}[i] })
}

func TestLayerNormOver(t *testing.T) {
	const eps = 1e-3
	for _, c := range []struct{ from, rows int }{{1, 3}, {2, 15}, {3, 60}, {-3, 3}, {0, 1}} {
		x := shifted(random(3, 5, 4, 2), 10)
		n := x.Type.Size(c.from)
		scale, bias := random(n), shifted(random(n), 1)
		mean, variance := moments(x, c.rows, func(index []int) int {
			return at(x.Type, index) / (len(x.F32()) / c.rows)
		})
		want := func(i int) float64 {
			k := i / (len(x.F32()) / c.rows)
			index := indexOf(x.Type, i)
			s := index[(c.from+4)%4]
			unit := (float64(x.F32()[i]) - mean[k]) / math.Sqrt(variance[k]+eps)
			return unit*float64(scale.F32()[s]) + float64(bias.F32()[s])
		}
		type norm = func(x, scale, bias graph.Value, from int, eps float32) graph.Value
		for _, f := range []norm{ops.LayerNormOver, ops.LayerNormComposed} {
			got := compute(t, func(in []graph.Value) graph.Value {
				return f(in[0], in[1], in[2],
					c.from, eps)
			}, x, scale, bias)
			within(t, got, 1e-4, want)
		}
	}
}

// TestGradientPenalty: the gradient of the norm of a gradient is the same through
// the fused and the composed layer norm.
func TestGradientPenalty(t *testing.T) {
	type layerNorm func(x, scale, bias graph.Value, from int, eps float32) graph.Value
	penalty := func(norm layerNorm) func([]graph.Value) graph.Value {
		return func(in []graph.Value) graph.Value {
			x, scale, bias, w := in[0], in[1], in[2], in[3]
			y := ops.Sum(ops.Mul(w, ops.Tanh(norm(x, scale, bias, 1, 0.1))))
			d := autodiff.Grad(y, x)[0]
			length := ops.Sqrt(ops.Sum(ops.Square(d), 1, 2, 3))
			loss := ops.Mean(ops.Square(ops.AddScalar(length, -1)))
			grads := autodiff.Grad(loss, x, scale)
			return ops.Add(grads[0], ops.Reshape(ops.Scale(grads[1], 3), graph.Dim{Size: 5},
				graph.Dim{Size: 1}, graph.Dim{Size: 1}))
		}
	}
	in := []tensor.View{random(3, 5, 4, 2), random(5), random(5), shifted(random(3, 5, 4, 2), 0.5)}
	want := compute(t, penalty(ops.LayerNormComposed), in...)
	within(t, compute(t, penalty(ops.LayerNormOver), in...), 1e-4, func(i int) float64 {
		return float64(want.F32()[i])
	})
}

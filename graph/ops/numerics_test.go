package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

// TestNaNIsTheLargest: all that orders elements has NaN beyond infinity, as PyTorch has. The
// smallest of a row with NaN is NaN, too.
func TestNaNIsTheLargest(t *testing.T) {
	row := []float32{1, nan, 3, nan, inf, -inf}
	for name, c := range map[string]struct {
		build func(x graph.Value) graph.Value
		want  []float32
	}{
		"topk": {func(x graph.Value) graph.Value {
			values, _ := ops.TopK(x, 6)
			return values
		}, []float32{nan, nan, inf, 3, 1, -inf}},
		"topk places": {func(x graph.Value) graph.Value {
			_, places := ops.TopK(x, 6)
			return ops.Cast(places, graph.F32)
		}, []float32{1, 3, 4, 2, 0, 5}},
		"top1": {func(x graph.Value) graph.Value { y, _ := ops.TopK(x, 1); return y }, row[1:2]},
		"argmax": {func(x graph.Value) graph.Value { return float(ops.ArgMax(x, 0)) },
			[]float32{1}},
		"argmin": {func(x graph.Value) graph.Value { return float(ops.ArgMin(x, 0)) },
			[]float32{1}},
		"max": {func(x graph.Value) graph.Value { return ops.Max(x) }, row[1:2]},
		"min": {func(x graph.Value) graph.Value { return ops.Min(x) }, row[1:2]},
		"maximum": {func(x graph.Value) graph.Value {
			return ops.Maximum(x, ops.Zeros(x.Graph(), graph.Of(graph.F32)))
		}, []float32{1, nan, 3, nan, inf, 0}},
		"minimum": {func(x graph.Value) graph.Value {
			return ops.Minimum(x, ops.Zeros(x.Graph(), graph.Of(graph.F32)))
		}, []float32{0, nan, 0, nan, 0, -inf}},
		"relu": {ops.Relu, []float32{1, nan, 3, nan, inf, 0}},
		"clip": {func(x graph.Value) graph.Value { return ops.Clip(x, 0, 2) },
			[]float32{1, nan, 2, nan, 2, 0}},
		"maxpool": {func(x graph.Value) graph.Value {
			return ops.MaxPool2D(ops.ReshapeSizes(x, 1, 1, 1, 6), ops.Window{Size: [2]int{1, 2}})
		}, []float32{nan, nan, inf}},
	} {
		got := compute(t, func(in []graph.Value) graph.Value { return c.build(in[0]) },
			tensor.FromF32(row, 6)).F32()
		if !slices.EqualFunc(got, c.want, equalOrNaN) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func float(x graph.Value) graph.Value { return ops.Cast(x, graph.F32) }

// TestCorrectIsArgMax: also where a row has NaN.
func TestCorrectIsArgMax(t *testing.T) {
	x := tensor.FromF32([]float32{1, nan, 3, 1, nan, nan, 1, 3, nan, nan, nan, nan, 2, 2, 1}, 5, 3)
	for label := range int32(3) {
		labels := tensor.FromI32([]int32{label, label, label, label, label}, 5)
		got := compute(t, func(in []graph.Value) graph.Value {
			same := ops.Equal(ops.ArgMax(in[0], 1), in[1])
			return ops.Sub(ops.Correct(in[0], in[1]), ops.Cast(same, graph.F32))
		}, x, labels).F32()
		if !slices.Equal(got, make([]float32, 5)) {
			t.Errorf("label %d: differs by %v", label, got)
		}
	}
}

// derivative is the k-th derivative of f: zeros where it does not depend on x.
func derivative(f func(graph.Value) graph.Value, k int) func(in []graph.Value) graph.Value {
	return func(in []graph.Value) graph.Value {
		y := f(in[0])
		for range k {
			if y = autodiff.Grad(ops.Sum(y), in[0])[0]; !y.Valid() {
				return ops.Zeros(in[0].Graph(), in[0].Type())
			}
		}
		return y
	}
}

// TestFlatFarOut: functions that are straight or constant for large numbers are so up to the
// largest, and so are their derivatives: nothing is 0·∞ on the way.
func TestFlatFarOut(t *testing.T) {
	type line struct{ level, slope float64 }
	identity := line{0, 1}
	points := []float32{17, 1e4, 1e8, 1e13, 1e19, 2e19, 1e30, math.MaxFloat32}
	for name, c := range map[string]struct {
		f           func(graph.Value) graph.Value
		right, left line // what it is far out on either side
	}{
		"gelu":        {ops.Gelu, identity, line{}},
		"gelu-tanh":   {ops.GeluTanh, identity, line{}},
		"silu":        {ops.Silu, identity, line{}},
		"softplus":    {ops.Softplus, identity, line{}},
		"log-sigmoid": {ops.LogSigmoid, line{}, identity},
		"relu":        {ops.Relu, identity, line{}},
		"abs":         {ops.Abs, identity, line{0, -1}},
		"tanh":        {ops.Tanh, line{1, 0}, line{-1, 0}},
		"erf":         {ops.Erf, line{1, 0}, line{-1, 0}},
		"sigmoid":     {ops.Sigmoid, line{1, 0}, line{}},
	} {
		for sign, is := range map[float32]line{1: c.right, -1: c.left} {
			x := tensor.FromF32(slices.Clone(points), len(points))
			for i := range x.F32() {
				x.F32()[i] *= sign
			}
			for k := range 3 {
				got := compute(t, derivative(c.f, k), x).F32()
				for i, v := range got {
					want := []float64{is.level + is.slope*float64(x.F32()[i]), is.slope, 0}[k]
					if !(math.Abs(float64(v)-want) <= 1e-6*math.Abs(want)+1e-5) {
						t.Errorf("derivative %d of %s at %g is %g, want %g", k, name, x.F32()[i], v,
							want)
					}
				}
			}
		}
	}
}

// TestWeighNothing: what has weight 0 is 0, whatever it is, and so is its gradient.
func TestWeighNothing(t *testing.T) {
	x := tensor.FromF32([]float32{nan, inf, -inf, -2, 3, nan}, 6)
	w := tensor.FromF32([]float32{0, 0, 0, 0, 0.5, 0.5}, 6)
	for k, want := range [][]float32{{0, 0, 0, 0, 1.5, nan}, {0, 0, 0, 0, 0.5, 0.5}} {
		got := compute(t, func(in []graph.Value) graph.Value {
			y := ops.Weigh(in[0], in[1])
			return []graph.Value{y, autodiff.Grad(ops.Sum(y), in[0])[0]}[k]
		}, x, w).F32()
		if !slices.EqualFunc(got, want, equalOrNaN) {
			t.Errorf("derivative %d is %v, want %v", k, got, want)
		}
	}
	got := compute(t, func(in []graph.Value) graph.Value {
		return ops.Weigh(in[0], ops.Full(in[0].Graph(), graph.Of(graph.F32), 0))
	}, x).F32()
	if !slices.Equal(got, make([]float32, 6)) {
		t.Errorf("with one weight of 0: %v", got)
	}
}

// TestPowerAtExponentZero: a^0 is 1, the slope of a is 0, and both ways round the slopes' slopes
// are 1/a. What is not defined, at a = 0, is no NaN in other gradients.
func TestPowerAtExponentZero(t *testing.T) {
	points := []float32{2, -2, 0.25, 1e-8, -1e-8, 3e8, inf}
	a, b := tensor.FromF32(points, 7), tensor.New(tensor.Of(graph.F32, 7))
	mixed := func(first, second int) func(in []graph.Value) graph.Value {
		return func(in []graph.Value) graph.Value {
			g := autodiff.Grad(ops.Sum(ops.Pow(in[0], in[1])), in[first])[0]
			return autodiff.Grad(ops.Sum(g), in[second])[0]
		}
	}
	for i, v := range compute(t, mixed(0, 1), a, b).F32() {
		if want := 1 / points[i]; math.Abs(float64(v-want)) > 1e-6*math.Abs(float64(want)) {
			t.Errorf("d/db d/da at %g is %g, want %g", points[i], v, want)
		}
	}
	for i, v := range compute(t, mixed(1, 0), a, b).F32() {
		if want := 1 / points[i]; math.Abs(float64(v-want)) > 1e-6*math.Abs(float64(want)) {
			t.Errorf("d/da d/db at %g is %g, want %g", points[i], v, want)
		}
	}
	a = tensor.FromF32([]float32{0, 1e-30, -1e-40, 5, inf, nan, -3}, 7)
	for order := range 2 {
		for i, v := range compute(t, func(in []graph.Value) graph.Value {
			y := ops.Pow(in[0], in[1])
			for range order + 1 {
				y = autodiff.Grad(ops.Sum(y), in[0])[0]
			}
			return y
		}, a, b).F32() {
			if v != 0 {
				t.Errorf("derivative %d of a^0 at %g is %g", order+1, a.F32()[i], v)
			}
		}
	}
}

// TestAnyAndAllOfNothing: no element is true, and none is not.
func TestAnyAndAllOfNothing(t *testing.T) {
	for _, d := range []graph.DType{graph.Bool, graph.U8} {
		for name, f := range map[string]func(graph.Value, ...int) graph.Value{"any": ops.Any,
			"all": ops.All} {
			got := compute(t, func(in []graph.Value) graph.Value { return f(in[0], 1) },
				tensor.New(tensor.Of(d, 2, 0, 3)))
			want := []uint8{0, 0, 0, 0, 0, 0}
			if name == "all" {
				want = []uint8{1, 1, 1, 1, 1, 1}
			}
			if got.Type.String() != "bool[2 3]" || !slices.Equal(got.U8(), want) {
				t.Errorf("%s of an empty axis of %s: %v", name, d, got)
			}
		}
	}
}

// TestEmptySlices: as in Python, what is from lo to hi has no elements where hi is not beyond lo,
// and where lo is beyond the end.
func TestEmptySlices(t *testing.T) {
	for _, c := range [][3]int{{2, 2, 1}, {2, 2, 3}, {3, 1, 1}, {3, 1, 2}, {9, 12, 2}, {5, 9, 1}} {
		x := random(2, 5)
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.SliceStep(in[0], 1, c[0], c[1], c[2])
		}, x)
		if got.Type.String() != "f32[2 0]" {
			t.Errorf("x[%d:%d:%d] is %v", c[0], c[1], c[2], got.Type)
		}
		grad := compute(t, func(in []graph.Value) graph.Value {
			return autodiff.Grad(ops.Sum(ops.SliceStep(in[0], 1, c[0], c[1], c[2])), in[0])[0]
		}, x)
		if !slices.Equal(grad.F32(), make([]float32, 10)) {
			t.Errorf("the gradient of x[%d:%d:%d] is %v", c[0], c[1], c[2], grad)
		}
	}
}

// TestBatchNormOfNothing: nothing normalised is nothing, of no mean and no variance, and it
// gives scale and bias no gradient.
func TestBatchNormOfNothing(t *testing.T) {
	for _, sizes := range [][]int{{0, 3}, {0, 3, 4, 4}, {2, 3, 0, 4}, {0, 3, 11, 11}} {
		x, c := tensor.New(tensor.Of(graph.F32, sizes...)), random(3)
		for result := range 3 {
			got := compute(t, func(in []graph.Value) graph.Value {
				y, mean, variance := ops.BatchNorm(in[0], in[1], in[2], 1e-5)
				return []graph.Value{y, mean, variance}[result]
			}, x, c, c).F32()
			want := [][]float32{{}, {nan, nan, nan}, {nan, nan, nan}}[result]
			if !slices.EqualFunc(got, want, equalOrNaN) {
				t.Errorf("result %d of %v is %v", result, sizes, got)
			}
		}
		for operand := 1; operand < 3; operand++ {
			got := compute(t, func(in []graph.Value) graph.Value {
				y, _, _ := ops.BatchNorm(in[0], in[1], in[2], 1e-5)
				return autodiff.Grad(ops.Sum(y), in[operand])[0]
			}, x, c, c).F32()
			if !slices.Equal(got, make([]float32, 3)) {
				t.Errorf("the gradient of operand %d for %v is %v", operand, sizes, got)
			}
		}
	}
}

// TestBatchNormOfManyRows: planes of few elements are added up over any number of images without
// losing digits. A constant has no deviation from its mean; of the others it is known.
func TestBatchNormOfManyRows(t *testing.T) {
	const rows, constant = 802_816, 2.2489
	x := tensor.New(tensor.Of(graph.F32, rows, 2))
	for i := range rows {
		x.F32()[2*i] = constant
		x.F32()[2*i+1] = constant + float32(i%3-1)/16 // mean constant, variance 2/3/256
	}
	scale, bias := tensor.FromF32([]float32{1, 1}, 2), tensor.New(tensor.Of(graph.F32, 2))
	for result := range 3 {
		got := compute(t, func(in []graph.Value) graph.Value {
			y, mean, variance := ops.BatchNorm(in[0], in[1], in[2], 1e-5)
			return []graph.Value{y, mean, variance}[result]
		}, x, scale, bias).F32()
		for i, v := range got {
			want := [][2]float64{{0, float64(i/2%3-1) / 16 / math.Sqrt(2./3/256+1e-5)},
				{constant, constant}, {0, 2. / 3 / 256}}[result][i%2]
			if math.Abs(float64(v)-want) > 2e-5*(1+math.Abs(want)) {
				t.Fatalf("element %d of result %d is %g, want %g", i, result, v, want)
			}
		}
	}
	got := compute(t, func(in []graph.Value) graph.Value {
		y, _, _ := ops.BatchNorm(in[0], in[1], in[2], 1e-5)
		return autodiff.Grad(ops.Sum(ops.Scale(y, 0.1)), in[2])[0]
	}, x, scale, bias).F32()
	for _, v := range got {
		if math.Abs(float64(v)/(rows*float64(float32(0.1)))-1) > 2e-6 {
			t.Errorf("the gradient of the bias is %g, want %g", v, rows*0.1)
		}
	}
}

// TestNormFactor: a norm of any size that numbers have is limited, with the bits of the plain
// formula where that does not overflow.
func TestNormFactor(t *testing.T) {
	factor := func(in []graph.Value) graph.Value {
		return ops.NormFactor(ops.Add(ops.WideSquares(in[0]), ops.WideSquares(in[1])), 0.5)
	}
	for _, size := range []float64{1e-20, 1e-3, 1, 1e9, 1e18, 1.3e19, 1e20, 1e30, 1e38} {
		x, y := random(3000), random(5)
		norm := 0.0
		for _, v := range []tensor.View{x, y} {
			for i := range v.F32() {
				v.F32()[i] *= float32(size / 4)
				norm = math.Hypot(norm, float64(v.F32()[i]))
			}
		}
		want := min(1, 0.5/norm)
		got := compute(t, factor, x, y).F32()[0]
		if !(math.Abs(float64(got)-want) <= 2e-6*want) {
			t.Errorf("of numbers of size %g: %g, want %g", size, got, want)
		}
		plain := compute(t, func(in []graph.Value) graph.Value {
			s := ops.Sqrt(ops.Add(ops.SumSquares(in[0]), ops.SumSquares(in[1])))
			limit := ops.Full(s.Graph(), s.Type(), 0.5)
			return ops.Div(limit, ops.Maximum(s, limit))
		}, x, y).F32()[0]
		if plain != 0 && plain != got {
			t.Errorf("of numbers of size %g: %g, and by the plain formula %g", size, got, plain)
		}
	}
	for _, c := range [][2]float32{{inf, 0}, {nan, nan}, {0, 1}} {
		x := tensor.FromF32([]float32{c[0], 3e38}, 2)
		if c[0] == 0 {
			x = tensor.New(tensor.Of(graph.F32, 0))
		}
		if got := compute(t, factor, x, x).F32()[0]; !equalOrNaN(got, c[1]) {
			t.Errorf("of %v: %g, want %g", x, got, c[1])
		}
	}
}

// TestMaskedSoftmax: a row of which all is hidden is zeros, and so is its gradient; others have
// Softmax's bits.
func TestMaskedSoftmax(t *testing.T) {
	x := random(40, 70)
	for _, row := range []int{0, 1, 7, 38, 39} {
		for i := range 70 {
			x.F32()[row*70+i] = -inf
		}
	}
	x.F32()[140] = -inf // one of a row
	for k := range 2 {
		build := func(f func(graph.Value) graph.Value) func(in []graph.Value) graph.Value {
			return func(in []graph.Value) graph.Value {
				y := f(in[0])
				return []graph.Value{y, autodiff.Grad(ops.Sum(ops.Square(y)), in[0])[0]}[k]
			}
		}
		want := compute(t, build(ops.Softmax), x).F32()
		for i, v := range compute(t, build(ops.MaskedSoftmax), x).F32() {
			if hidden := want[i] != want[i]; hidden && v != 0 || !hidden && v != want[i] {
				t.Fatalf("derivative %d: element %d is %g, that of Softmax %g", k, i, v, want[i])
			}
		}
	}
}

// TestDroppedIsZero: also where it was infinite or NaN, and where elements share their noise.
func TestDroppedIsZero(t *testing.T) {
	x := tensor.New(tensor.Of(graph.F32, 40, 30))
	for i := range x.F32() {
		x.F32()[i] = []float32{nan, inf, -inf, -1}[i%4]
	}
	for _, shared := range [][]int{nil, {0}, {1}, {0, 1}} {
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.Dropout(in[0], in[1], 0.5, "drop", shared...)
		}, x, tensor.FromI32([]int32{1, 2}, 2)).F32()
		dropped := 0
		for i, v := range got {
			if v == 0 {
				dropped++
				if math.Signbit(float64(v)) {
					t.Fatalf("sharing %v: element %d is -0", shared, i)
				}
			} else if want := 2 * x.F32()[i]; !equalOrNaN(v, want) {
				t.Fatalf("sharing %v: element %d is %g, want %g or 0", shared, i, v, want)
			}
		}
		if share := float64(dropped) / 1200; len(shared) < 2 && math.Abs(share-0.5) > 0.2 {
			t.Errorf("sharing %v: %g are dropped", shared, share)
		}
	}
}

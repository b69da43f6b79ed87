package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// fatal is what tests and properties have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compute evaluates a function of the operands.
func compute(t fatal, build func(in []graph.Value) graph.Value, in ...tensor.View) tensor.View {
	t.Helper()
	out, err := try(build, in...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out
}

func try(build func(in []graph.Value) graph.Value, in ...tensor.View) (tensor.View, error) {
	g := graph.New()
	var values []graph.Value
	for _, v := range in {
		values = append(values, g.Constant("x", v))
	}
	y := build(values)
	if g.Err() != nil {
		return tensor.View{}, g.Err()
	}
	m, err := reference.New(g, g.Ancestors([]graph.NodeID{y.Node.ID}), nil)
	if err != nil {
		return tensor.View{}, err
	}
	err = m.Step()
	return m.Value(y), err
}

// random is a value of random numbers.
func random(sizes ...int) tensor.View {
	v := tensor.New(tensor.Of(graph.F32, sizes...))
	rng := rand.New(rand.NewPCG(uint64(len(v.F32())), 5))
	for i := range v.F32() {
		v.F32()[i] = float32(rng.NormFloat64())
	}
	return v
}

// expect compares with a float64 computation, element by element.
func expect(t fatal, what string, got tensor.View, want func(i int) float64) {
	t.Helper()
	for i, v := range got.F32() {
		// also if v is no number
		if w := want(i); !(math.Abs(float64(v)-w) <= 1e-5*(1+math.Abs(w))) {
			t.Fatalf("%s: element %d of %s is %g, want %g", what, i, got.Type, v, w)
		}
	}
}

// expectSum compares sums with those in float64: rounding grows with the sum of
// the terms' magnitudes, which cancellation may leave far above the result.
func expectSum(t fatal, what string, got tensor.View, want, magnitude []float64) {
	t.Helper()
	for i, v := range got.F32() {
		if !(math.Abs(float64(v)-want[i]) <= 1e-6*(1+magnitude[i])) { // also if v is no number
			t.Fatalf("%s: element %d of %s is %g, want %g", what, i, got.Type, v, want[i])
		}
	}
}

// at is the position of a row-major index in a value whose axes of size 1 are
// repeated and whose leading axes may be missing.
func at(t graph.Type, index []int) int {
	pos := 0
	index = index[len(index)-t.Rank():]
	for i, d := range t.Shape {
		pos = pos*d.Size + index[i]%d.Size
	}
	return pos
}

// indexOf is the index of element i.
func indexOf(t graph.Type, i int) []int {
	index := make([]int, t.Rank())
	for k := t.Rank() - 1; k >= 0; k-- {
		index[k] = i % t.Size(k)
		i /= t.Size(k)
	}
	return index
}

func drawSizes(t *rapid.T, rank int) []int {
	return rapid.SliceOfN(rapid.IntRange(1, 5), rank, rank).Draw(t, "sizes")
}

func TestArithmeticBroadcasts(t *testing.T) {
	type fn struct {
		name  string
		value func(a, b graph.Value) graph.Value
		want  func(a, b float64) float64
	}
	fns := []fn{
		{"add", ops.Add, func(a, b float64) float64 { return a + b }},
		{"sub", ops.Sub, func(a, b float64) float64 { return a - b }},
		{"mul", ops.Mul, func(a, b float64) float64 { return a * b }},
		{"div", ops.Div, func(a, b float64) float64 { return a / b }},
		{"maximum", ops.Maximum, math.Max},
	}
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t, rapid.IntRange(0, 4).Draw(t, "rank"))
		part := func(name string) tensor.View {
			s := append([]int{}, sizes[rapid.IntRange(0, len(sizes)).Draw(t, name):]...)
			for i := range s {
				if rapid.Bool().Draw(t, "one") {
					s[i] = 1
				}
			}
			return random(s...)
		}
		a, b := part("a"), part("b")
		f := rapid.SampledFrom(fns).Draw(t, "f")
		got := compute(t, func(in []graph.Value) graph.Value { return f.value(in[0], in[1]) }, a, b)
		expect(t, f.name, got, func(i int) float64 {
			index := indexOf(got.Type, i)
			return f.want(float64(a.F32()[at(a.Type, index)]), float64(b.F32()[at(b.Type, index)]))
		})
	})
}

func TestBroadcastTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t, rapid.IntRange(0, 4).Draw(t, "rank"))
		s := append([]int{}, sizes[rapid.IntRange(0, len(sizes)).Draw(t, "lead"):]...)
		for i := range s {
			if rapid.Bool().Draw(t, "one") {
				s[i] = 1
			}
		}
		x := random(s...)
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.BroadcastTo(in[0],
				sizes...)
		}, x)
		expect(t, "broadcast", got, func(i int) float64 {
			return float64(x.F32()[at(x.Type, indexOf(got.Type, i))])
		})
	})
}

func TestTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t, rapid.IntRange(1, 5).Draw(t, "rank"))
		sizes[rapid.IntRange(0, len(sizes)-1).Draw(t, "long")] *= rapid.SampledFrom([]int{1, 3,
			29}).Draw(t, "factor")
		axes := make([]int, len(sizes))
		for i := range axes {
			axes[i] = i
		}
		perm := rapid.Permutation(axes).Draw(t, "perm")
		x := random(sizes...)
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.Transpose(in[0],
				perm...)
		}, x)
		expect(t, "transpose", got, func(i int) float64 {
			from := make([]int, len(sizes))
			for k, index := range indexOf(got.Type, i) {
				from[perm[k]] = index
			}
			return float64(x.F32()[at(x.Type, from)])
		})
	})
}

func TestSumAndMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t, rapid.IntRange(1, 4).Draw(t, "rank"))
		factor := rapid.SampledFrom([]int{1, 7, 67, 1031}).Draw(t, "factor")
		if tensor.Of(graph.F32, sizes...).Elems()*factor < 1<<15 {
			sizes[rapid.IntRange(0, len(sizes)-1).Draw(t, "long")] *= factor
		}
		x := random(sizes...)
		axes := rapid.SliceOfNDistinct(rapid.IntRange(-len(sizes), len(sizes)-1), 0, len(sizes),
			func(i int) int { return (i + len(sizes)) % len(sizes) }).Draw(t, "axes")
		kept := append([]int{}, sizes...)
		for i := range kept {
			if len(axes) == 0 {
				kept[i] = 1
			}
		}
		for _, a := range axes {
			kept[(a+len(sizes))%len(sizes)] = 1
		}
		want := make([]float64, tensor.Of(graph.F32, kept...).Elems())
		magnitude := make([]float64, len(want))
		for i, v := range x.F32() {
			k := at(tensor.Of(graph.F32, kept...), indexOf(x.Type, i))
			want[k] += float64(v)
			magnitude[k] += math.Abs(float64(v))
		}
		keep := compute(t, func(in []graph.Value) graph.Value {
			return ops.SumKeep(in[0],
				axes...)
		}, x)
		if !keep.Type.Equal(tensor.Of(graph.F32, kept...)) {
			t.Fatalf("the sum of %s over %v is %s", x.Type, axes, keep.Type)
		}
		expectSum(t, "sum", keep, want, magnitude)
		mean := compute(t, func(in []graph.Value) graph.Value { return ops.Mean(in[0], axes...) },
			x)
		for i, count := 0, float64(len(x.F32())/len(want)); i < len(want); i++ {
			want[i] /= count
		}
		expectSum(t, "mean", mean, want, magnitude)
	})
}

// TestPartsAndWhole: splitting, slicing and unstacking are undone by joining, and
// padding by slicing.
func TestPartsAndWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t, rapid.IntRange(1, 4).Draw(t, "rank"))
		axis := rapid.IntRange(0, len(sizes)-1).Draw(t, "axis")
		n := sizes[axis]
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		x := random(sizes...)
		same := func(what string, build func(x graph.Value) graph.Value) {
			got := compute(t, func(in []graph.Value) graph.Value { return build(in[0]) }, x)
			if !got.Type.Equal(x.Type) {
				t.Fatalf("%s: %s becomes %s", what, x.Type, got.Type)
			}
			expect(t, what, got, func(i int) float64 { return float64(x.F32()[i]) })
		}
		if cut > 0 && cut < n {
			same("slices", func(x graph.Value) graph.Value {
				return ops.Concat(axis, ops.Slice(x, axis, 0, cut),
					ops.Slice(x, axis-len(sizes), cut, n))
			})
		}
		same("split", func(x graph.Value) graph.Value {
			return ops.Concat(0, ops.Split(x, sizes[0])...)
		})
		same("unstack", func(x graph.Value) graph.Value { return ops.Stack(ops.Unstack(x)...) })
		same("no padding", func(x graph.Value) graph.Value { return ops.Pad(x, axis, 0, 0) })
		same("pad", func(x graph.Value) graph.Value {
			return ops.Slice(ops.Pad(x, axis, cut, 2), axis, cut, cut+n)
		})
		padding := compute(t, func(in []graph.Value) graph.Value {
			return ops.Sum(ops.Pad(in[0],
				axis, cut, 2))
		}, x)
		total, magnitude := 0.0, 0.0
		for _, v := range x.F32() {
			total += float64(v)
			magnitude += math.Abs(float64(v))
		}
		expectSum(t, "sum of padded", padding, []float64{total}, []float64{magnitude})
	})
}

func TestFunctions(t *testing.T) {
	for _, f := range []struct {
		name  string
		value func(graph.Value) graph.Value
		want  func(float64) float64
	}{
		{"neg", ops.Neg, func(x float64) float64 { return -x }},
		{"exp", ops.Exp, math.Exp},
		{"log", func(x graph.Value) graph.Value { return ops.Log(ops.Exp(x)) },
			func(x float64) float64 { return x }},
		{"sqrt", func(x graph.Value) graph.Value { return ops.Sqrt(ops.Square(x)) }, math.Abs},
		{"rsqrt", func(x graph.Value) graph.Value { return ops.Rsqrt(ops.Exp(x)) },
			func(x float64) float64 { return math.Exp(-x / 2) }},
		{"relu", ops.Relu, func(x float64) float64 { return max(x, 0) }},
		{"tanh", ops.Tanh, math.Tanh},
		{"sigmoid", ops.Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"gelu", ops.Gelu, func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }},
		{"scale", func(x graph.Value) graph.Value {
			return ops.Scale(x,
				-3)
		}, func(x float64) float64 { return -3 * x }},
		{"add scalar", func(x graph.Value) graph.Value {
			return ops.AddScalar(x,
				-3)
		}, func(x float64) float64 { return x - 3 }},
	} {
		x := random(5, 17)
		got := compute(t, func(in []graph.Value) graph.Value { return f.value(in[0]) }, x)
		expect(t, f.name, got, func(i int) float64 { return f.want(float64(x.F32()[i])) })
	}
}

// rowOf is the row of i's element, in float64.
func rowOf(x tensor.View, i int) []float64 {
	n := x.Type.Size(-1)
	row := make([]float64, n)
	for k, v := range x.F32()[i/n*n : (i/n+1)*n] {
		row[k] = float64(v)
	}
	return row
}

func mean(x []float64, f func(float64) float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += f(v)
	}
	return sum / float64(len(x))
}

func TestRowFunctions(t *testing.T) {
	const n, eps = 33, 0.01
	x, scale, bias := random(3, 2, n), random(n), random(1, n)
	bias.Type = scale.Type
	run := func(name string, build func(in []graph.Value) graph.Value,
		want func(row []float64, k int) float64) {
		got := compute(t, build, x, scale, bias)
		expect(t, name, got, func(i int) float64 { return want(rowOf(x, i), i%n) })
	}
	softmax := func(row []float64, k int) float64 {
		return math.Exp(row[k]) / (mean(row, math.Exp) * n)
	}
	square := func(v float64) float64 { return v * v }
	run("softmax", func(in []graph.Value) graph.Value { return ops.Softmax(in[0]) }, softmax)
	run("log-softmax", func(in []graph.Value) graph.Value { return ops.LogSoftmax(in[0]) },
		func(row []float64, k int) float64 { return math.Log(softmax(row, k)) })
	run("rms-norm", func(in []graph.Value) graph.Value { return ops.RMSNorm(in[0], in[1], eps) },
		func(row []float64, k int) float64 {
			return row[k] / math.Sqrt(mean(row, square)+eps) * float64(scale.F32()[k])
		})
	run("layer-norm", func(in []graph.Value) graph.Value {
		return ops.LayerNorm(in[0], in[1], in[2], eps)
	},
		func(row []float64, k int) float64 {
			mu := mean(row, func(v float64) float64 { return v })
			variance := mean(row, func(v float64) float64 { return square(v - mu) })
			return (row[k]-mu)/math.Sqrt(variance+eps)*float64(scale.F32()[k]) +
				float64(bias.F32()[k])
		})
}

// TestExtremeRows: rows far from zero neither overflow nor cancel.
func TestExtremeRows(t *testing.T) {
	x := tensor.FromF32([]float32{1000, 1001, 1002, -1000, -1001, -1002}, 2, 3)
	for name, f := range map[string]func(graph.Value) graph.Value{
		"softmax":       ops.Softmax,
		"log-softmax":   func(x graph.Value) graph.Value { return ops.Exp(ops.LogSoftmax(x)) },
		"cross-entropy": func(x graph.Value) graph.Value { return ops.Exp(ops.Neg(entropies(x))) },
	} {
		got := compute(t, func(in []graph.Value) graph.Value { return f(in[0]) }, x)
		z := 1 + math.Exp(1) + math.Exp(2)
		want := []float64{1 / z, math.E / z, math.Exp(2) / z, math.Exp(2) / z, math.E / z, 1 / z}
		expect(t, name, got, func(i int) float64 { return want[i] })
	}
}

// entropies is the cross-entropy of every class of every row of f32[2 3].
func entropies(x graph.Value) graph.Value {
	labels := tensor.FromI32([]int32{0, 1, 2, 0, 1, 2}, 2, 3)
	repeated := ops.BroadcastTo(ops.Reshape(x, graph.Dim{Size: 2}, graph.Dim{Size: 1},
		graph.Dim{Size: 3}), 2, 3, 3)
	return ops.CrossEntropy(repeated, x.Graph().Constant("labels", labels), 0)
}

// TestCrossEntropySmoothing: against the definition, Σ −target·log softmax.
func TestCrossEntropySmoothing(t *testing.T) {
	const v, s = 17, 0.1
	x, labels := random(5, v), tensor.FromI32([]int32{0, 16, 3, 3, 9}, 5)
	got := compute(t, func(in []graph.Value) graph.Value {
		return ops.CrossEntropy(in[0], in[1],
			s)
	}, x, labels)
	expect(t, "cross-entropy", got, func(i int) float64 {
		row := rowOf(x, i*v)
		loss, total := 0.0, mean(row, math.Exp)*v
		for k := range row {
			target := s / (v - 1)
			if int32(k) == labels.I32()[i] {
				target = 1 - s
			}
			loss -= target * (row[k] - math.Log(total))
		}
		return loss
	})
}

func TestLookups(t *testing.T) {
	ids := tensor.FromI32([]int32{2, 0, 2, 1}, 2, 2)
	table := random(3, 5)
	got := compute(t, func(in []graph.Value) graph.Value { return ops.Embedding(in[0], in[1]) },
		table, ids)
	expect(t, "embedding", got, func(i int) float64 {
		return float64(table.F32()[int(ids.I32()[i/5])*5+i%5])
	})
	hot := compute(t, func(in []graph.Value) graph.Value {
		return ops.MatMul(ops.OneHot(in[1], 3),
			in[0])
	}, table, ids)
	expect(t, "one-hot", hot, func(i int) float64 { return float64(got.F32()[i]) })
	weights := compute(t, func(in []graph.Value) graph.Value { return ops.NotZero(in[0]) }, ids)
	expect(t, "not-zero", weights, func(i int) float64 { return []float64{1, 0, 1, 1}[i] })
	logits := tensor.FromF32([]float32{1, 5, 5, 0, 0, 0, 3, 2, 1, 1, 2, 3}, 4, 3)
	right := compute(t, func(in []graph.Value) graph.Value { return ops.Correct(in[0], in[1]) },
		logits, tensor.FromI32([]int32{1, 1, 0, 2}, 4))
	expect(t, "correct", right, func(i int) float64 { return []float64{1, 0, 1, 1}[i] })
	second := compute(t, func(in []graph.Value) graph.Value { return ops.Correct(in[0], in[1]) },
		logits, tensor.FromI32([]int32{2, 0, 1, 0}, 4))
	expect(t, "correct", second, func(i int) float64 { return []float64{0, 1, 0, 0}[i] })
}

func TestCast(t *testing.T) {
	x := tensor.FromF32([]float32{-2.75, -0.5, 0, 1.5, 3}, 5)
	for _, to := range []graph.DType{graph.I32, graph.BF16, graph.F16} {
		back := compute(t, func(in []graph.Value) graph.Value {
			return ops.Cast(ops.Cast(in[0], to),
				graph.F32)
		}, x)
		expect(t, to.String(), back, func(i int) float64 {
			if to == graph.I32 {
				return math.Trunc(float64(x.F32()[i]))
			}
			return float64(x.F32()[i])
		})
	}
	bytes := tensor.New(tensor.Of(graph.U8, 3))
	copy(bytes.U8(), []byte{0, 1, 255})
	got := compute(t, func(in []graph.Value) graph.Value { return ops.Cast(in[0], graph.F32) },
		bytes)
	expect(t, "u8", got, func(i int) float64 { return []float64{0, 1, 255}[i] })
}

// TestIndicesOutOfRange: data that name no row are an error that shows them.
func TestIndicesOutOfRange(t *testing.T) {
	x := random(2, 5)
	for _, id := range []int32{5, -1, math.MaxInt32, math.MinInt32} {
		ids := tensor.FromI32([]int32{4, id}, 2)
		for name, build := range map[string]func(in []graph.Value) graph.Value{
			"embedding": func(in []graph.Value) graph.Value {
				return ops.Embedding(ops.Transpose(in[0], 1, 0), in[1])
			},
			"one-hot": func(in []graph.Value) graph.Value { return ops.OneHot(in[1], 5) },
			"cross-entropy": func(in []graph.Value) graph.Value {
				return ops.CrossEntropy(in[0], in[1], 0)
			},
			"correct": func(in []graph.Value) graph.Value {
				return ops.Correct(in[0], in[1])
			},
		} {
			_, err := try(build, x, ids)
			want := fmt.Sprintf("index %d at position 1 is outside a table of 5", id)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of index %d: error is %v", name, id, err)
			}
		}
	}
}

// TestEveryElementTypeMoves: operations that only move elements take those of any type,
// and casts go from any to any, with the results of tensors'.
func TestEveryElementTypeMoves(t *testing.T) {
	x := random(2, 3, 4)
	for _, d := range tensor.DTypes() {
		typed := tensor.View{Type: x.Type, Data: x.Data}.To(d)
		for _, to := range tensor.DTypes() {
			got := compute(t, func(in []graph.Value) graph.Value {
				a := ops.Transpose(in[0], 2, 0, 1)
				parts := ops.Split(a, 2)
				b := ops.Concat(0, parts[1], parts[0])
				return ops.Cast(ops.ReshapeSizes(ops.Unstack(b)[3], 6), to)
			}, typed)
			want := tensor.New(tensor.Of(d, 6)) // [1 ∘ ∘] of the transposed halves exchanged
			size := int(d.Size())
			for i := range 6 {
				copy(want.Data[i*size:], typed.Data[(i*4+1)*size:][:size])
			}
			if want = want.To(to); string(got.Data) != string(want.Data) {
				t.Errorf("%s to %s: %v, want %v", d, to, got, want)
			}
		}
	}
}

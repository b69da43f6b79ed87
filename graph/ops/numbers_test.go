package ops_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// numbers are random elements of a type, among them frequently those at which integers
// wrap and conversions end, and zeros where they may be.
func numbers(d graph.DType, seed uint64, zeros bool, sizes ...int) tensor.View {
	v := tensor.New(tensor.Of(d, sizes...))
	rng := rand.New(rand.NewPCG(seed, uint64(d)))
	edges := tensor.FromF32([]float32{0, 1, -1, 2, -2, 3, 7, -0x1p63, 0x1p64, 0.5, -2.5, 1e30}, 12).
		To(d)
	size := int(d.Size())
	for i := range v.Type.Elems() {
		at := v.Data[i*size : (i+1)*size]
		for k := range at {
			at[k] = byte(rng.Uint32())
		}
		if k := rng.IntN(24); k < 12 {
			copy(at, edges.Data[k*size:])
		}
		if d == graph.Bool {
			at[0] &= 1
		}
		if exact := exactly(v, i); !zeros && exact != nil && exact.Sign() == 0 {
			copy(at, edges.Data[size:])
		}
	}
	return v
}

// exactly is element i of a view as a number; nil for infinities and NaN.
func exactly(v tensor.View, i int) *big.Float {
	size := int(v.Type.DType.Size())
	one := tensor.View{Type: tensor.Of(v.Type.DType), Data: v.Data[i*size : (i+1)*size]}
	x := new(big.Float).SetPrec(200)
	switch {
	case v.Type.DType == graph.U64:
		return x.SetUint64(one.U64()[0])
	case v.Type.DType.Integer():
		return x.SetInt64(one.To(graph.I64).I64()[0])
	}
	f := one.To(graph.F64).F64()[0]
	if f-f != 0 {
		return nil
	}
	return x.SetFloat64(f)
}

// TestEveryElementTypeCompares: comparisons of every type are those of exact numbers.
func TestEveryElementTypeCompares(t *testing.T) {
	type comparison struct {
		of   func(a, b graph.Value) graph.Value
		want func(order int) bool
	}
	list := []comparison{
		{ops.Equal, func(o int) bool { return o == 0 }},
		{ops.NotEqual, func(o int) bool { return o != 0 }},
		{ops.Less, func(o int) bool { return o < 0 }},
		{ops.LessEqual, func(o int) bool { return o <= 0 }},
		{ops.Greater, func(o int) bool { return o > 0 }},
		{ops.GreaterEqual, func(o int) bool { return o >= 0 }},
	}
	for _, d := range tensor.DTypes() {
		a, b := numbers(d, 1, true, 200), numbers(d, 2, true, 200)
		for k, c := range list {
			got := compute(t, func(in []graph.Value) graph.Value {
				return c.of(in[0], in[1])
			}, a, b)
			for i, v := range got.U8() {
				x, y := exactly(a, i), exactly(b, i)
				if x != nil && y != nil && (v == 1) != c.want(x.Cmp(y)) {
					t.Fatalf("%s: comparison %d of %v and %v is %d", d, k, x, y, v)
				}
			}
		}
	}
	nan := tensor.FromF32([]float32{float32(math.NaN())}, 1).To(graph.F16)
	got := compute(t, func(in []graph.Value) graph.Value {
		return ops.Concat(0, ops.Equal(in[0], in[0]), ops.IsNaN(in[0]))
	}, nan)
	if got.U8()[0] != 0 || got.U8()[1] != 1 {
		t.Errorf("NaN compares as %v", got)
	}
}

// integers are x exactly, one for each element.
func integers(x tensor.View) []*big.Int {
	list := make([]*big.Int, x.Type.Elems())
	for i := range list {
		list[i], _ = exactly(x, i).Int(nil)
	}
	return list
}

// wrapped is what of a number its type's bits hold, as two's complement has it.
func wrapped(x *big.Int, d graph.DType) *big.Int {
	bits := uint(8 * d.Size())
	ring := new(big.Int).Lsh(big.NewInt(1), bits)
	y := new(big.Int).Mod(x, ring)
	if signed(d) && y.Bit(int(bits)-1) == 1 {
		y.Sub(y, ring)
	}
	return y
}

func signed(d graph.DType) bool {
	return d == graph.I8 || d == graph.I16 || d == graph.I32 || d == graph.I64
}

// bigPower is a^b, wrapped on the way.
func bigPower(a, b *big.Int, d graph.DType) *big.Int {
	if b.Sign() < 0 {
		if one := big.NewInt(1); new(big.Int).Abs(a).Cmp(one) == 0 {
			return new(big.Int).Exp(a, new(big.Int).And(b, one), nil)
		}
		return new(big.Int)
	}
	ring := new(big.Int).Lsh(big.NewInt(1), uint(8*d.Size()))
	return new(big.Int).Exp(new(big.Int).Mod(a, ring), b, ring)
}

// bigShift is a shifted up by b, or down where b is below 0; b is a count without a sign.
func bigShift(a, b *big.Int, d graph.DType, up bool) *big.Int {
	n := uint(8 * d.Size())
	if b.Sign() >= 0 && b.Cmp(big.NewInt(int64(n))) < 0 {
		n = uint(b.Uint64())
	}
	if up {
		return new(big.Int).Lsh(a, n)
	}
	return new(big.Int).Rsh(a, n)
}

type number = *big.Int

// operation is one on integers, and the same on exact ones.
type operation struct {
	name  string
	of    func(a, b graph.Value) graph.Value
	want  func(z, a, b number, d graph.DType) number
	zeros bool // the second may be zero
}

func operations() []operation {
	single := func(f func(graph.Value) graph.Value) func(a, b graph.Value) graph.Value {
		return func(a, b graph.Value) graph.Value { return f(ops.Add(a, ops.Sub(b, b))) }
	}
	return []operation{
		{"add", ops.Add, func(z, a, b number, _ graph.DType) number {
			return z.Add(a, b)
		}, true},
		{"sub", ops.Sub, func(z, a, b number, _ graph.DType) number {
			return z.Sub(a, b)
		}, true},
		{"mul", ops.Mul, func(z, a, b number, _ graph.DType) number {
			return z.Mul(a, b)
		}, true},
		{"div", ops.Div, func(z, a, b number, _ graph.DType) number {
			return z.Quo(a, b)
		}, false},
		{"remainder", ops.Remainder, func(z, a, b number, _ graph.DType) number {
			return z.Rem(a, b)
		}, false},
		{"mod", ops.Mod, func(z, a, b number, _ graph.DType) number {
			if z.Rem(a, b); z.Sign() != 0 && z.Sign() != b.Sign() {
				z.Add(z, b)
			}
			return z
		}, false},
		{"pow", ops.Pow, func(_, a, b number, d graph.DType) number {
			return bigPower(a, b, d)
		}, true},
		{"maximum", ops.Maximum, func(_, a, b number, _ graph.DType) number {
			if a.Cmp(b) > 0 {
				return a
			}
			return b
		}, true},
		{"minimum", ops.Minimum, func(_, a, b number, _ graph.DType) number {
			if a.Cmp(b) < 0 {
				return a
			}
			return b
		}, true},
		{"and", ops.BitAnd, func(z, a, b number, _ graph.DType) number {
			return z.And(a, b)
		}, true},
		{"or", ops.BitOr, func(z, a, b number, _ graph.DType) number {
			return z.Or(a, b)
		}, true},
		{"xor", ops.BitXor, func(z, a, b number, _ graph.DType) number {
			return z.Xor(a, b)
		}, true},
		{"left", ops.ShiftLeft, func(_, a, b number, d graph.DType) number {
			return bigShift(a, b, d, true)
		}, true},
		{"right", ops.ShiftRight, func(_, a, b number, d graph.DType) number {
			return bigShift(a, b, d, false)
		}, true},
		{"neg", single(ops.Neg), func(z, a, _ number, _ graph.DType) number {
			return z.Neg(a)
		}, true},
		{"abs", single(ops.Abs), func(z, a, _ number, _ graph.DType) number {
			return z.Abs(a)
		}, true},
		{"sign", single(ops.Sign), func(z, a, _ number, _ graph.DType) number {
			return z.SetInt64(int64(a.Sign()))
		}, true},
		{"square", single(ops.Square), func(z, a, _ number, _ graph.DType) number {
			return z.Mul(a, a)
		}, true},
		{"not", single(ops.BitNot), func(z, a, _ number, _ graph.DType) number {
			return z.Not(a)
		}, true},
	}
}

// TestIntegersWrap: arithmetic on integers of every type is that of big ones, wrapped.
func TestIntegersWrap(t *testing.T) {
	for _, d := range tensor.DTypes() {
		if !d.Integer() {
			continue
		}
		for k, o := range operations() {
			a, b := numbers(d, uint64(k), true, 300), numbers(d, 100, o.zeros, 300)
			got := integers(compute(t, func(in []graph.Value) graph.Value {
				return o.of(in[0], in[1])
			}, a, b))
			x, y := integers(a), integers(b)
			for i := range got {
				want := wrapped(o.want(new(big.Int), x[i], y[i], d), d)
				if got[i].Cmp(want) != 0 {
					t.Fatalf("%s: %s of %v and %v is %v, want %v", d, o.name, x[i], y[i], got[i],
						want)
				}
			}
		}
	}
}

// TestIntegersByZero: an integer divided by zero is an error that says where.
func TestIntegersByZero(t *testing.T) {
	for _, of := range []func(a, b graph.Value) graph.Value{ops.Div, ops.Mod, ops.Remainder} {
		_, err := try(func(in []graph.Value) graph.Value { return of(in[0], in[1]) },
			tensor.FromI32([]int32{1, 2}, 2).To(graph.I16),
			tensor.FromI32([]int32{3, 0}, 2).To(graph.I16))
		if err == nil || !strings.Contains(err.Error(),
			"integers divided by zero: element 1 of the divisor, i16[2], is 0") {
			t.Errorf("error is %v", err)
		}
	}
}

// TestSmallNumbersRoundOnce: arithmetic of 16-bit numbers is that of f32, rounded.
func TestSmallNumbersRoundOnce(t *testing.T) {
	for _, d := range []graph.DType{graph.BF16, graph.F16} {
		a, b := random(200).To(d), random(200).To(d)
		for k, of := range []func(a, b graph.Value) graph.Value{ops.Add, ops.Sub, ops.Mul, ops.Div,
			ops.Maximum, ops.Minimum, ops.Pow, ops.Mod, ops.Remainder} {
			build := func(in []graph.Value) graph.Value { return of(in[0], in[1]) }
			got := compute(t, build, a, b)
			want := compute(t, build, a.To(graph.F32), b.To(graph.F32)).To(d)
			if string(got.Data) != string(want.Data) || got.Type.DType != d {
				t.Errorf("operation %d is %v, want %v", k, got, want)
			}
		}
	}
}

// TestF64 compares arithmetic and functions of f64 with package math.
func TestF64(t *testing.T) {
	x, y := numbers(graph.F64, 1, true, 500), random(500).To(graph.F64)
	type value = graph.Value
	for name, c := range map[string]struct {
		of   func(a, b value) value
		want func(a, b float64) float64
		ulps float64
	}{
		"add": {ops.Add, func(a, b float64) float64 { return a + b }, 0},
		"sub": {ops.Sub, func(a, b float64) float64 { return a - b }, 0},
		"mul": {ops.Mul, func(a, b float64) float64 { return a * b }, 0},
		"div": {ops.Div, func(a, b float64) float64 { return a / b }, 0},
		"mod": {ops.Remainder, math.Mod, 0},
		"pow": {func(a, b value) value { return ops.Pow(ops.Abs(b), b) },
			func(_, b float64) float64 { return math.Pow(math.Abs(b), b) }, 16},
		"max": {ops.Maximum, math.Max, 0}, "min": {ops.Minimum, math.Min, 0},
		"abs":   {ofFirst(ops.Abs), firstOf(math.Abs), 0},
		"sqrt":  {ofFirst(ops.Sqrt), firstOf(math.Sqrt), 0},
		"floor": {ofFirst(ops.Floor), firstOf(math.Floor), 0},
		"ceil":  {ofFirst(ops.Ceil), firstOf(math.Ceil), 0},
		"trunc": {ofFirst(ops.Trunc), firstOf(math.Trunc), 0},
		"round": {ofFirst(ops.Round), firstOf(math.RoundToEven), 0},
		"reciprocal": {ofFirst(ops.Reciprocal),
			firstOf(func(a float64) float64 { return 1 / a }), 0},
		"exp":  {ofSecond(ops.Exp), secondOf(math.Exp), 2},
		"log":  {ofFirst(ops.Log), firstOf(math.Log), 2},
		"tanh": {ofSecond(ops.Tanh), secondOf(math.Tanh), 8},
		"sigmoid": {ofSecond(ops.Sigmoid),
			secondOf(func(a float64) float64 { return 1 / (1 + math.Exp(-a)) }), 4},
	} {
		got := compute(t, func(in []value) value { return c.of(in[0], in[1]) }, x, y).F64()
		for i, g := range got {
			a, b := x.F64()[i], y.F64()[i]
			w := c.want(a, b)
			if unit := math.Nextafter(math.Abs(w), math.Inf(1)) - math.Abs(w); g != w &&
				!(g != g && w != w) && !(math.Abs(g-w) <= c.ulps*unit) {
				t.Fatalf("%s of %g and %g is %g, want %g", name, a, b, g, w)
			}
		}
	}
}

func ofFirst(f func(graph.Value) graph.Value) func(a, b graph.Value) graph.Value {
	return func(a, _ graph.Value) graph.Value { return f(a) }
}

func ofSecond(f func(graph.Value) graph.Value) func(a, b graph.Value) graph.Value {
	return func(_, b graph.Value) graph.Value { return f(b) }
}

func firstOf(f func(float64) float64) func(a, b float64) float64 {
	return func(a, _ float64) float64 { return f(a) }
}

func secondOf(f func(float64) float64) func(a, b float64) float64 {
	return func(_, b float64) float64 { return f(b) }
}

// TestModHasTheDivisorsSign: Python's a % b of f32, its zeros too.
func TestModHasTheDivisorsSign(t *testing.T) {
	inf, nan, minus := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	a := tensor.FromF32([]float32{5, -5, 5, -5, 4, -4, 5, -5, 5, inf, 0}, 11)
	b := tensor.FromF32([]float32{3, 3, -3, -3, -2, 2, inf, inf, 0, 3, -1}, 11)
	want := []float32{2, 1, -1, -2, minus, 0, 5, inf, nan, nan, minus}
	got := compute(t, func(in []graph.Value) graph.Value { return ops.Mod(in[0], in[1]) }, a, b)
	for i, w := range want {
		if g := got.F32()[i]; math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
			t.Errorf("%g mod %g is %g, want %g", a.F32()[i], b.F32()[i], g, w)
		}
	}
}

// TestBitCast: the bits stay.
func TestBitCast(t *testing.T) {
	for _, from := range tensor.DTypes() {
		for _, to := range tensor.DTypes() {
			if from.Size() != to.Size() || to == graph.Bool {
				continue
			}
			x := numbers(from, 1, true, 9)
			got := compute(t, func(in []graph.Value) graph.Value {
				return ops.Concat(0, ops.BitCast(in[0], to))
			}, x)
			if string(got.Data) != string(x.Data) || got.Type.DType != to {
				t.Errorf("%v becomes %v", x, got)
			}
		}
	}
}

// TestGradientsOfOtherTypes: those of f64, bf16 and f16 are those of f32, as far as the type goes.
func TestGradientsOfOtherTypes(t *testing.T) {
	build := func(in []graph.Value) graph.Value {
		a, b := in[0], ops.AddScalar(ops.Abs(in[1]), 0.5)
		y := ops.Add(ops.Mul(a, b), ops.Div(ops.Tanh(a), b))
		y = ops.Sub(y, ops.Maximum(ops.Sigmoid(a), ops.Minimum(b, ops.Pow(b, a))))
		y = ops.Add(y, ops.Where(ops.Less(a, b), ops.Exp(a), ops.Scale(ops.Log(b), 3)))
		y = ops.Mul(y, ops.Add(ops.Relu(a), ops.Sqrt(ops.Square(ops.Rsqrt(b)))))
		y = ops.Add(y, ops.Mod(a, b))
		d := autodiff.Grad(ops.Sum(ops.Mul(y, ops.Sin(a))), in...)
		return ops.Concat(0, ops.Reshape(d[0], graph.Dim{Size: -1}), d[1])
	}
	a, b := random(3, 5), random(5)
	want := compute(t, build, a, b)
	for d, tol := range map[graph.DType]float64{graph.F64: 1e-4, graph.F16: 0.05, graph.BF16: 0.3} {
		got := compute(t, build, a.To(d), b.To(d))
		if got.Type.DType != d {
			t.Fatalf("gradients of %s are %s", d, got.Type)
		}
		for i, w := range want.F32() {
			g := got.To(graph.F32).F32()[i]
			if math.Abs(float64(g-w)) > tol*(1+math.Abs(float64(w))) {
				t.Errorf("%s: gradient %d is %g, in f32 %g", d, i, g, w)
			}
		}
	}
}

// TestFoldsOfIntegers: sums, products, extremes and running sums are those of exact numbers,
// wrapped.
func TestFoldsOfIntegers(t *testing.T) {
	const rows, n = 3, 7
	for _, d := range tensor.DTypes() {
		if !d.Integer() {
			continue
		}
		x := numbers(d, 3, true, rows, n)
		exact := integers(x)
		for k, of := range []func(x graph.Value, axes ...int) graph.Value{ops.Sum, ops.Prod,
			ops.Max, ops.Min} {
			got := integers(compute(t, func(in []graph.Value) graph.Value {
				return of(in[0], 1)
			}, x))
			for r, g := range got {
				want := new(big.Int).Set(exact[r*n])
				for _, v := range exact[r*n+1 : (r+1)*n] {
					switch {
					case k == 0:
						want.Add(want, v)
					case k == 1:
						want.Mul(want, v)
					case k == 2 && v.Cmp(want) > 0, k == 3 && v.Cmp(want) < 0:
						want.Set(v)
					}
				}
				if want = wrapped(want, d); g.Cmp(want) != 0 {
					t.Errorf("%s: fold %d of row %d is %v, want %v", d, k, r, g, want)
				}
			}
		}
		at := compute(t, func(in []graph.Value) graph.Value {
			return ops.ArgMax(in[0], 1)
		}, x)
		for r, k := range at.I32() {
			for i, v := range exact[r*n : (r+1)*n] {
				if o := v.Cmp(exact[r*n+int(k)]); o > 0 || o == 0 && i < int(k) {
					t.Errorf("%s: %v at %d is beyond that at %d", d, v, i, k)
				}
			}
		}
	}
}

// TestCumSumsWrap: running sums of integers are exact ones, wrapped.
func TestCumSumsWrap(t *testing.T) {
	for _, d := range []graph.DType{graph.I32, graph.I64, graph.U32, graph.U64} {
		x := numbers(d, 4, true, 40)
		got := integers(compute(t, func(in []graph.Value) graph.Value {
			return ops.CumSum(in[0], 0)
		}, x))
		sum := new(big.Int)
		for i, v := range integers(x) {
			if want := wrapped(sum.Add(sum, v), d); got[i].Cmp(want) != 0 {
				t.Fatalf("%s: sum %d is %v, want %v", d, i, got[i], want)
			}
		}
	}
}

// TestProductsOfIntegers: products of matrices of integers are exact ones, wrapped.
func TestProductsOfIntegers(t *testing.T) {
	const batch, m, k, n = 2, 3, 5, 4
	for _, d := range [][2]graph.DType{{graph.I32, graph.I32}, {graph.I8, graph.U8},
		{graph.U8, graph.U8}} {
		a, b := numbers(d[0], 5, true, batch, 1, m, k), numbers(d[1], 6, true, batch, k, n)
		of := ops.MatMulInteger
		if d[0] == graph.I32 {
			of = ops.MatMul
		}
		got := integers(compute(t, func(in []graph.Value) graph.Value {
			return of(in[0], in[1])
		}, a, b))
		x, y := integers(a), integers(b)
		for i, g := range got { // [batch of a][batch of b][m][n]
			first, second := i/(n*m*batch), i/(n*m)%batch
			want := new(big.Int)
			for p := range k {
				want.Add(want, new(big.Int).Mul(x[(first*m+i/n%m)*k+p], y[(second*k+p)*n+i%n]))
			}
			if want = wrapped(want, graph.I32); g.Cmp(want) != 0 {
				t.Fatalf("%v: element %d is %v, want %v", d, i, g, want)
			}
		}
	}
}

package vec

import (
	"fmt"
	"math"
	"testing"
)

// benchmarkCase is one operation, and a loop that a Go programmer would write.
type benchmarkCase struct {
	name  string
	bytes int // moved an element
	f     func()
	plain func()
}

// operands are a destination, two sources, and one that is not negative.
func operands(n int) (d, x, y, z []float32) {
	s := arguments(2, n, 0, false)
	Abs(s[3], s[3])
	return s[0], s[1], s[2], s[3]
}

// simple lists arithmetic and reductions on n elements.
func simple(n int) []benchmarkCase {
	d, x, y, z := operands(n)
	var sink float32
	return []benchmarkCase{
		{"Add", 12, func() { Add(d, x, y) }, func() {
			for i := range d {
				d[i] = x[i] + y[i]
			}
		}},
		{"Mul", 12, func() { Mul(d, x, y) }, nil},
		{"Div", 12, func() { Div(d, x, y) }, nil},
		{"Max", 12, func() { Max(d, x, y) }, nil},
		{"MulScalar", 8, func() { MulScalar(d, x, 1.5) }, nil},
		{"Axpy", 12, func() { Axpy(d, 1e-9, x) }, func() {
			for i := range d {
				d[i] += 1e-9 * x[i]
			}
		}},
		{"Fma", 16, func() { Fma(d, x, y, z) }, nil},
		{"Relu", 8, func() { Relu(d, x) }, func() {
			for i, v := range x {
				d[i] = max(v, 0)
			}
		}},
		{"ReluGrad", 12, func() { ReluGrad(d, x, y) }, nil},
		{"Sqrt", 8, func() { Sqrt(d, z) }, nil},
		{"Rsqrt", 8, func() { Rsqrt(d, z) }, nil},
		{"Sum", 4, func() { sink += Sum(x) }, func() {
			for _, v := range x {
				sink += v
			}
		}},
		{"SumSquares", 4, func() { sink += SumSquares(x) }, nil},
		{"Dot", 8, func() { sink += Dot(x, y) }, func() {
			for i, v := range x {
				sink += v * y[i]
			}
		}},
		{"MaxOf", 4, func() { sink += MaxOf(x) }, nil},
	}
}

// composed lists functions, optimizers, random numbers and conversions.
func composed(n int) []benchmarkCase {
	d, x, y, z := operands(n)
	bits, words, codes := make([]uint16, n), make([]uint32, n), make([]uint8, n)
	var sink float32
	of := func(f func(float64) float64) func() {
		return func() {
			for i, v := range x {
				d[i] = float32(f(float64(v)))
			}
		}
	}
	return []benchmarkCase{
		{"Exp", 8, func() { Exp(d, x) }, of(math.Exp)},
		{"ExpSum", 8, func() { sink += ExpSum(d, x, 3) }, nil},
		{"Log", 8, func() { Log(d, z) }, of(math.Log)},
		{"Tanh", 8, func() { Tanh(d, x) }, of(math.Tanh)},
		{"TanhGrad", 12, func() { TanhGrad(d, x, y) }, nil},
		{"Sigmoid", 8, func() {
			Sigmoid(d,
				x)
		}, of(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })},
		{"Erf", 8, func() { Erf(d, x) }, of(math.Erf)},
		{"Gelu", 8, func() { Gelu(d, x) }, of(func(x float64) float64 {
			return x / 2 * (1 +
				math.Erf(x/math.Sqrt2))
		})},
		{"GeluGrad", 12, func() { GeluGrad(d, x, y) }, nil},
		{"Softmax", 8, func() { Softmax(d, x) }, nil},
		{"LogSumExp", 4, func() { _, rest := LogSumExp(x); sink += rest }, nil},
		{"SGD", 12, func() { SGD(d, x, 1e-9) }, nil},
		{"Momentum", 20, func() { Momentum(d, y, x, 1e-9, 0.9) }, nil},
		{"Adam", 28, func() { Adam(d, y, z, x, 1e-9, 0.9, 0.999, 1e-8, 0.5, 0.5) }, func() {
			for i := range d {
				y[i] = 0.9*y[i] + 0.1*x[i]
				z[i] = 0.999*z[i] + 0.001*x[i]*x[i]
				d[i] -= 1e-9 * y[i] / (float32(math.Sqrt(float64(z[i]))) + 1e-8)
			}
		}},
		{"Philox", 4, func() { Philox(words, 1, 0) }, func() { philoxGo(words, 1, 0) }},
		{"Dropout", 8, func() { Dropout(d, x, 0.9, 1, 0) }, nil},
		{"BF16FromF32", 6, func() { BF16FromF32(bits, x) }, nil},
		{"F32FromBF16", 6, func() { F32FromBF16(d, bits) }, nil},
		{"F16FromF32", 6, func() { F16FromF32(bits, x) }, nil},
		{"BF16Low", 10, func() { BF16Low(bits, x, words) }, nil},
		{"Signed8", 9, func() { active.signed8(codes, x, words) }, nil},
		{"Unsigned8", 9, func() { active.unsigned8(codes, x, words) }, nil},
		{"FromSigned8", 5, func() { active.fromSigned8(d, codes) }, nil},
		{"FromUnsigned8", 5, func() { active.fromUnsigned8(d, codes) }, nil},
		{"F32FromF16", 6, func() { F32FromF16(d, bits) }, nil},
	}
}

// BenchmarkOps reports nanoseconds an element and GB/s with operands in cache.
func BenchmarkOps(b *testing.B) {
	const n = 4096
	for _, c := range append(simple(n), composed(n)...) {
		run := func(name string, f func()) {
			if f == nil {
				return
			}
			b.Run(c.name+"/"+name, func(b *testing.B) { measure(b, n, c.bytes, f) })
		}
		run("vec", c.f)
		run("plain", c.plain)
	}
}

// measure reports the rate of f, which processes n elements of so many bytes.
func measure(b *testing.B, n, bytes int, f func()) {
	b.SetBytes(int64(bytes * n))
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
}

// BenchmarkImplementations compares the instruction sets.
func BenchmarkImplementations(b *testing.B) {
	const n = 4096
	for _, c := range append(maps(), folds()...) {
		for _, k := range available() {
			s := arguments(2, n, 0, false)
			b.Run(c.name+"/"+k.name, func(b *testing.B) {
				measure(b, n, 4,
					func() { c.run(k, s) })
			})
		}
	}
}

// BenchmarkSizes shows the cost of a call, and rates beyond the caches.
func BenchmarkSizes(b *testing.B) {
	for _, n := range []int{16, 64, 512, 1 << 14, 1 << 18, 1 << 23} {
		s := arguments(2, n, 0, false)
		b.Run(fmt.Sprintf("Add/%d", n),
			func(b *testing.B) { measure(b, n, 12, func() { Add(s[0], s[1], s[2]) }) })
		b.Run(fmt.Sprintf("Softmax/%d", n),
			func(b *testing.B) { measure(b, n, 8, func() { Softmax(s[0], s[1]) }) })
	}
}

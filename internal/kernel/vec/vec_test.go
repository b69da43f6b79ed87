package vec

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLongSlicesAreSpansOneAfterTheOther compares a call on more than a span
// with calls on pieces.
func TestLongSlicesAreSpansOneAfterTheOther(t *testing.T) {
	const n = 2*span + 77
	s := arguments(7, n, 0, false)
	Exp(s[0], s[1])
	Add(s[2], s[2], s[3])
	again := arguments(7, n, 0, false)
	var sum float32
	for lo := 0; lo < n; lo += span {
		hi := min(lo+span, n)
		p := part(again, lo, hi)
		Exp(p[0], p[1])
		Add(p[2], p[2], p[3])
		sum += Sum(p[1])
	}
	for i := range s {
		if d := differ(s[i], again[i]); d != "" {
			t.Fatal(d)
		}
	}
	if got := Sum(s[1]); got != sum {
		t.Errorf("sum %g, of spans %g", got, sum)
	}
}

// TestShortSourcesPanic checks that no kernel runs beyond a source.
func TestShortSourcesPanic(t *testing.T) {
	five, four := make([]float32, 5), make([]float32, 4, 5)
	halves, words := make([]uint16, 4), make([]float32, 5)
	for name, f := range map[string]func(){
		"Add":         func() { Add(five, five, four) },
		"Axpy":        func() { Axpy(five, 1, four) },
		"Dot":         func() { Dot(five, four) },
		"Softmax":     func() { Softmax(five, four) },
		"Adam":        func() { Adam(five, five, four, five, 1, 0, 0, 0, 1, 1) },
		"Dropout":     func() { Dropout(five, four, 0.5, 0, 0) },
		"F32FromBF16": func() { F32FromBF16(words, halves) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text,
					"4 elements where the destination has 5") {
					t.Errorf("panic %q", text)
				}
			}()
			f()
		})
	}
}

func TestReductionsOfNothing(t *testing.T) {
	if Sum(nil) != 0 || SumSquares(nil) != 0 || Dot(nil, nil) != 0 {
		t.Error("an empty sum is not zero")
	}
	if most, _ := LogSumExp(nil); !math.IsInf(float64(MaxOf(nil)), -1) || most != MaxOf(nil) {
		t.Error("an empty maximum is not −Inf")
	}
	Softmax(nil, nil)
	Exp(nil, nil)
	Philox(nil, 1, 3)
}

// TestSumsAreWithinTheRoundingOfTheirTree bounds the error of a sum by the
// depth of the tree: terms in a lane, folds, spans.
func TestSumsAreWithinTheRoundingOfTheirTree(t *testing.T) {
	const ulp = 0x1p-24
	for _, n := range append(lengths(), span+1, 3*span+5) {
		s := arguments(8, n, 0, false)
		x, y := s[0], s[1]
		var sum, abs, squares, dot, dotAbs float64
		for i := range x {
			a, b := float64(x[i]), float64(y[i])
			sum += a
			abs += math.Abs(a)
			squares += a * a
			dot += a * b
			dotAbs += math.Abs(a * b)
		}
		depth := float64(min(n, span)/64+8+n/span) * ulp
		for _, c := range []struct {
			name             string
			got              float32
			want, magnitudes float64
		}{
			{"Sum", Sum(x), sum, abs},
			{"SumSquares", SumSquares(x), squares, squares}, {"Dot", Dot(x, y), dot, dotAbs},
		} {
			if e := math.Abs(float64(c.got) - c.want); e > depth*c.magnitudes {
				t.Errorf("%s of %d: %g, want %g", c.name, n, c.got, c.want)
			}
		}
	}
}

func TestMaxOfFindsTheLargestAndNaN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32(), 1, 300).Draw(t, "x")
		want := x[0]
		for _, v := range x {
			want = max(want, v)
		}
		if got := MaxOf(x); got != want && (got == got || want == want) {
			t.Fatalf("got %g, want %g", got, want)
		}
		x[rapid.IntRange(0, len(x)-1).Draw(t, "place")] = float32(math.NaN())
		if got := MaxOf(x); got == got {
			t.Fatalf("a NaN was lost: %g", got)
		}
	})
}

// TestMaxAndMinKeepNaN checks both operands, as the instruction keeps only one.
func TestMaxAndMinKeepNaN(t *testing.T) {
	nan := float32(math.NaN())
	a, b, dst := []float32{nan, 1, nan, 1}, []float32{1, nan, nan, 2}, make([]float32, 4)
	Max(dst, a, b)
	if d := differ(dst, []float32{nan, nan, nan, 2}); d != "" {
		t.Error("max:", d)
	}
	Min(dst, a, b)
	if d := differ(dst, []float32{nan, nan, nan, 1}); d != "" {
		t.Error("min:", d)
	}
}

func TestSoftmaxIsADistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32Range(-1e4, 1e4), 1, 300).Draw(t, "x")
		y := make([]float32, len(x))
		Softmax(y, x)
		var sum, most float64
		for _, v := range x {
			most = max(most, float64(v)-float64(x[0]))
		}
		for _, v := range x {
			sum += math.Exp(float64(v) - float64(x[0]) - most)
		}
		for i, v := range x {
			want := math.Exp(float64(v)-float64(x[0])-most) / sum
			// The difference from the maximum is rounded before the exponential.
			slack := 1e-7 + math.Abs(float64(v)-float64(x[0])-most)*0x1p-23
			if math.Abs(float64(y[i])-want) > want*(slack+2e-6)+0x1p-140 {
				t.Fatalf("element %d: %g, want %g", i, y[i], want)
			}
		}
		gotMost, rest := LogSumExp(x)
		if want := math.Log(sum); gotMost != slices.Max(x) ||
			math.Abs(float64(rest)-want) > 1e-6*(1+math.Abs(want)) {
			t.Fatalf("log-sum-exp %g and %g, want %g and %g", gotMost, rest, slices.Max(x), want)
		}
	})
}

func TestRowsWithInfinities(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x, softmax []float32
		most, rest float32
	}{
		{[]float32{-inf, 0, -inf}, []float32{0, 1, 0}, 0, 0},
		{[]float32{-inf, -inf}, []float32{nan, nan}, -inf, nan},
		{[]float32{inf, 0}, []float32{nan, nan}, inf, nan},
		{[]float32{nan, 0}, []float32{nan, nan}, nan, nan},
		{[]float32{-1000, -1000}, []float32{0.5, 0.5}, -1000, math.Ln2},
	} {
		y := make([]float32, len(c.x))
		Softmax(y, c.x)
		if c.x[0] == inf {
			y[1] = nan // zero over infinity: either is fair
		}
		if d := differ(y, c.softmax); d != "" {
			t.Errorf("softmax %v: %s", c.x, d)
		}
		if most, rest := LogSumExp(c.x); !same(most, c.most) || !same(rest, c.rest) {
			t.Errorf("log-sum-exp %v: %g and %g, want %g and %g", c.x, most, rest, c.most, c.rest)
		}
	}
}

// TestOptimizersFollowTheirFormulas compares one step with float64.
func TestOptimizersFollowTheirFormulas(t *testing.T) {
	const lr, mu, eps, corr1, corr2 = 0.01, 0.9, 1e-8, 0.19, 0.001999
	// exact, as 1−beta2 would magnify the rounding of 0.999
	const beta1, beta2 = 0.875, 0x1.ff7cecp-1
	near := func(what string, got float32, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	for _, n := range []int{1, 16, 37, 100} {
		old, s := arguments(9, n, 0, false), arguments(9, n, 0, false)
		SGD(s[0], s[3], lr)
		for i := range n {
			near("sgd", s[0][i], float64(old[0][i])-lr*float64(old[3][i]))
		}
		s = arguments(9, n, 0, false)
		Momentum(s[0], s[1], s[3], lr, mu)
		for i := range n {
			m := mu*float64(old[1][i]) + float64(old[3][i])
			near("momentum m", s[1][i], m)
			near("momentum w", s[0][i], float64(old[0][i])-lr*m)
		}
		s = arguments(9, n, 0, false)
		Abs(s[2], s[2])
		Adam(s[0], s[1], s[2], s[3], lr, beta1, beta2, eps, corr1, corr2)
		for i := range n {
			w, g := float64(old[0][i]), float64(old[3][i])
			m := beta1*float64(old[1][i]) + (1-beta1)*g
			v := beta2*math.Abs(float64(old[2][i])) + (1-beta2)*g*g
			near("adam m", s[1][i], m)
			near("adam v", s[2][i], v)
			near("adam w", s[0][i], w-lr*(m/corr1)/(math.Sqrt(v/corr2)+eps))
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	s, words, far := arguments(12, 1000, 0, false), make([]uint32, 1000), Far()
	for name, f := range map[string]func(){
		"Fma":           func() { Fma(s[0], s[1], s[2], s[3]) },
		"Softmax":       func() { Softmax(s[0], s[1]) },
		"Adam":          func() { Adam(s[0], s[1], s[2], s[3], 0.1, 0.9, 0.99, 1e-8, 1, 1) },
		"Philox":        func() { Philox(words, 1, 3) },
		"Dropout":       func() { Dropout(s[0], s[1], 0.5, 1, 3) },
		"far Exp":       func() { far.Exp(s[0], s[1]) },
		"far Add":       func() { far.Add(s[0], s[1], s[2]) },
		"far Dropout":   func() { DropoutFar(s[0], s[1], 0.5, 1, 4) },
		"LayerNorm":     func() { LayerNorm(s[0], s[1], s[2], s[3], 0.1, true) },
		"LayerNormGrad": func() { LayerNormGrad(s[0], s[1], s[2], s[3], 0.1, true) },
		"RMSNorm":       func() { RMSNorm(s[0], s[1], s[2], 0.1, true) },
		"RMSNormGrad":   func() { RMSNormGrad(s[0], s[1], s[2], s[3], 0.1, true) },
		"SoftmaxRows":   func() { SoftmaxRows(s[0], s[1], 100, true) },
		"SoftmaxGrad":   func() { SoftmaxGrad(s[0], s[1], s[2], 100, true) },
	} {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
}

package vec

import (
	"math"
	"testing"
)

// rowCase is a function of rows of n elements, and what it computes, in float64,
// for one row.
type rowCase struct {
	name string
	run  func(s [4][]float32, n int, far bool)
	want func(x, y, z []float64) []float64
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func product(a, b []float64) []float64 {
	p := make([]float64, len(a))
	for i := range a {
		p[i] = a[i] * b[i]
	}
	return p
}

// standard is x less its mean over its standard deviation, and the inverse of
// that; for the root mean square, the mean is taken as zero.
func standard(x []float64, centre bool) (y []float64, inv float64) {
	m := 0.0
	if centre {
		m = mean(x)
	}
	y = make([]float64, len(x))
	for i, v := range x {
		y[i] = v - m
	}
	inv = 1 / math.Sqrt(mean(product(y, y))+0.1)
	for i := range y {
		y[i] *= inv
	}
	return y, inv
}

func normGradient(x, scale, d []float64, centre bool) []float64 {
	y, inv := standard(x, centre)
	g := product(scale, d)
	along, m := mean(product(g, y)), 0.0
	if centre {
		m = mean(g)
	}
	for i := range g {
		g[i] = inv * (g[i] - m - y[i]*along)
	}
	return g
}

func softmax64(x []float64) []float64 {
	e, sum := make([]float64, len(x)), 0.0
	for i, v := range x {
		e[i] = math.Exp(v - x[0])
		sum += e[i]
	}
	for i := range e {
		e[i] /= sum
	}
	return e
}

func rowCases() []rowCase {
	return []rowCase{
		{"LayerNorm", func(s [4][]float32, n int, far bool) {
			LayerNorm(s[0], s[1], s[2][:n], s[3][:n], 0.1, far)
		},
			func(x, scale, bias []float64) []float64 {
				y, _ := standard(x, true)
				y = product(y, scale)
				for i := range y {
					y[i] += bias[i]
				}
				return y
			}},
		{"RMSNorm", func(s [4][]float32, n int, far bool) {
			RMSNorm(s[0], s[1], s[2][:n], 0.1, far)
		},
			func(x, scale, _ []float64) []float64 {
				y, _ := standard(x, false)
				return product(y, scale)
			}},
		{"LayerNormGrad", func(s [4][]float32, n int, far bool) {
			LayerNormGrad(s[0], s[1], s[2][:n], s[3], 0.1, far)
		},
			func(x, scale, d []float64) []float64 { return normGradient(x, scale, d, true) }},
		{"RMSNormGrad", func(s [4][]float32, n int, far bool) {
			RMSNormGrad(s[0], s[1], s[2][:n], s[3], 0.1, far)
		},
			func(x, scale, d []float64) []float64 { return normGradient(x, scale, d, false) }},
		{"SoftmaxRows", func(s [4][]float32, n int, far bool) { SoftmaxRows(s[0], s[1], n, far) },
			func(x, _, _ []float64) []float64 { return softmax64(x) }},
		{"SoftmaxGrad", func(s [4][]float32, n int, far bool) {
			SoftmaxGrad(s[0], s[1], s[2], n, far)
		},
			func(y, d, _ []float64) []float64 {
				dot := mean(product(y, d)) * float64(len(y))
				g := product(y, d)
				for i := range g {
					g[i] -= y[i] * dot
				}
				return g
			}},
		{"SoftmaxAffine", func(s [4][]float32, n int, _ bool) {
			for lo := 0; lo < len(s[0]); lo += n {
				SoftmaxAffine(s[0][lo:lo+n], s[1][lo:lo+n], 3, -0.5)
			}
		}, func(x, _, _ []float64) []float64 {
			e := softmax64(x)
			for i := range e {
				e[i] = 3*e[i] - 0.5
			}
			return e
		}},
	}
}

// rowsOf returns four slices of some rows of n elements; scale and bias of every
// row are those of the first.
func rowsOf(count, n int) [4][]float32 {
	s, _ := atLine(9, count*n, false)
	for i := range s {
		for j, v := range s[i] {
			s[i][j] = float32(math.Tanh(float64(v))) + 0.25*float32(i)
		}
	}
	return s
}

// TestRowsAgainstFloat64 compares every function of rows with its formula.
func TestRowsAgainstFloat64(t *testing.T) {
	for _, c := range rowCases() {
		for _, n := range []int{1, 5, 64, 77, 1024} {
			const count = 3
			s := rowsOf(count, n)
			c.run(s, n, false)
			for row := range count {
				at := row * n
				second, third := s[2][:n], s[3][:n]
				switch c.name {
				case "LayerNormGrad", "RMSNormGrad":
					third = s[3][at : at+n]
				case "SoftmaxGrad":
					second = s[2][at : at+n]
				}
				want := c.want(wide(s[1][at:at+n]), wide(second), wide(third))
				for i, w := range want {
					got := float64(s[0][at+i])
					if tolerance := 2e-6 * float64(n) / (1 +
						math.Sqrt(float64(n))); math.Abs(got-w) > tolerance*(1+math.Abs(w)) {
						t.Fatalf("%s, rows of %d, element %d: %g, want %g", c.name, n, i, got, w)
					}
				}
			}
		}
	}
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// TestFarRowsGiveTheSameBits, also rows that far kernels do not take, and in place.
func TestFarRowsGiveTheSameBits(t *testing.T) {
	for _, c := range rowCases() {
		for _, n := range []int{5, 64, 192, 1000, 1024} {
			near, far, over := rowsOf(5, n), rowsOf(5, n), rowsOf(5, n)
			c.run(near, n, false)
			c.run(far, n, true)
			over[0] = over[1]
			c.run(over, n, true)
			if d := differ(far[0], near[0]); d != "" {
				t.Errorf("%s, rows of %d: %s", c.name, n, d)
			}
			if d := differ(over[0], near[0]); d != "" {
				t.Errorf("%s, rows of %d, in place: %s", c.name, n, d)
			}
		}
	}
}

// TestRowsLongerThanASpan have the sums of their spans.
func TestRowsLongerThanASpan(t *testing.T) {
	const n = span + 64
	for _, c := range rowCases() {
		near, far := rowsOf(2, n), rowsOf(2, n)
		c.run(near, n, false)
		c.run(far, n, true)
		if d := differ(far[0], near[0]); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestMomentsOfAFarRow: a row a thousand standard deviations from zero keeps its
// variance, which the difference of two sums would lose.
func TestMomentsOfAFarRow(t *testing.T) {
	x := make([]float32, 1000)
	for i := range x {
		x[i] = 4096 + float32(i%2)
	}
	mean, inv := Moments(x, 0)
	if mean != 4096.5 || math.Abs(float64(inv)-2) > 1e-5 {
		t.Errorf("mean %g, inverse deviation %g, want 4096.5 and 2", mean, inv)
	}
}

// TestWrongRowsPanic: a bias or a gradient shorter than its row, and parts of rows.
func TestWrongRowsPanic(t *testing.T) {
	ten, four := make([]float32, 10), make([]float32, 4)
	for name, f := range map[string]func(){
		"bias":     func() { LayerNorm(ten, ten, ten[:5], four, 0, false) },
		"operand":  func() { RMSNorm(ten, four, ten[:5], 0, false) },
		"gradient": func() { RMSNormGrad(ten, ten, ten[:5], four, 0, false) },
		"softmax":  func() { SoftmaxRows(ten, four, 5, false) },
		"no rows":  func() { SoftmaxRows(ten, ten, 0, false) },
		"a part":   func() { RMSNorm(ten, ten, four, 0, true) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

package distrib_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

// dyadic draws numbers of which sums and products of a few are exact.
func dyadic(t *rapid.T, n int, label string) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(rapid.IntRange(-64, 64).Draw(t, label)) / 8
	}
	return out
}

// drawSparse draws some elements of n.
func drawSparse(t *rapid.T, n int) distrib.Sparse {
	s := distrib.Sparse{N: n}
	for i := range n {
		if rapid.IntRange(0, 3).Draw(t, "there") == 0 {
			s.Idx = append(s.Idx, uint32(i))
		}
	}
	s.Val = dyadic(t, len(s.Idx), "value")
	return s
}

func drawFactored(t *rapid.T, rows, cols int) distrib.Factored {
	r := rapid.IntRange(0, 4).Draw(t, "rank")
	return distrib.Factored{R: r, J: rows, K: cols,
		A: dyadic(t, r*rows, "a"), B: dyadic(t, r*cols, "b")}
}

// drawUpdate draws any form.
func drawUpdate(t *rapid.T, rows, cols int) distrib.Update {
	switch rapid.IntRange(0, 2).Draw(t, "form") {
	case 0:
		return distrib.Dense(dyadic(t, rows*cols, "dense"))
	case 1:
		return drawSparse(t, rows*cols)
	}
	return drawFactored(t, rows, cols)
}

func drawShape(t *rapid.T) (rows, cols int) {
	return rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "cols")
}

// matrix is an update as a matrix, element by element, by its definition.
func matrix(u distrib.Update, rows, cols int) []float32 {
	out := make([]float32, rows*cols)
	switch u := u.(type) {
	case distrib.Half:
		return matrix(u.Update, rows, cols)
	case distrib.Dense:
		copy(out, u)
	case distrib.Sparse:
		for i, at := range u.Idx {
			out[at] = u.Val[i]
		}
	case distrib.Factored:
		for j := range rows {
			for k := range cols {
				for r := range u.R {
					out[j*cols+k] += float32(u.A[r*rows+j] * u.B[r*cols+k])
				}
			}
		}
	}
	return out
}

func plus(x, y []float32) []float32 {
	out := slices.Clone(x)
	for i, v := range y {
		out[i] += v
	}
	return out
}

func TestAddToIsTheMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := drawShape(t)
		u := drawUpdate(t, rows, cols)
		base := dyadic(t, rows*cols, "base")
		got := slices.Clone(base)
		u.AddTo(got, cols, -0.5)
		want := slices.Clone(base)
		for i, v := range matrix(u, rows, cols) {
			want[i] -= v / 2
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%T: %v, want %v", u, got, want)
		}
	})
}

// TestLargeFactors: blocks of columns change no bit.
func TestLargeFactors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	u := distrib.Factored{R: 7, J: 2, K: 1300}
	for range u.R * u.J {
		u.A = append(u.A, float32(rng.NormFloat64()))
	}
	for range u.R * u.K {
		u.B = append(u.B, float32(rng.NormFloat64()))
	}
	if got := distrib.AsDense(u); !slices.Equal(got, matrix(u, u.J, u.K)) {
		t.Error("the blocked sum is another")
	}
	want := math.Sqrt(squares(matrix(u, u.J, u.K)))
	if got := u.Norm(); math.Abs(got-want) > 1e-5*want {
		t.Errorf("norm %v, want %v", got, want)
	}
}

func squares(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

func TestNorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := drawShape(t)
		u := drawUpdate(t, rows, cols)
		want := math.Sqrt(squares(matrix(u, rows, cols)))
		if got := u.Norm(); math.Abs(got-want) > 1e-6*(1+want) {
			t.Fatalf("%T: %v, want %v", u, got, want)
		}
	})
}

// TestAdd: sums are sums, and nothing changes what it was made of, except that AddOwned
// may change its first operand.
func TestAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := drawShape(t)
		var owned, sum distrib.Update
		want := make([]float32, rows*cols)
		for range rapid.IntRange(1, 6).Draw(t, "updates") {
			u := drawUpdate(t, rows, cols)
			before, half := matrix(u, rows, cols), distrib.Half{Update: u, As: distrib.F16}
			was, last := sum, want
			sum, want = distrib.Add(sum, half), plus(want, before)
			distrib.Add(was, distrib.Dense(before)) // nor what another sum is made of
			if !slices.Equal(matrix(was, rows, cols), last) {
				t.Fatal("a first operand changed")
			}
			if owned == nil {
				owned = distrib.AsDense(u)
			} else {
				owned = distrib.AddOwned(owned, u)
			}
			for _, s := range []distrib.Update{sum, owned} {
				if err := distrib.Check(s, rows, cols); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(matrix(s, rows, cols), want) {
					t.Fatalf("%T: %v, want %v", s, matrix(s, rows, cols), want)
				}
			}
			if !slices.Equal(matrix(u, rows, cols), before) {
				t.Fatal("an operand changed")
			}
		}
	})
}

// TestSumsShareNoMemory: of one update several sums of factors can be made.
func TestSumsShareNoMemory(t *testing.T) {
	one := func(v float32) distrib.Factored {
		roomy := append(make([]float32, 0, 64), slices.Repeat([]float32{v}, 8)...)
		return distrib.Factored{R: 1, J: 8, K: 8, A: roomy, B: slices.Clone(roomy)}
	}
	pair := distrib.AddOwned(one(1), one(2)) // whose memory has room for more
	a, b := distrib.Add(pair, one(3)), distrib.Add(pair, one(4))
	if got, want := matrix(a, 8, 8)[0], float32(1+4+9); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := matrix(b, 8, 8)[0], float32(1+4+16); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAddKeepsSmallForms: what merges into what.
func TestAddKeepsSmallForms(t *testing.T) {
	sparse := func(idx ...uint32) distrib.Sparse {
		return distrib.Sparse{N: 8, Idx: idx, Val: make([]float32, len(idx))}
	}
	rank := func(r int) distrib.Factored {
		return distrib.Factored{R: r, J: 4, K: 2, A: make([]float32, 4*r), B: make([]float32, 2*r)}
	}
	for _, c := range []struct {
		a, b distrib.Update
		want string
	}{
		{sparse(1, 2), sparse(2, 5, 7), "distrib.Sparse"},
		{sparse(1, 2), sparse(3, 5, 7), "distrib.Dense"},
		{sparse(1), make(distrib.Dense, 8), "distrib.Dense"},
		{rank(0), rank(1), "distrib.Factored"},
		{rank(1), rank(1), "distrib.Dense"},
		{rank(1), sparse(1), "distrib.Dense"},
		{nil, rank(1), "distrib.Factored"},
		{rank(1), nil, "distrib.Factored"},
		{nil, nil, "<nil>"},
		{distrib.Half{Update: sparse(1)}, nil, "distrib.Sparse"},
	} {
		if got := fmt.Sprintf("%T", distrib.Add(c.a, c.b)); got != c.want {
			t.Errorf("%T + %T is %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

func TestAddRefusesOtherShapes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	distrib.Add(make(distrib.Dense, 3), make(distrib.Dense, 4))
}

func TestSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := drawShape(t)
		u := drawUpdate(t, rows, cols)
		if rapid.Bool().Draw(t, "half") {
			u = distrib.Half{Update: u, As: distrib.BF16}
		}
		row := rapid.IntRange(0, rows-1).Draw(t, "row")
		n := rapid.IntRange(1, rows-row).Draw(t, "n")
		got := distrib.Slice(u, cols, row, n)
		part := make([]float32, n*cols)
		if got != nil {
			if err := distrib.Check(got, n, cols); err != nil {
				t.Fatal(err)
			}
			part = matrix(got, n, cols)
		}
		if want := matrix(u, rows, cols)[row*cols : (row+n)*cols]; !slices.Equal(part, want) {
			t.Fatalf("%T rows [%d,+%d): %v, want %v", u, row, n, part, want)
		}
	})
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		u    distrib.Update
		want string
	}{
		{nil, "no update does not fit 2 rows of 3"},
		{make(distrib.Dense, 5), "a dense update of 5 elements does not fit 2 rows of 3"},
		{distrib.Sparse{N: 5}, "a sparse update of 5 elements does not fit 2 rows of 3"},
		{distrib.Sparse{N: 6, Idx: []uint32{1}},
			"a sparse update of 1 indices and 0 values does not fit 2 rows of 3"},
		{distrib.Sparse{N: 6, Idx: []uint32{6}, Val: []float32{1}},
			"a sparse update of element 6 does not fit 2 rows of 3"},
		{distrib.Sparse{N: 6, Idx: []uint32{2, 2}, Val: []float32{1, 1}},
			"a sparse update whose indices do not ascend does not fit 2 rows of 3"},
		{distrib.Factored{R: 1, J: 2, K: 3, A: make([]float32, 2)},
			"an update of 1 factors of 2 and 3 with 2 and 0 numbers does not fit 2 rows of 3"},
		{distrib.Half{Update: make(distrib.Dense, 6)},
			"an update rounded to f32 does not fit 2 rows of 3"},
	} {
		err := distrib.Check(c.u, 2, 3)
		var shape *distrib.ShapeError
		if !errors.As(err, &shape) || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// BenchmarkUpdates is how fast updates are added up, and written: bytes of the numbers.
func BenchmarkUpdates(b *testing.B) {
	const rows, cols, rank = 512, 512, 32
	rng := rand.New(rand.NewPCG(1, 1))
	sparse := distrib.Sparse{N: rows * cols}
	for i := 0; i < sparse.N; i += 5 {
		sparse.Idx, sparse.Val = append(sparse.Idx, uint32(i)), append(sparse.Val, 1)
	}
	for name, u := range map[string]distrib.Update{
		"dense":  distrib.Dense(normals(rng, rows*cols)),
		"sparse": sparse,
		"factored": distrib.Factored{R: rank, J: rows, K: cols, A: normals(rng, rank*rows),
			B: normals(rng, rank*cols)},
	} {
		dst := make([]float32, rows*cols)
		b.Run(name+"/add", func(b *testing.B) {
			b.SetBytes(4 * rows * cols)
			for range b.N {
				u.AddTo(dst, cols, 0.5)
			}
		})
		var wire []byte
		b.Run(name+"/write", func(b *testing.B) {
			b.SetBytes(int64(u.WireSize()))
			for range b.N {
				wire = u.AppendWire(wire[:0])
			}
		})
	}
}

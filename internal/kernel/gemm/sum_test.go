package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// numbers returns n of them.
func numbers(n int) []float32 {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	s := make([]float32, n)
	for i := range s {
		s[i] = rng.Float32()*2 - 1
	}
	return s
}

// drawSum draws a sum of products with operands that overlap each other.
func drawSum(t *rapid.T) *Sum {
	s := &Sum{M: dim(t, "m"), N: dim(t, "n"), K: dim(t, "k"), Add: rapid.Bool().Draw(t, "add")}
	pad := rapid.SampledFrom([]int{0, 1, 16})
	s.RowB, s.RowC = s.N+pad.Draw(t, "row of b"), s.N+pad.Draw(t, "row of c")
	if s.RowA, s.ColA = s.K+pad.Draw(t, "row of a"), 1; rapid.Bool().Draw(t, "a is transposed") {
		s.RowA, s.ColA = 1, s.M+pad.Draw(t, "column of a")
	}
	for range rapid.IntRange(1, 5).Draw(t, "terms") {
		at := rapid.IntRange(0, 40)
		s.Terms = append(s.Terms, Term{at.Draw(t, "a"), at.Draw(t, "b")})
	}
	s.A = numbers(40 + (s.M-1)*s.RowA + (s.K-1)*s.ColA + 1)
	s.B = numbers(40 + (s.K-1)*s.RowB + s.N)
	s.C = numbers((s.M-1)*s.RowC + s.N)
	return s
}

// compare compares a result with a sum in float64.
func (s *Sum) compare(got []float32) error {
	want := append([]float32(nil), s.C...)
	for e := range s.M * s.N {
		i, j := e/s.N, e%s.N
		at := i*s.RowC + j
		var value, size float64
		if s.Add {
			value, size = float64(s.C[at]), math.Abs(float64(s.C[at]))
		}
		for _, t := range s.Terms {
			for k := range s.K {
				x := float64(s.A[t.A+i*s.RowA+k*s.ColA]) * float64(s.B[t.B+k*s.RowB+j])
				value, size = value+x, size+math.Abs(x)
			}
		}
		limit := float64(len(s.Terms)*s.K+3) * 0x1p-24 * size
		if diff := math.Abs(float64(got[at]) - value); !(diff <= limit) {
			return fmt.Errorf("element (%d, %d) is %v, want %v", i, j, got[at], value)
		}
		want[at] = got[at]
	}
	return sameBits(got, want)
}

func TestSum(t *testing.T) {
	everyISA(t, func(t *testing.T, set *isa) {
		rapid.Check(t, func(t *rapid.T) {
			s := drawSum(t)
			y := *s
			y.C = append([]float32(nil), s.C...)
			y.compute(set)
			if err := s.compare(y.C); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// TestSumOfCopies: operands that are copied, for many rows and columns, give the bits of
// those that are not.
func TestSumOfCopies(t *testing.T) {
	everyISA(t, func(t *testing.T, set *isa) {
		for _, d := range [][3]int{{31, 70, 64}, {75, 300, 65}, {336, 130, 512}, {40, 97, 513}} {
			for _, trans := range []bool{false, true} {
				s := Sum{M: d[0], N: d[1], K: d[2], Terms: []Term{{3, 5}}, RowB: d[1] + 7,
					RowC: d[1]}
				if s.RowA, s.ColA = s.K+1, 1; trans {
					s.RowA, s.ColA = 1, s.M+1
				}
				s.A = numbers(3 + (s.M-1)*s.RowA + (s.K-1)*s.ColA + 1)
				s.B, s.C = numbers(5+(s.K-1)*s.RowB+s.N), make([]float32, s.M*s.N)
				part := s
				part.C = make([]float32, len(s.C))
				whole := part.C
				s.compute(set)
				for n := 0; n < s.N; n += 8 {
					part.N, part.Terms, part.C = min(8, s.N-n), []Term{{3, 5 + n}}, whole[n:]
					part.compute(set)
				}
				if err := sameBits(s.C, whole); err != nil {
					t.Errorf("%v, transposed %v: %v", d, trans, err)
				}
			}
		}
	})
}

// TestSumOfNothing: C is left alone.
func TestSumOfNothing(t *testing.T) {
	for _, s := range []Sum{{M: 1, N: 1, K: 0, Terms: []Term{{}}}, {M: 1, N: 1, K: 1},
		{N: 1, K: 1, Terms: []Term{{}}}} {
		s.C = []float32{7}
		s.Compute()
		if s.C[0] != 7 {
			t.Errorf("%+v", s)
		}
	}
}

func TestSumPanicsOnShortOperands(t *testing.T) {
	for name, spoil := range map[string]func(*Sum){
		"a":      func(s *Sum) { s.A = s.A[1:] },
		"b":      func(s *Sum) { s.B = s.B[1:] },
		"c":      func(s *Sum) { s.C = s.C[1:] },
		"term":   func(s *Sum) { s.Terms = append(s.Terms, Term{0, 1}) },
		"before": func(s *Sum) { s.Terms[0].A = -1 },
	} {
		s := Sum{M: 2, N: 3, K: 4, Terms: []Term{{}}, A: make([]float32, 8), RowA: 4, ColA: 1,
			B: make([]float32, 12), RowB: 3, C: make([]float32, 6), RowC: 3}
		s.Compute()
		spoil(&s)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			s.Compute()
		}()
	}
}

func TestTranspose(t *testing.T) {
	everyISA(t, func(t *testing.T, set *isa) {
		rapid.Check(t, func(t *rapid.T) {
			rows, cols := dim(t, "rows"), dim(t, "cols")
			rowSrc, rowDst := cols+rapid.IntRange(0, 20).Draw(t, "pad of src"),
				rows+rapid.IntRange(0, 20).Draw(t, "pad of dst")
			src, dst := numbers((rows-1)*rowSrc+cols), numbers((cols-1)*rowDst+rows)
			want := append([]float32(nil), dst...)
			for i := range rows {
				for j := range cols {
					want[j*rowDst+i] = src[i*rowSrc+j]
				}
			}
			transpose(set, dst, rowDst, src, rowSrc, rows, cols)
			if err := sameBits(dst, want); err != nil {
				t.Fatal(err)
			}
		})
	})
}

package gemm

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/longtest"
)

// narrow returns x as bfloat16 and rounds x itself to the same.
func narrow(x []float32) []uint16 {
	half := make([]uint16, len(x))
	vec.BF16FromF32(half, x)
	vec.F32FromBF16(x, half)
	return half
}

// inBF16 rounds the operands that which names (1 is A, 2 is B) to bfloat16 and returns
// the product that reads them as such.
func (x *problem) inBF16(which int) Product {
	a, b := narrow(x.a), narrow(x.b)
	y := x.product()
	if which&1 != 0 {
		y.A.F32, y.A.BF16 = nil, a
	}
	if which&2 != 0 {
		y.B.F32, y.B.BF16 = nil, b
	}
	return y
}

// resultOf returns what a product makes of a copy of its C.
func resultOf(x Product, s *isa, p *pool.Pool) []float32 {
	x.C = append([]float32(nil), x.C...)
	x.compute(s, p)
	return x.C
}

// TestBF16IsWidened: a product of bfloat16 has the bits of that of the same numbers as
// float32, and is as near to the exact one.
func TestBF16IsWidened(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			y := x.inBF16(rapid.IntRange(1, 3).Draw(t, "which operands"))
			got := resultOf(y, s, p)
			if err := sameBits(got, x.result(s, nil)); err != nil {
				t.Fatalf("%v: %v", x, err)
			}
			if err := x.check(got, 1); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestBF16Shapes(t *testing.T) {
	longtest.Skip(t)
	everyISA(t, func(t *testing.T, s *isa) {
		if s == portable && raceEnabled {
			t.Skip("minutes long with the race detector")
		}
		for _, x := range shapes() {
			x.pack()
			y := x.inBF16(3)
			if err := sameBits(resultOf(y, s, nil), x.result(s, nil)); err != nil {
				t.Errorf("%v: %v", &x, err)
			}
		}
	})
}

func TestShortBF16Panics(t *testing.T) {
	x := problem{m: 2, n: 3, k: 4, alpha: 1}
	x.pack()
	y := x.inBF16(3)
	y.A.BF16 = y.A.BF16[:7]
	if !panics(func() { y.compute(best, nil) }) {
		t.Error("an operand of seven elements is accepted as 2×4")
	}
}

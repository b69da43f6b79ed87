package gemm

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/kernel/fewbits"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/quant"
)

// inRows packs a random matrix of at least rows×cols and returns it, and what it is as float32,
// with the elements of its rows.
func inRows(f quant.Format, rows, cols int) (fewbits.Rows, []float32, int) {
	width := ceil(cols, f.Block()) * f.Block()
	size, err := f.RowBytes(width)
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	data, x := make([]byte, rows*int(size)), make([]float32, rows*width)
	for i := range x {
		x[i] = rng.Float32()*2 - 1
	}
	for i := range rows {
		row := data[i*int(size):][:size]
		f.Pack(row, x[i*width:][:width])
		f.Unpack(x[i*width:][:width], row)
	}
	return fewbits.Rows{Format: f, Elements: width, Data: data}, x, width
}

// ofFewBits returns a problem's product with A, or B, in rows of few bits, and that with the same
// numbers.
func (x *problem) ofFewBits(f quant.Format, isA bool) (few, plain Product) {
	few, plain = x.product(), x.product()
	rows, cols, trans, a, b := x.k, x.n, x.transB, &few.B, &plain.B
	if isA {
		rows, cols, trans, a, b = x.m, x.k, x.transA, &few.A, &plain.A
	}
	if trans {
		rows, cols = cols, rows
	}
	*a, *b = Matrix{Trans: trans}, Matrix{Trans: trans}
	a.Rows, b.F32, b.LD = inRows(f, rows, cols)
	return few, plain
}

// TestFewBitsAreWidened: a product of rows of few bits has the bits of that of the same numbers as
// float32.
func TestFewBitsAreWidened(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	formats := quant.All()
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			x.batch = 1
			x.pack()
			few, plain := x.ofFewBits(rapid.SampledFrom(formats).Draw(t, "format"),
				rapid.Bool().Draw(t, "A"))
			if err := sameBits(resultOf(few, s, p), resultOf(plain, s, nil)); err != nil {
				t.Fatalf("%v: %v", x, err)
			}
		})
	})
}

func TestFewBitsShapes(t *testing.T) {
	longtest.Skip(t)
	everyISA(t, func(t *testing.T, s *isa) {
		if s == portable && raceEnabled {
			t.Skip("minutes long with the race detector")
		}
		for i, x := range shapes() {
			if x.batch > 1 {
				continue
			}
			x.pack()
			few, plain := x.ofFewBits(quant.All()[i%5], i%3 == 0)
			if err := sameBits(resultOf(few, s, nil), resultOf(plain, s, nil)); err != nil {
				t.Errorf("%v: %v", &x, err)
			}
		}
	})
}

// TestShortRowsPanic: rows are as many, and as long, as the product wants.
func TestShortRowsPanic(t *testing.T) {
	x := problem{m: 2, n: 3, k: 32, alpha: 1, transB: true}
	x.pack()
	for _, change := range []func(*Product){
		func(y *Product) { y.B.Rows.Data = y.B.Rows.Data[:67] },
		func(y *Product) { y.B.Rows.Elements = 64 },
		func(y *Product) { y.K, y.A.LD = 33, 33; y.A.F32 = make([]float32, 66) },
		func(y *Product) { y.Batch = 2; y.A.F32, y.C = make([]float32, 999), make([]float32, 999) },
	} {
		y, _ := x.ofFewBits(quant.Q8_0, false)
		y.compute(best, nil)
		change(&y)
		if !panics(func() { y.compute(best, nil) }) {
			t.Errorf("rows that are too few or too short are multiplied: %+v", y.B.Rows)
		}
	}
}

// TestFewBitsDots: a single row is multiplied without widening where a kernel does that, with the
// bits of the product with the same numbers.
func TestFewBitsDots(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	everyISA(t, func(t *testing.T, s *isa) {
		for _, f := range quant.All() {
			for i, n := range []int{1, 2, 15, 38, 97} {
				x := problem{m: 1, n: n, k: []int{256, dotK, dotK + 256, 512}[i%4], alpha: 1,
					transB: true}
				if i%2 == 1 {
					x.alpha, x.beta = 1.5, -0.5
				}
				x.pack()
				few, plain := x.ofFewBits(f, false)
				few.As = Product{M: 1, N: 97, K: x.k, B: Matrix{Trans: true}}.Order()
				plain.As = few.As
				got, want := few.B.Rows.HasDots(s.lanes, x.k), s != portable && !f.Integral()
				if got != want {
					t.Fatalf("%s: whether there is a kernel is %t", f, got)
				}
				if err := sameBits(resultOf(few, s, p), resultOf(plain, s, nil)); err != nil {
					t.Errorf("%s, %v: %v", f, &x, err)
				}
			}
		}
	})
}

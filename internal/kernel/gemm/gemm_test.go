package gemm

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/invariants"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// everyISA runs a test on every instruction set that this machine has.
func everyISA(t *testing.T, test func(t *testing.T, s *isa)) {
	for _, s := range available() {
		t.Run(s.name, func(t *testing.T) { test(t, s) })
	}
}

// dim draws a dimension: mostly around the sizes of tiles, sometimes larger.
func dim(t *rapid.T, name string) int {
	if rapid.IntRange(0, 9).Draw(t, name+" is large") == 0 {
		return rapid.IntRange(100, 300).Draw(t, name)
	}
	return rapid.IntRange(1, 50).Draw(t, name)
}

// drawProblem draws a problem of any form.
func drawProblem(t *rapid.T) *problem {
	scalars := []float32{0, 1, -1, 0.5, 2}
	x := &problem{
		transA: rapid.Bool().Draw(t, "transA"), transB: rapid.Bool().Draw(t, "transB"),
		batch: rapid.SampledFrom([]int{1, 1, 2, 5}).Draw(t, "batch"),
		m:     dim(t, "m"), n: dim(t, "n"), k: dim(t, "k"),
		alpha: rapid.SampledFrom(scalars).Draw(t, "alpha"),
		beta:  rapid.SampledFrom(scalars).Draw(t, "beta"),
	}
	pad := rapid.SampledFrom([]int{0, 0, 1, 7, 16})
	page := rapid.SampledFrom([]bool{false, false, false, true})
	ld := func(trans bool, rows, cols int, name string) (ld, stride int) {
		if trans {
			rows, cols = cols, rows
		}
		ld = cols + pad.Draw(t, "ld"+name)
		if page.Draw(t, "rows are pages apart "+name) {
			ld = ceil(ld, setStride) * setStride
		}
		return ld, rows*ld + pad.Draw(t, "stride"+name)
	}
	x.lda, x.strideA = ld(x.transA, x.m, x.k, "a")
	x.ldb, x.strideB = ld(x.transB, x.k, x.n, "b")
	x.ldc, x.strideC = ld(false, x.m, x.n, "c")
	x.strideA *= rapid.IntRange(0, 1).Draw(t, "a is not shared")
	x.strideB *= rapid.IntRange(0, 1).Draw(t, "b is not shared")
	x.fill()
	return x
}

func TestAgainstReference(t *testing.T) {
	p := pool.New(3)
	defer p.Close()
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			got := x.result(s, nil)
			if err := x.check(got, 1); err != nil {
				t.Fatal(err)
			}
			offset := rapid.IntRange(0, 15)
			y := x.shifted(offset.Draw(t, "offset a"), offset.Draw(t, "offset b"),
				offset.Draw(t, "offset c"))
			if err := sameBits(y.result(s, p), got); err != nil {
				t.Fatalf("%v: three threads and other offsets: %v", x, err)
			}
		})
	})
}

// shapes are products on both sides of every bound of the layout.
func shapes() []problem {
	var all []problem
	for _, d := range [][4]int{ // batch, m, n, k
		{1, 1, 1, 1}, {1, 1, 1, 5000}, {1, 1, 700, 40}, {1, 2, 300, 530},
		{1, 4, 9, 33}, {1, 14, 37, 2100}, {1, 14, 2100, 1000}, {1, 13, 8200, 257},
		{1, 15, 33, 600}, {1, 43, 530, 515}, {1, 600, 129, 70}, {1, 1025, 5, 40},
		{1, 130, 1, 600}, {3, 40, 140, 1030}, {40, 5, 64, 33}, {7, 64, 64, 64},
		{1, 350, 140, 1024}, {1, 40, 300, 1024}, {50, 30, 20, 16}, {9, 33, 16, 40},
	} {
		for form := range 4 {
			all = append(all, problem{
				batch: d[0], m: d[1], n: d[2], k: d[3],
				transA: form&1 != 0, transB: form&2 != 0, alpha: 1.5, beta: -0.5,
			})
		}
	}
	return all
}

func TestShapes(t *testing.T) {
	threads := []int{2, 5}
	pools := make([]*pool.Pool, len(threads))
	for i, n := range threads {
		pools[i] = pool.New(n)
		defer pools[i].Close()
	}
	everyISA(t, func(t *testing.T, s *isa) {
		if s == portable && raceEnabled {
			t.Skip("minutes long with the race detector")
		}
		for _, x := range shapes() {
			x.pack()
			got := x.result(s, nil)
			if err := x.check(got, 1+x.batch*x.m*x.n/200); err != nil {
				t.Error(err)
			}
			for i, p := range pools {
				if err := sameBits(x.result(s, p), got); err != nil {
					t.Errorf("%v: %d threads and one: %v", &x, threads[i], err)
				}
			}
		}
	})
}

// TestOffsets moves each operand through a cache line.
func TestOffsets(t *testing.T) {
	everyISA(t, func(t *testing.T, s *isa) {
		for form := range 4 {
			for _, m := range []int{3, 30} {
				x := problem{m: m, n: 75, k: 90, transA: form&1 != 0, transB: form&2 != 0, alpha: 1,
					beta: 1}
				x.pack()
				want := x.result(s, nil)
				for offset := 1; offset < 16; offset++ {
					y := x.shifted(offset, 3*offset%16, 5*offset%16)
					if err := sameBits(y.result(s, nil), want); err != nil {
						t.Errorf("%v: offset %d: %v", &x, offset, err)
					}
				}
			}
		}
	})
}

// TestFoldedBatch compares a batch with a shared B with its products one by one.
func TestFoldedBatch(t *testing.T) {
	everyISA(t, func(t *testing.T, s *isa) {
		for _, m := range []int{2, 20} {
			x := problem{batch: 5, m: m, n: 40, k: 50, alpha: 1}
			x.pack()
			x.strideB = 0
			got := x.result(s, nil)
			for i := range x.batch {
				one := x
				one.batch, one.a, one.c = 1, x.a[i*x.strideA:], x.c[i*x.strideC:]
				if err := sameBits(got[i*x.strideC:], one.result(s, nil)[:x.strideC]); err != nil {
					t.Errorf("%v: product %d: %v", &x, i, err)
				}
			}
		}
	})
}

// TestNotRead makes what must not be read NaN.
func TestNotRead(t *testing.T) {
	nan := float32(math.NaN())
	negativeZero := float32(math.Copysign(0, -1))
	everyISA(t, func(t *testing.T, s *isa) {
		for _, beta := range []float32{0, negativeZero} {
			for _, m := range []int{1, 3, 20} {
				x := problem{m: m, n: 70, k: 40, alpha: 1, beta: beta}
				x.pack()
				for i := range x.c {
					x.c[i] = nan
				}
				if err := x.check(x.result(s, nil), 1); err != nil {
					t.Error(err)
				}
				x.a[0], x.b[0], x.alpha = nan, nan, 0
				if err := sameBits(x.result(s, nil), make([]float32, m*70)); err != nil {
					t.Errorf("%v: %v", &x, err)
				}
			}
		}
	})
}

func TestEmpty(t *testing.T) {
	c := []float32{1, 2, 3, 4}
	F32(nil, false, false, 0, 2, 2, 1, nil, 2, nil, 2, 0, c, 2)
	F32(nil, false, false, 2, 0, 2, 1, nil, 2, nil, 2, 0, c, 2)
	BatchF32(nil, false, false, 0, 2, 2, 2, 1, nil, 2, 0, nil, 2, 0, 0, c, 2, 0)
	if err := sameBits(c, []float32{1, 2, 3, 4}); err != nil {
		t.Errorf("no elements: %v", err)
	}
	F32(nil, false, false, 2, 2, 0, 1, nil, 0, nil, 2, 0.5, c, 2)
	if err := sameBits(c, []float32{0.5, 1, 1.5, 2}); err != nil {
		t.Errorf("k = 0: %v", err)
	}
}

func TestPanics(t *testing.T) {
	for _, test := range []struct {
		name   string
		spoil  func(x *problem)
		always bool // also without invariants
	}{
		{"a is short", func(x *problem) { x.a = x.a[:len(x.a)-1] }, true},
		{"b is short", func(x *problem) { x.b = x.b[:len(x.b)-1] }, true},
		{"c is short", func(x *problem) { x.c = x.c[:len(x.c)-1] }, true},
		{"c is nil", func(x *problem) { x.c = nil }, true},
		{"lda is negative", func(x *problem) { x.lda = -1 }, true},
		{"strideB is negative", func(x *problem) { x.strideB = -1 }, true},
		{"ldb is too short", func(x *problem) { x.ldb = x.n - 1 }, false},
	} {
		x := problem{batch: 2, m: 3, n: 4, k: 5, alpha: 1}
		x.pack()
		test.spoil(&x)
		want := test.always || invariants.Enabled
		if got := panics(func() { x.run(best, nil) }); got != want {
			t.Errorf("%s: panics %v, want %v", test.name, got, want)
		}
	}
}

// panics says whether fn panics.
func panics(fn func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	fn()
	return false
}

func TestDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool forgets with the race detector")
	}
	epilogue := Epilogue{Bias: make([]float32, 300), Act: vec.Relu}
	for _, threads := range []int{1, 2} {
		p := pool.New(threads)
		defer p.Close()
		for _, x := range []problem{
			{m: 16, n: 16, k: 16}, {m: 40, n: 300, k: 600}, {m: 40, n: 300, k: 60, transB: true},
			{m: 1, n: 300, k: 60}, {m: 1, n: 300, k: 60, transB: true}, {m: 300, n: 1, k: 60,
				transA: true},
			{batch: 20, m: 8, n: 16, k: 8}, {m: 40, n: 300, k: 1024}, {m: 40, n: 30, k: 0, beta: 2},
		} {
			x.alpha, x.epilogue = 1, epilogue
			x.pack()
			for which := range 4 {
				y := x.inBF16(which)
				if allocs := testing.AllocsPerRun(20, func() { y.compute(best, p) }); allocs > 0 {
					t.Errorf("%v: %d threads, in bfloat16 %b: %v allocations a call", &x, threads,
						which, allocs)
				}
			}
		}
	}
}

func ExampleF32() {
	a := []float32{1, 2, 3, 4, 5, 6} // 2×3
	b := []float32{1, 0, 0, 1, 1, 1} // 3×2
	c := make([]float32, 4)
	F32(nil, false, false, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2)
	fmt.Println(c)
	// Output: [4 5 10 11]
}

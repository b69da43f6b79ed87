package gemm

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/longtest"
)

// acts are activations, and none.
var acts = []func(dst, src []float32){nil, vec.Relu, vec.Gelu, vec.Sigmoid, vec.Tanh}

// afterwards applies an epilogue to a result as separate operations do.
func (x *problem) afterwards(c []float32, e Epilogue) []float32 {
	for i := range x.batch * x.m {
		row := c[i/x.m*x.strideC+i%x.m*x.ldc:][:x.n]
		if e.Bias != nil {
			vec.Add(row, row, e.Bias)
		}
		if e.Act != nil {
			e.Act(row, row)
		}
	}
	return c
}

// random returns n numbers.
func random(t *rapid.T, n int, name string) []float32 {
	x := make([]float32, n)
	seed := rapid.Uint32().Draw(t, name)
	for i := range x {
		seed = seed*1664525 + 1013904223
		x[i] = float32(seed)/(1<<31) - 1
	}
	return x
}

// TestEpilogueIsThatOfSeparateOperations: a product with an epilogue has the bits
// of the product, the sum and the activation one after another.
func TestEpilogueIsThatOfSeparateOperations(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	everyISA(t, func(t *testing.T, s *isa) {
		rapid.Check(t, func(t *rapid.T) {
			x := drawProblem(t)
			if rapid.Bool().Draw(t, "C is contiguous") {
				x.ldc, x.strideC = x.n, x.m*x.n
				x.fill()
			}
			var e Epilogue
			if rapid.Bool().Draw(t, "has bias") {
				e.Bias = random(t, x.n+rapid.IntRange(0, 1).Draw(t, "longer"), "bias")
			}
			e.Act = acts[rapid.IntRange(0, len(acts)-1).Draw(t, "act")]
			want := x.afterwards(x.result(s, nil), e)
			x.epilogue = e
			if err := sameBits(x.result(s, p), want); err != nil {
				t.Fatalf("%v: %v", x, err)
			}
		})
	})
}

func TestEpilogueShapes(t *testing.T) {
	longtest.Skip(t)
	everyISA(t, func(t *testing.T, s *isa) {
		if s == portable && raceEnabled {
			t.Skip("minutes long with the race detector")
		}
		for _, x := range shapes() {
			x.pack()
			e := Epilogue{Bias: x.b[:min(x.n, len(x.b))], Act: vec.Relu}
			if len(e.Bias) < x.n {
				e.Bias = nil
			}
			want := x.afterwards(x.result(s, nil), e)
			x.epilogue = e
			if err := sameBits(x.result(s, nil), want); err != nil {
				t.Errorf("%v: %v", &x, err)
			}
		}
	})
}

func TestEpilogueOfNothing(t *testing.T) {
	c := []float32{float32(math.NaN()), 5, 6, 7}
	x := Product{M: 2, N: 2, Alpha: 1, C: c, LDC: 2,
		Epilogue: Epilogue{Bias: []float32{-1, 3}, Act: vec.Relu}}
	x.Compute(nil)
	if err := sameBits(c, []float32{0, 3, 0, 3}); err != nil {
		t.Errorf("a product of no terms: %v", err)
	}
	x.Beta, x.K, x.Alpha = 2, 7, 0
	x.Compute(nil)
	if err := sameBits(c, []float32{0, 9, 0, 9}); err != nil {
		t.Errorf("alpha is zero: %v", err)
	}
}

func TestShortBiasPanics(t *testing.T) {
	x := problem{m: 2, n: 3, k: 4, alpha: 1, epilogue: Epilogue{Bias: make([]float32, 2)}}
	x.pack()
	if !panics(func() { x.run(best, nil) }) {
		t.Error("a bias of two elements for three columns is accepted")
	}
}

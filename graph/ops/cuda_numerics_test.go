//go:build linux && amd64 && !nocuda

package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// strange fills f32 elements with numbers among which are NaN and infinities; every third row of
// seven is −Inf alone.
func strange(rng *rand.Rand, x any) {
	list := x.([]float32)
	odd := specials()
	for i := range list {
		list[i] = float32(rng.NormFloat64())
		if rng.IntN(5) == 0 {
			list[i] = odd[rng.IntN(len(odd))]
		}
		if i/7%3 == 2 {
			list[i] = float32(math.Inf(-1))
		}
	}
}

// huge fills f32 elements with numbers whose squares overflow.
func huge(rng *rand.Rand, x any) {
	for i := range x.([]float32) {
		x.([]float32)[i] = float32(rng.NormFloat64() * 1e25)
	}
}

// TestCUDANumerics: what is no number, infinite or huge is on a GPU as on the host, where
// elements are ordered, hidden, weighed and added up.
func TestCUDANumerics(t *testing.T) {
	h := needHost(t)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	for _, s := range []Sample{
		{Op: topK{K: 7}, In: []graph.Type{f(60, 7)}}, {Op: topK{K: 3}, In: []graph.Type{f(6, 70)}},
		{Op: topK{7, true}, In: []graph.Type{f(60, 7)}},
		{Op: topK{3, true}, In: []graph.Type{f(6, 70)}},
		{Op: correct{}, In: []graph.Type{f(60, 7), ids(60)}},
		{Op: arg{1, false}, In: []graph.Type{f(60, 7)}},
		{Op: arg{1, true}, In: []graph.Type{f(60, 7)}},
		{Op: extreme{1, 2, false}, In: []graph.Type{f(60, 7)}},
		{Op: extreme{0, 1, true}, In: []graph.Type{f(60, 7)}},
		{Op: maxPool{Window{Size: [2]int{2, 2}}.defaults()}, In: []graph.Type{f(2, 3, 8, 7)}},
		{Op: softmax{Masked: true}, In: []graph.Type{f(60, 7)}},
		{Op: softmax{}, In: []graph.Type{f(60, 7)}},
		{Op: binary{weigh}, In: []graph.Type{f(60, 7), f(7)}, Fill: fills{1: some}},
		{Op: binary{weigh}, In: []graph.Type{f(6, 1, 7), f(3, 1)}, Fill: fills{1: some}},
		{Op: dropout{Rate: 0.5, Shared: 1}, In: []graph.Type{f(60, 7), ids(2)}},
		{Op: sumSquares{true}, In: []graph.Type{f(3000)}, Fill: fills{0: huge}},
		{Op: sumSquares{true}, In: []graph.Type{f(3000)}},
		{Op: normFactor{0.5}, In: []graph.Type{f(2)}, Fill: fills{0: overflown}},
		{Op: normFactor{0.5}, In: []graph.Type{f(2)}},
	} {
		if s.Fill == nil {
			s.Fill = fills{}
		}
		if s.Fill[0] == nil {
			s.Fill[0] = strange
		}
		t.Run(s.name(), func(t *testing.T) {
			for seed := range uint64(5) {
				in := s.operands(seed)
				want := s.compute(t, in, nil)
				got := s.onCUDA(t, h, in, memory{poison: 0xff}, -1)
				if cuda.IsExact(s.Op) {
					s.near(t, want, got)
				} else {
					sameKinds(t, want, got)
				}
			}
		})
	}
}

// sameKinds compares where elements are zeros, infinities and NaN, and others roughly.
func sameKinds(t *testing.T, want, got []tensor.View) {
	t.Helper()
	kind := func(x float32) [2]bool { return [2]bool{x == 0, x-x != 0} }
	for k, w := range want {
		if w.Type.DType != graph.F32 {
			continue
		}
		for i, x := range w.F32() {
			if y := got[k].F32()[i]; kind(x) != kind(y) ||
				x-x == 0 && math.Abs(float64(x-y)) > 1e-5*math.Abs(float64(x)) {
				t.Fatalf("result %d: element %d is %g, want %g", k, i, y, x)
			}
		}
	}
}

// some fills f32 elements with weights, half of which are 0.
func some(rng *rand.Rand, x any) {
	for i := range x.([]float32) {
		x.([]float32)[i] = float32(rng.IntN(2)) * rng.Float32()
	}
}

// overflown is a sum of squares that is infinite, and what it is in the other scale.
func overflown(rng *rand.Rand, x any) {
	copy(x.([]float32), []float32{float32(math.Inf(1)), rng.Float32()})
}

// TestCUDAGeluFarOut has the host's derivatives there.
func TestCUDAGeluFarOut(t *testing.T) {
	h, n := needHost(t), 8
	s := Sample{Op: geluTanhGrad{}, In: []graph.Type{tensor.Of(graph.F32, n),
		tensor.Of(graph.F32, n)}}
	in := []tensor.View{tensor.FromF32([]float32{1e8, 1e19, 2e19, 3e38, -1e8, -1e19, -2e19, -3e38},
		n), tensor.FromF32([]float32{1, 1, 1, 1, 1, 1, 1, 1}, n)}
	for i, v := range s.onCUDA(t, h, in, memory{poison: 0xff}, -1)[0].F32() {
		if want := float32(1 - i/4); v != want {
			t.Errorf("the slope at %g is %g, want %g", in[0].F32()[i], v, want)
		}
	}
}

package ops

import (
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
)

// Sample is one use of an operation, from which every generic check is made.
type Sample struct {
	Op graph.Op
	In []graph.Type
	// Fill gives operand i its value; nil means standard normal f32 and f64 elements,
	// i32 elements in [0, 3), integers of other sizes, and 1 for bytes.
	Fill map[int]func(rng *rand.Rand, x any)
	// Update is the number of leading operands that are written: the operation
	// is sampled as an update node.
	Update int
	// NoGrad lists operands without a gradient.
	NoGrad []int
	// Second says that the gradient can be differentiated again.
	Second bool
	// Tol is the tolerance of the gradient check relative to 1+|derivative|;
	// zero means 1e-2.
	Tol float64
	// Eps is the step of the central difference; zero means 1e-2.
	Eps float64
	// Results, if not nil, lists the results that the gradient check weighs;
	// the others are not differentiable.
	Results []int
}

var samples []Sample

// Samples are the registered samples of all operations.
func Samples() []Sample { return samples }

// register is called from the init function of an operation's file.
func register(s ...Sample) { samples = append(samples, s...) }

// positive fills f32 elements from [0.5, 2).
func positive(rng *rand.Rand, x any) {
	for i := range x.([]float32) {
		x.([]float32)[i] = 0.5 + float32(1.5*rng.Float32())
	}
}

// below fills i32 elements from [0, n).
func below(n int) func(*rand.Rand, any) {
	return func(rng *rand.Rand, x any) {
		for i := range x.([]int32) {
			x.([]int32)[i] = rng.Int32N(int32(n))
		}
	}
}

// bits fills u8 elements with truth values.
func bits(rng *rand.Rand, x any) {
	for i := range x.([]uint8) {
		x.([]uint8)[i] = uint8(rng.IntN(2))
	}
}

// fills gives operands their values.
type fills = map[int]func(*rand.Rand, any)

// spaced fills f32 elements with a shuffle of numbers one apart, shifted: no two
// are close, so that a kink between them is not hit by a finite difference.
func spaced(shift float32) func(*rand.Rand, any) {
	return func(rng *rand.Rand, x any) {
		s := x.([]float32)
		for i, k := range rng.Perm(len(s)) {
			s[i] = float32(k-len(s)/2) + shift
		}
	}
}

// offZero fills f32 elements with normal numbers at least 0.1 from zero.
func offZero(rng *rand.Rand, x any) {
	for i := range x.([]float32) {
		v := float32(rng.NormFloat64())
		if v < 0 {
			v -= 0.1
		} else {
			v += 0.1
		}
		x.([]float32)[i] = v
	}
}

// fromOne fills i32 and u8 elements from [1, 100].
func fromOne(rng *rand.Rand, x any) {
	switch s := x.(type) {
	case []int32:
		for i := range s {
			s[i] = 1 + rng.Int32N(100)
		}
	case []uint8:
		for i := range s {
			s[i] = uint8(1 + rng.IntN(100))
		}
	}
}

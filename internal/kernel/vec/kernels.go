package vec

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/gomem/gomem/internal/invariants"
)

// kernels is one instruction set's implementation of the package. Slices of one
// call have the same length, at most span; the public functions see to it.
type kernels struct {
	name string

	elementwise
	// far has versions whose stores bypass the caches. Their destination begins
	// at a cache line and is a multiple of farBlock elements long (dropout: two);
	// storeFence must follow the last. Nil if there are none.
	far *elementwise

	axpy func(dst, x []float32, s float32)

	sum, sumSquares, maxOf func(x []float32) float32
	maxAbsOf               func(x []float32) float32
	dot                    func(a, b []float32) float32
	sumSquaresFrom         func(x []float32, shift float32) float32
	dotFrom                func(a, b, x []float32, shift float32) float32
	sumAndDot              func(x, d, scale []float32) (sum, dot float32)
	squaresAndDot          func(x, d, scale []float32, shift float32) (squares, dot float32)
	expSum                 func(dst, x []float32, shift float32) float32
	sumExp                 func(x []float32, shift float32) float32

	momentum func(w, m, g []float32, step, mu float32)
	adam     func(w, m, v, g []float32, step, beta1, keep1, beta2, keep2, root, eps float32)

	// index is a multiple of four.
	philox func(dst []uint32, key, index uint64)

	bf16FromF32, f16FromF32 func(dst []uint16, x []float32)
	f32FromBF16, f32FromF16 func(dst []float32, x []uint16)

	// Of small moments, see there: words decide which way is rounded.
	bf16Low, bf16High          func(dst []uint16, x []float32, words []uint32)
	signed8, unsigned8         func(dst []uint8, x []float32, words []uint32)
	fromSigned8, fromUnsigned8 func(dst []float32, x []uint8)
}

// complete adds the sums that are taken in pairs, one after the other, where an
// implementation has none.
func complete(k kernels) kernels {
	if k.sumAndDot == nil {
		k.sumAndDot = func(x, d, scale []float32) (sum, dot float32) {
			return k.sum(x), k.dot(d, scale)
		}
		k.squaresAndDot = func(x, d, scale []float32, shift float32) (squares, dot float32) {
			return k.sumSquaresFrom(x, shift), k.dotFrom(d, scale, x, shift)
		}
	}
	return k
}

// elementwise are the kernels that compute each element of a destination of its own.
type elementwise struct {
	add, sub, mul, div, max, min    func(dst, a, b []float32)
	atLeast                         func(dst, a, b []float32)
	addScalar, mulScalar, divScalar func(dst, a []float32, s float32)
	maxScalar, minScalar            func(dst, a []float32, s float32)
	atLeastScalar                   func(dst, a []float32, s float32)
	scalarDiv, scalarAtLeast        func(dst, b []float32, s float32)
	fma                             func(dst, a, b, c []float32)
	relu, sqrt, rsqrt               func(dst, x []float32)
	square, neg, abs                func(dst, x []float32)
	exp, log, tanh                  func(dst, x []float32)
	sigmoid, erf, gelu              func(dst, x []float32)
	reluGrad, tanhGrad, sigmoidGrad func(dx, y, dy []float32)
	geluGrad                        func(dx, x, dy []float32)

	expAffine  func(dst, x []float32, shift, factor, offset float32)
	affine     func(dst, x []float32, shift, factor, offset float32)
	mulScaled  func(dst, x, scale []float32, s float32)
	mulShifted func(dst, a, b []float32, shift float32)
	normalize  func(dst, x, scale, bias []float32, shift, factor float32)
	normGrad   func(dst, x, scale, d []float32, shift, mean, factor, along float32)

	// offset is a multiple of four; a word passes if it is at most limit.
	dropout func(dst, x []float32, scale float32, limit uint32, key, offset uint64)
}

// active is the fastest implementation that this processor has; it never changes.
var active = available()[0]

// span is the most elements that one kernel call processes: some tens of
// microseconds, because a goroutine in assembly cannot be preempted. It is also
// the first level of the summation tree.
const span = 1 << 16

// spans yields consecutive ranges [lo, hi) of at most span elements that make up [0, n).
func spans(n int) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo := 0; lo < n; lo += span {
			if !yield(lo, min(lo+span, n)) {
				return
			}
		}
	}
}

// cover panics unless every source has at least the elements of dst. With the
// invariants tag it also refuses a source that overlaps dst without being it.
func cover[D, S any](dst []D, sources ...[]S) {
	for _, s := range sources {
		if len(s) < len(dst) {
			panic(fmt.Sprintf("vec: a source has %d elements where the destination has %d", len(s),
				len(dst)))
		}
		if invariants.Enabled && shifted(dst, s[:len(dst)]) {
			panic("vec: a source overlaps the destination without being it")
		}
	}
}

// shifted reports whether two slices of one length share memory but not their start.
func shifted[D, S any](dst []D, src []S) bool {
	d, s := uintptr(unsafe.Pointer(unsafe.SliceData(dst))),
		uintptr(unsafe.Pointer(unsafe.SliceData(src)))
	n, dSize, sSize := uintptr(len(dst)), unsafe.Sizeof(*new(D)), unsafe.Sizeof(*new(S))
	overlap := d < s+n*sSize && s < d+n*dSize
	return overlap && (d != s || dSize != sSize)
}

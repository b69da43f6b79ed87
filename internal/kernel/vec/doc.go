// Package vec has the vector primitives of the CPU device: arithmetic,
// reductions, exponentials, optimizer steps and random numbers over slices of
// float32, one thread, no allocation.
//
// # Implementations
//
// Every primitive exists three times: in assembly for AVX-512, in assembly for
// AVX2 with FMA, and in plain Go. The processor is asked once, at start; the
// build needs no flags, and with the tag portable has the plain Go alone. The
// assembly is written by the generator in gen, where a primitive is described
// once, as operations on vectors: about
//
//	func (b *builder) exp(x *value) *value {
//		x = b.below(b.f(expHigh), b.above(b.f(expLow), x))
//		n, r := b.reduce(x)
//		return b.scale(b.expReduced(r), n)
//	}
//
// is the whole of Exp. scalar.go has the same operations on one element.
//
// # Bits
//
// All implementations give the same bits, also of the transcendental functions
// and the reductions, so a model trained on one machine can be checked on
// another. Three habits make it so:
//
//   - Every operation is an IEEE one with one rounding, in the same order.
//     Where the assembly fuses a multiplication and an addition, the Go code
//     calls fma32, which rounds as a fused instruction does.
//   - The tail of a slice is computed by the same instructions as its body,
//     under a mask. An element's bits depend on its operands, not on its place,
//     so callers may split a slice among threads wherever they like.
//   - A reduction has 64 lanes whatever the width of a register: element i goes
//     to lane i mod 64, and lanes are folded by halves. Beyond 65536 elements,
//     the sums of such spans are added in order. Bits depend on the length
//     alone. Splitting a reduction among threads changes its tree, and is the
//     caller's decision.
//
// Only the payloads of NaN differ.
//
// # Rows
//
// Softmax, the normalisations and their gradients take rows, and pass over one as
// seldom as their sums allow: two passes for a root mean square, three for
// softmax and a layer norm, whose variance is that of differences from the mean.
// A row is in the first-level cache after the first. Gradients take their sums in
// pairs where there are registers for it.
//
// # Memory
//
// A store through the caches reads a line before it writes it, so a result larger
// than they are costs three transfers where a copy needs two. Far, DropoutFar and
// the functions of rows with far set store around the caches, and prefetch two
// pages ahead, across the page ends at which the processor's own prefetching
// starts anew. Only the caller knows how large the whole result is, and so says
// which; the bits are the same. Sums prefetch always, since that costs nothing
// where operands are in a cache.
//
// # Functions
//
// Exponentials are computed as Cody and Waite do: x = n·log 2 + r with a split
// constant, a minimax polynomial in r, and a scaling by 2ⁿ with one rounding, so
// that overflow, subnormal results and zero come out as they should. Softmax,
// Sigmoid, Tanh and Gelu share it. The normal distribution of Gelu and Erf is
// e^(−t²/2) times a polynomial in t/(1+0.3·t), which is accurate relatively in
// the far tail, where 1 + erf cancels. Coefficients were fitted with the Remez
// exchange, rounded to float32 one after the other, each time refitting the
// rest. The errors in the documentation are maxima over all 2³² inputs against
// float64 (go test -run Documented -every-float).
//
// # Contract
//
// The destination is the first argument and gives the length; sources must be
// at least as long, or the function panics as a slice expression would. A
// source may be the destination, but may not overlap it otherwise (checked with
// -tags invariants). Functions with several results (Adam) need distinct slices.
//
// What the package does not do: threads, strides, broadcasting and shapes
// (callers cut into rows), types other than float32 (but for conversions), and
// matrix products (package gemm).
package vec

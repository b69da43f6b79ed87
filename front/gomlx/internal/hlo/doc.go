// Package hlo has the operations of GoMLX that graph/ops has not, as custom ones of the CPU: what
// XLA calls its high-level operations, in their general form, of numbers of every type.
//
// They are what everything else falls back to, so they are plain loops over indices. Products,
// convolutions, sums and maxima of f32 in the forms that models have are graph/ops', which is
// faster and has GPU kernels too.
//
// Elements are added, multiplied and compared by closures that [arithmetic] makes for a type of
// element, once a call, so that an operation is written once. Sums are in one order, that of the
// indices, whatever the number of threads; 16-bit floating-point numbers are converted by who
// applies an operation.
//
// None has a gradient: GoMLX derives its graphs itself, of its own operations.
package hlo

// Package ops is the operation set, one file an operation: constructor, shape
// rule, cost, gradient, CPU kernel and samples.
//
// An operation is a small comparable struct whose fields are its attributes.
// Its constructor applies it to values of a graph; a mistake in the operands is
// recorded in the graph (see [graph.Graph.Err]) and yields the zero value.
// Gradients are built from the same operations, so they can be differentiated
// again. The kernels are registered for the CPU when the package is
// initialised. They split their work over outputs, or a long sum into blocks that
// the shape alone fixes, so results do not depend on the number of threads.
//
// Adding an operation touches one file: the samples that it lists are run by
// ops_test.go through every check there is (shape rule against kernel, bad
// operands, gradient and second gradient by central differences, recompute,
// threads, in-place, cost, benchmark).
package ops

// Package gomlx is a backend of GoMLX (github.com/gomlx/gomlx): its models train and run by plans,
// within a budget of memory.
//
//	import _ "github.com/gomem/gomem/front/gomlx"
//
//	GOMLX_BACKEND=gomem:device=64MiB,policy=auto go run .
//
// [New] says what a configuration has.
//
// # Computations
//
// Every computation of GoMLX becomes a graph, whose parameters are inputs and whose outputs are
// fetched. Operations are those of graph/ops, and in internal/hlo what these have not: XLA's
// general gathers, scatters, windows and paddings. What gomem has not is refused by its name, by
// one table, and so are element types: nothing is converted in silence. 16-bit floating-point
// numbers are computed in f32 and rounded once.
//
// GoMLX derives gradients itself, and writes that of a product of matrices element by element.
// sums.go makes products of matrices of them again.
//
// # Memory
//
// Buffers are in host memory and outside of budgets; GoMLX has their slices. An execution copies
// what it is given into the plan's memory on the host, stages from there what it needs when it
// needs it, and copies results out. So variables, which GoMLX feeds and fetches in every step, are
// on the device only while they are used.
//
// A session takes its plan's memory when a computation is first executed. The device's budget holds
// for all computations together: those executed longest ago lose their sessions when another
// would not fit beside them, and get new ones when their turn comes. Nothing is lost, as sessions
// have no variables.
//
// A buffer that is donated is freed after the execution that it was given to. Its bytes could stay
// in a session for the next, but GoMLX says neither which output is the next value of which
// input nor that nobody reads it before, so that they are fetched and fed again.
//
// Random bits are those of GoMLX's backend in Go, so that a model starts with the same weights on
// both.
package gomlx

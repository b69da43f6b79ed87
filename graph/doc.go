// Package graph is the intermediate representation: a dataflow graph of
// operations on typed values.
//
// A [Graph] is append-only: a node is created after its operands, so the order
// of creation is a topological order and a node's ID indexes dense tables that
// passes keep beside the graph. A node is one of five kinds. Inputs, variables
// and constants are leaves. Compute nodes are pure functions of their operands
// and attributes: randomness comes from a seed operand, so any of them may be
// computed again with the same bits. Update nodes, and only they, write
// variables.
//
// # Versions
//
// A variable has two versions in a step. Every node that reads it sees the
// version from before the step; the one update node that may write it runs
// after all its readers and produces the version that the next step sees.
// [Graph.Successors] has these orderings as edges beside the data's.
//
// # Errors
//
// Building errors are sticky, as with bufio.Scanner: an operation on bad
// operands records an [Error] with the model's file and line and yields the
// zero [Value], which every later operation passes on. Model code has no
// `if err`; [Graph.Err] returns the first error.
//
// The package knows no operation: those are in graph/ops.
package graph

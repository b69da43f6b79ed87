// Package fuse makes one node of several: chains of elementwise operations, and matrix
// products and convolutions with the elementwise operations that follow them. Results stay
// the same to the bit; intermediate values never reach memory, and a step has
// fewer launches.
//
// # What is fused
//
// A node n takes over the operand that is computed last, v, if
//
//   - package ops has one operation that does what the two do: n is elementwise,
//     v's producer is elementwise, a matrix product or a convolution (see [ops.Fuse]);
//   - n is all that reads v, and v is not fetched;
//   - v is as large as n's result, and the two nodes belong to one phase; and
//   - everything else that n reads is there whenever v's producer runs: it is a
//     leaf, the producer reads it too, or the producer depends on it.
//
// Nodes are visited in order of creation, so that a producer has taken over its
// own before it is taken over, and again until nothing changes. Chains grow to any
// length that an operation can hold.
//
// # Memory
//
// The last condition keeps peaks down. Because of it, the fused node can run as
// soon as the producer could, and takes its place in the order of creation. What n
// reads is needed for less long, what the producer reads no longer, and the
// result is where the intermediate value was. Had n to wait for another operand,
// those of the producer would wait in memory with it: two values, perhaps, where
// there was one.
//
// That argument is about lifetimes in a given order of execution. Policies choose
// the order, where partitions end, and when copies start, and may choose
// differently for the new graph; so an operation says for how many it stands
// (see [graph.Compound]), and partitions and prefetch distances count those.
// What is left are the accidents of packing, which go either way: whoever needs a
// guarantee plans both graphs and takes the better (as package gomem does).
//
// # Order and versions
//
// Fusing cannot make a cycle, since there is no way from v to n but the direct
// one, and no node depends on an update by data. A variable that v's producer
// reads is read by the fused node instead, still before its update. Updates are
// copied as they are.
//
// # What is not done
//
// A value is never computed twice to save a read of it. Views stay between nodes,
// as do reductions and whatever package ops does not count as elementwise, and
// nothing is fused into a product's operands or across phases. Fusion comes after
// differentiation: gradients are fused like anything else, and reading results
// rather than operands is the gradients' own doing.
package fuse

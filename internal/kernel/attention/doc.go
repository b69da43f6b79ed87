// Package attention computes softmax(q·kᵀ)·v and its gradients on the processor, on raw slices,
// without the matrix of weights: in memory that grows with the length, not with its square.
//
// # Tiles
//
// Queries and keys are cut into blocks. For a block of queries, one block of keys after the
// other, the logits of a tile are a product in scratch; the exponentials of their distances from
// the largest logit so far are multiplied by the values and added to the result; and where a
// later block has a larger logit, what was added is scaled down to it (Milakov and Gimelshein
// 2018; Dao and others 2022, algorithm 1). At the end rows are divided by the sums of their
// exponentials. What the gradient needs of all that is one number a row, the logarithm of the
// sum of the exponentials of its logits: with it every tile of weights is computed again from
// queries and keys, as it was.
//
// Tiles that a mask hides entirely are passed over, so that causal attention takes half of the
// time, a window or short documents take time that grows with the length.
//
// # Bits
//
// A row's result depends on its query, and on the keys and values, alone: blocks of keys begin
// at multiples of a constant, products sum in an order that the whole problem sets (gemm.Order),
// and a hidden key adds a zero. So any number of threads, and any part of the batch, the heads
// or the queries, gives the same bits. In the gradient, that of a key is a sum over blocks of
// queries in their order, head by head of its group, and that of a query one over blocks of keys
// in theirs. If there are more threads than there are keys' heads, the two are computed apart, in
// the same orders.
package attention

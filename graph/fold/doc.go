// Package fold computes before the first step what comes out the same at every step, and has
// computed at every step what is large and soon made. Both are rewritings of graphs, and results
// stay the same to the bit.
//
// Keeping a constant costs memory, and making it again costs time: TensorFlow folds constants, and
// the thesis names the opposite, anti-constant folding, as a trade of recomputing for memory (J.
// Wei 2019, section 6.2 and table 7.1). Which of the two is better depends on prices and budgets.
// So this package makes both graphs, by rules that know neither, and a planner chooses.
//
// # What is folded
//
// A node is known if all that it reads is: constants, and what is known. It exchanges nothing with
// other workers, and the device computes it to the host's bits, which are those it gets. Random
// numbers are a function of their seed, so they are known where the seed is a constant. What is
// fed, a variable, and all that depends on one is not known.
//
// [Fold] replaces a known value that something reads that is not known by a constant. What was read
// on the way to it is gone. Not replaced are
//
//   - what is no more than moved and gets larger by it, such as a number that fills an array, or a
//     mask: that is what [Unfold] makes of constants, of those that were folded, too;
//   - what takes many operations or bytes to compute, since planning waits for it.
//
// If a kernel refuses its operands nothing is folded, and the step says so as ever.
//
// # What is unfolded
//
// [Unfold] replaces a large constant by few operations on a small one, if its bytes are
//
//   - the same along some axes: repeated from one element of each, which is what a fill is, or
//     positions for all sequences of a batch;
//   - one number on one side of a diagonal of a matrix, and zero on the other: a causal mask;
//   - a one in each row, and zeros: one-hot vectors, from where the ones are.
//
// A few bytes propose what the operations are. They are then executed and compared with the whole
// constant, so a proposal may be a guess, and the graph is right. An operation that repeats its
// operands by itself reads what has not been repeated yet: then the large array is nowhere.
package fold

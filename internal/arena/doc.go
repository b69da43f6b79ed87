// Package arena packs blocks into addresses. A block is a rectangle: it is live
// over an interval of time and needs a number of bytes; two blocks that are
// live at once may not overlap in address. The package knows nothing of
// tensors or devices and touches no memory.
//
// Finding the lowest arena is NP-hard (dynamic storage allocation). [Pack] tries
// a short portfolio and keeps the best result:
//
//   - in order of time, best fit on a free list, as an allocator at run time
//     would do, O(n log n);
//   - largest first, each at the lowest address that is free throughout its
//     life: the greedy rule that wins when memory is tight, because large
//     blocks are not split around small ones. What reaches above the lower bound
//     is moved to the front and all is placed again, a few times. It costs a
//     look at every pair of blocks that are live at once, so it is tried only up
//     to a number of pairs.
//
// The largest number of bytes live at any time is a lower bound of every
// packing; the portfolio stops as soon as it is nearly reached.
//
// Blocks marked Fixed are live throughout and are placed first, in the order
// given, from address 0: variables have the same addresses in every plan that
// lists them in the same order.
//
// What it does not do: search (branch and bound closes the last few percent on
// adversarial instances), or move a block during its life.
package arena

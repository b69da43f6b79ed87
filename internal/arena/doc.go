// Package arena packs blocks into addresses. A block is a rectangle: it is live
// over an interval of time and needs a number of bytes; two blocks that are
// live at once may not overlap in address. The package knows nothing of
// tensors or devices and touches no memory.
//
// Finding the lowest arena is NP-hard (dynamic storage allocation). [Arena.Pack] tries
// a short portfolio and keeps the best result:
//
//   - in order of time, best fit on a free list, as an allocator at run time
//     would do, O(n log n);
//   - largest first, each at the lowest address that is free throughout its
//     life: the greedy rule that wins when memory is tight, because large
//     blocks are not split around small ones. What reaches above the lower bound
//     is moved to the front and all is placed again, a few times. It is tried
//     only up to a number of pairs of blocks that are live at once. Where they are
//     few, a block's place is found by a look at all that it meets; where they are
//     many, by a tree over time that knows what addresses are taken when.
//
// The largest number of bytes live at any time is a lower bound of every
// packing; the portfolio stops as soon as it is nearly reached.
//
// Blocks marked Fixed are live throughout and are placed first, in the order
// given, from address 0: variables have the same addresses in every plan that
// lists them in the same order.
//
// [Arena.PackWithin] is for budgets that are filled to the brim, where the lives of blocks
// come from copies and recomputations and the portfolio loses up to a quarter. What it
// looks for is not the lowest packing but one below a limit:
//
//   - the large blocks first, by all that follows, and the small ones put into the gaps
//     that these leave, in two grains. Most blocks are small: without them there is a tenth
//     as much to look at. Where the large ones fit and the small ones stick out, the large
//     ones are packed lower, as long as that goes, and what then sticks out is evicted;
//   - more orders (area, life, start), repaired in the same way;
//   - eviction. Blocks above the limit are taken out and wait. One that waits goes to
//     the smallest gap below the limit that it fits in; if there is none, to where the
//     blocks in its way are the cheapest, and these wait in its place. To evict a
//     block costs, say, the root of its area, and more each time it has been evicted:
//     what is fought over grows dear, goes first, and stays. One step looks only at the
//     blocks that are live with one, so there are tens of thousands of steps a second
//     where placing all of them again takes a tenth of one. The limit is approached
//     by halves, each with a few habits in turn (what the cost goes by: area, life,
//     how many others are met), since each solves what the others do not.
//   - for up to a thousand blocks, building from the ground up: every packing can be
//     let down until each block rests on another or on the ground, so it is enough to
//     place blocks in order of their offsets, each as low as those before it allow.
//     Branches that leave a hole which another block would fit in, or in which what
//     waits no longer fits above the floor of some section of time, are cut off; where
//     what waits falls into parts that do not meet, each is solved alone. Three orders
//     of trying take turns with an effort that doubles. It finds packings without
//     any slack at all, or proves that there are none (canonical solutions and most of
//     these rules: Moffitt, MiniMalloc, ASPLOS 2023).
//
// A limit instead of a minimum is what makes that work: every step knows what fits.
// Chance is seeded and effort is counted in pairs of blocks looked at, never in
// seconds, so equal blocks are packed alike on every machine.
//
// [Arena.Ring] is the opposite: it keeps to a limit that is larger than what is live, and leaves
// every address alone for as long as that lets it, for those who wait for whoever had it before.
//
// What it does not do: find the lowest packing, look below a limit that it has reached,
// or move a block during its life. Thousands of blocks that are full from end to end,
// without any slack at any time, are packed only to one to three tenths above the load.
package arena

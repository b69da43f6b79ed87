// Package orion finds out how a loop over data can be run by several workers so that the result is
// that of some serial order: chapter 5 of J. Wei's thesis (2019), which calls its system Orion.
//
// A [Loop] is data. It has the dimensions that its iterations are numbered by, the arrays that it
// uses, and what an iteration reads and writes of them: references, whose subscripts are an index
// of the loop plus a constant, a constant, all of a dimension, or unknown before the loop is run.
// Iterations may be all of the space or some points of it, such as the known elements of a sparse
// matrix. Writes may be buffered: they are applied later, by a function of the user's, and the
// analysis leaves them out (section 5.2.3). Where all are, what remains is data parallelism.
//
// # Dependence
//
// Two iterations depend on each other if they use the same element and one of them writes it.
// [Loop.Vectors] has the differences that such iterations may have, as vectors with an entry for
// each dimension: a number, any number, or any positive one. It is Algorithm 3 of the thesis, with
// these repairs:
//
//   - A vector whose first entry that is not zero may be anything stands for vectors of both signs.
//     The thesis turns it into one: of (any, 1) it keeps (+, 1). But (1, -1) is a dependence, too:
//     it is (-1, 1) turned round. So (any, 1) becomes (+, 1), (+, -1) and (0, 1). For 1D and 2D
//     schedules only zeros matter, and either will do; a transformation by one sign alone would
//     run dependent iterations in the wrong order.
//   - Writes of the same element are dependent in loops without an order, too. The thesis leaves
//     them out there. But of two iterations that write x and y, one could then have the last word
//     about x and the other about y, which no serial order gives.
//   - Subscripts that have no value in common are independent, such as i + 10 and j, or i, for
//     sizes of 10.
//
// What is found is sound: each dependence is covered by a vector. It is exact, no vector covers
// anything else, where references have the same index, or constants, at the same place of an
// array, and no subscript leaves the array. Subscripts that leave it refer to nothing: the body of
// a loop skips them.
//
// # Schedules
//
// A schedule divides the iterations by one coordinate or two, space and time: see [Axis]. Workers
// own parts of space and step through the parts of time. [Choose] takes the first that is sound:
//
//   - 1D: a dimension whose entry is 0 in all vectors. Its parts are independent; nobody waits.
//     Where there are no vectors and writes are buffered, that is data parallelism.
//   - 2D without an order (rotation): two dimensions, one of which is 0 in each vector. (The thesis
//     prints that both are; its proof needs one.) What runs at the same time differs in both. Each
//     worker begins with parts of time of its own, at least two, and goes on with those of the next
//     worker, which has left them by then unless it is slow (figure 5.13).
//   - 2D with an order (wavefront): two dimensions that are positive or 0 in all vectors. The
//     thesis asks that one is 0, and does not ask for signs: with (1, -1, 0), it would run
//     dimensions 2 and 3 in the wrong order. Block (s, t) comes after (s-1, t) and (s, t-1).
//   - Unimodular: time is a combination of dimensions that is positive for all vectors (so that all
//     dependences are carried by the outer loop of the transformed nest), and space is another that
//     is never negative; the two are rows of a matrix of determinant 1 or -1. Then it is a
//     wavefront. With a positive time alone, there would be a barrier after each of its indices.
//   - Serial: all else.
//
// A worker waits for one predecessor only, never for all: see [Block]. Parts are balanced by a
// histogram of the iterations' coordinates.
//
// Of several dimensions that would do, those are taken that have the fewest elements communicated:
// see [Traffic]. Arrays that space divides stay where they are, those that time divides are handed
// on from worker to worker, and all others are served as by parameter servers.
//
// # Running
//
// A [Run] is a pass over a loop in this process: in serial order, or with a goroutine for each
// worker, which waits for one block at most before each of its own, by a channel. Both leave the
// same bits, and of an ordered loop those of the loop as it was written. Buffered writes are the
// body's: it keeps a buffer for each worker, and applies them after the pass.
//
// The analysis is right if the declaration is. In debug mode ([Run].Debug), what the body says that
// it uses is held to it, and the first use that is not declared is an [UndeclaredError]. A [Trial]
// is a body for any loop, made of its declaration, whose bits depend on the order of all dependent
// iterations; [Factors] is matrix factorisation.
//
// # Arrays
//
// A [DistArray] is an array by the recipe that makes it (appendix A.1): [TextFile] with a parser,
// [Rand] and [Randn], whose numbers depend on a seed and an index alone, a [Map] of another, or
// [Randomized], with indices in another order so that parts have as many elements each. Recipes
// are run when an array is made, each process makes what it keeps, and maps of maps are made in one
// pass. [GroupBy] is made at once. Elements are asked for by their index, or by some of its
// numbers. [Hold] makes arrays the memory of a loop's.
//
// Writes that the analysis is to leave out are kept in a [WriteBuffer], of a bound, until a
// function of the user's applies them (section 5.2.3). Arrays that nothing divides, such as the
// weights of a sparse regression, are parameters of a [distrib.Synchronizer], which serves them:
// that function pushes, and a [Prefetch] pulls what a block reads at once. Which rows these are is
// found out by a body that notes subscripts (section 5.2.4), once for all passes.
//
// # Running it by several processes
//
// A [Worker] runs the blocks of one worker in a process of its own, pass after pass, with a group
// of messages to the others. An array that space divides stays. Of one that time divides, a part
// goes from worker to worker as soon as the last block of a worker that uses it has ended, while
// the next block runs; who is the last to have it hands it on to the worker that begins the next
// pass with it. So a worker waits for one other at a time, and there is no barrier, between passes
// neither. The order of a part's users is that of the waits in one process ([Block].After), and so
// the bits are those of [Run.Serial].
//
// An array that is changed, and that neither divides, such as that of a stencil, is shared: all
// have all of it. What a block changes, as the loop declares it, goes along with the parts of time
// for which workers wait for each other, and what others have changed before goes with it; after a
// pass all tell all. Buffered writes are the body's, as in one process.
package orion

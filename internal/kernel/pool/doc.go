// Package pool runs the pieces of a kernel on a fixed set of threads.
//
// A training step is a long chain of kernels, many of them shorter than the
// time it takes to wake a thread. A goroutine started for every call, or a
// worker parked between calls, costs more than such a kernel. The workers of a
// Pool therefore spin for a short while (spinTime) after their last piece before
// they park, so that kernel after kernel hands off in well under a microsecond,
// and an idle pool costs nothing.
//
// A call to Run is a job: a count of pieces and a function. The caller puts the
// job on the pool's list, runs pieces itself, takes the job off the list when
// none is left to claim, and waits for the helpers that joined meanwhile.
// Pieces are claimed one by one with an atomic counter, so a thread that the
// machine takes away delays only the piece that it holds. A caller never waits
// for a piece that nobody has begun; several callers, or a piece that calls Run
// itself, cannot deadlock.
//
// Which thread runs which piece is left to chance. Results must not be: a kernel
// cuts its work into pieces with disjoint outputs, and never lets the number of
// threads choose the order of a summation.
//
// The pool does not pin threads, has no priorities and no cancellation: pieces
// are meant to last well under a millisecond.
package pool

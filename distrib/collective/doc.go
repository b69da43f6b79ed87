// Package collective does what all nodes of a group do together: all-reduce,
// reduce-scatter, all-gather, broadcast, all-to-all, permutation, barrier, and from these the
// exchange of gradients that a training step needs.
//
// # Groups
//
// A [Mux] takes the messages of class Collective from a transport and hands them to
// groups; the transport's other classes stay usable through [Mux.Transport]. Groups that
// share nodes, such as the axes of a [Mesh], do not hold each other up: what a node sends
// waits at the receiver, by group, until an operation takes it, and never more than a
// window, since the receiver says what it has taken and the sender keeps count. So the
// receiver's handler never blocks, a fast rank cannot fill a slow one's memory, and the
// bytes are known before: [Options].Window for each rank that sends. Bytes are not copied
// on the way out, and once on the way in: from the message to where they belong, or to
// nowhere if they are only added up.
//
// # The order of additions
//
// Floating point addition is not associative, so the order is part of the result. Here
// it depends on nothing but the number n of ranks and the length: not on timing, chunks
// or windows. All ranks get the same bits, run after run.
//
// Ring, [AllReduce] from [Small] on: x is cut in n blocks, see [Block]. Block b is added
// up in the order of ranks b+1, b+2, ..., n-1, 0, ..., b, each added to the sum so far.
// [ReduceScatter] and [PushPull] with n owners do the same; with fewer owners there are
// as many blocks. [ReduceScatterSome] adds in an order of its own, and as if what is not sent
// were zero; where two ranks have something for a row that order does not matter.
//
// Recursive doubling, [AllReduce] below it: a balanced tree over the ranks in order,
// (x0+x1)+(x2+x3) and so on. If n = 2^d + e is no power of two, the first 2e ranks are
// added in pairs before, and each pair is a leaf.
//
// A mean is the sum divided by n.
//
// # Why these
//
// A ring sends 2(n-1)/n of the data from every rank, which is the least there can be, and
// keeps all links busy; but it takes 2(n-1) steps, so small data goes by doubling, in log2
// n. [PushPull], parameter servers in every rank, sends as much as a ring, but from all
// ranks to all others: a baseline. Of an [Exchanger]'s values a tiny one is with one owner
// as a whole, and owners take turns, since messages cost more there than bytes. A broadcast
// goes along a chain if it is large, so that every link carries it once, and down a binary
// tree otherwise, in log2 n steps; both in chunks, so that the steps overlap. An all-to-all
// of an [Exchanger] is in place, pair by pair, and so needs no second copy of what may be
// most of a layer. A permutation, [Permute], is what one rank sends and another receives, of
// all at once: in place, too. Where all know which ranks want which rows, [AllGatherSome]
// sends those rows alone, and [ReduceScatterSome] those that ranks have something for: pair
// by pair, each pair's rows packed in a buffer. Where each two know how many rows go between
// them, [AllToAllSome] sends those, in place likewise.
//
// # When something goes wrong
//
// Operations have numbers, and every message says which operation it is of: two nodes
// that are in different ones get a *[MismatchError] that names both. A node that is lost
// ends all waits at once with a *[distrib.LostError]; one that gives up, since its context
// ended for example, tells the others, who get an *[AbortError]. If nothing comes for
// [Options].Stall, those that have not begun the operation, or do not answer, are named
// to Log, and after [Options].Timeout in a *[distrib.StallError]: everybody asks everybody,
// so the one that is missing is named, not the neighbour that waits for it in turn. A
// slow node that makes progress is waited for. After any of these the group refuses
// further work, here and on the other nodes, since messages of the failed operation may
// still come: a new group, or the next epoch, begins again.
//
// # What it does not do
//
// It does not choose a topology from measured bandwidths, compress, or fuse small
// exchanges into larger ones: their latencies overlap instead. It does not repair a group
// that has lost a member; membership is another package's.
package collective

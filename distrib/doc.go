// Package distrib keeps the replicas of a model in step across processes.
//
// One idea carries every scheme: each process has an outbox of pending updates, one
// entry per destination and rows of a parameter. A [Topology] says who must get an
// update, a [Consistency] when it is due and when a read may proceed, a [Pacer] what goes
// early and in which order, a [Filter] what part of an entry goes and what part stays, and
// a [Rule] how the receiver folds it in. Nothing leaves the outbox except by being sent,
// so one law holds for all of them, conservation: at any instant, for every parameter,
//
//	initial + all updates ever pushed = replica + outboxes + what is in flight
//
// exactly in integers, to rounding in float32, unless an update was dropped, which is
// counted. For rules that are not additive it holds of the sums of gradients that they
// fold in.
//
// A scheme is a value, a [Plan], never a type. Bösen (Wei et al., SoCC 2015; J. Wei's
// thesis, chapter 3), Parameter Flow, sufficient factors (Orpheus) and rings are plans.
//
// Clocks: a worker has completed t ticks when it is in clock t; what it pushes then is
// stamped t. It may read in clock t, under staleness s, once it has seen all updates that
// are stamped less than t-s of every worker. s = 0 is bulk-synchronous. The bound is
// enforced where a value is read, never at the tick.
//
// The package uses the standard library alone, and no network: a [Transport] carries
// bytes between nodes. Clusters, with membership and encryption, are another package's.
package distrib

// Package fabric decides which update of which worker goes when over which links, and which are
// added up on the way, as MLfabric does (mlfabric-2020, sections 3 to 6 and 10). It decides and
// sends nothing: what it returns is a [Schedule], the same for the same input.
//
// Updates that are ready are scheduled in batches. The core of the network is never the
// bottleneck: a transfer takes what its sender's uplink and its receiver's downlink both have
// left, over time (figure 4), and transfers that share a link follow each other.
//
// # Order
//
// Algorithm 2 picks the update that would arrive first, unless delay bounds force another one: the
// one applied i-th in a batch has missed v+i-1-v(g) updates, v the model's version before the
// batch and v(g) that which g was computed from, and that may be no more than the bound. The
// paper's rule, to pick g in iteration dl(g), misses the bound when two updates have the same
// deadline. Here a pick is forced by the first prefix of positions i..k that is tight: as many
// updates as it has places must be in it. What cannot be in time is dropped at its worker, and
// likewise an update that was forced and that the next pick would overtake (5.1.3).
//
// # Aggregation
//
// Algorithm 3 partitions the order: the first n updates go to the server directly, those after
// them in groups to aggregators, each of which adds up its group and sends the sum. A group is
// closed when the next update would arrive at the aggregator after the server is free; it has one
// update at least, and the last aggregator takes the rest. All n are tried, and that is taken
// whose last sum arrives first. The order remains that of the first step: the server applies a
// group after the one before it, whichever has arrived.
//
// # Replication
//
// A replica gets the same updates in the same order, of all batches, with the network that the
// server's transfers have left, as far as they arrive by the end of the batch; the rest is punted
// to the next one, where more is added up. If server and replica would then be further apart than
// the bound, the server's last transfer is delayed until after the earliest of the replica's that
// restores it (5.3). The distance is bounded by the norms of the updates that the replica lacks
// (equation 11), for a server with momentum γ and h its last step at the replica's state:
//
//	a(m)·|h| + Σ b(m-j)·|u_j|,  a(m) = γ(1-γ^m)/(1-γ),  b(k) = (1-γ^(k+1))/(1-γ)
//
// or by their number.
//
// # Several servers, models, all-reduce
//
// With a model in several parts an update has a component a server; it arrives when its last
// component does, the components are reserved together, and all have the same order (10.2; the
// paper picks the largest of these times, which must be the smallest). A model goes to workers as
// aggregation does, in reverse (10.3). An all-reduce is a batch in which no order is demanded, to
// one of the workers, and the model's way back (section 6).
package fabric

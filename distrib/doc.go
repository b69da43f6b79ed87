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
// # The engine
//
// An [Engine] is a node at work. Workers push, pull and tick; one goroutine sends, and
// nothing else does, so the order of messages is the order in which they were decided on;
// the transport's goroutines fold in what comes, under the one lock of the node, and never
// wait for the network there. Values of workers change in Pull only. Messages are numbered
// for each pair of nodes and class: one that came before is dropped and counted, and a gap
// ends the connection, so nothing is applied twice and nothing is missed unnoticed.
//
// It is several objects under that lock, which is a monitor: the tables, each with a lane for what
// its plan has in common; the workers, and what is done at their barriers; the mail, which is what
// nodes send each other until it has landed; the sender, which chooses what leaves next; and the
// views, which change. A lane has an outbox, a client for the rows that others own, and a server
// for those that are this node's, with who reads them.
//
// A transport may do more with updates than carry them: the handler of an engine is a [Pool], by
// which messages of updates can be held, added up on their way, or discarded where [Async].Delay
// bounds how late they may come. Package fabric/daemon does that.
//
// What a plan says makes one of five modes:
//
//   - Owners, [Values]: rows have an owner, which folds updates in by the rule and sends
//     rows to those who have asked for them once, whenever the least clock of all workers
//     has advanced, the last message with that clock on it. A reader so knows how old all
//     rows of an owner are, also those that did not change. With Config.OnDemand rows are
//     asked for as of a clock instead, and the owner answers all who wait for that clock or
//     an earlier one, however far the least clock has jumped. Rows come with a number: the
//     last of the reader's own messages that they hold. It adds what it has sent later to
//     them, so a worker always sees its own writes; where the rule does more than add, it
//     does not.
//   - Owners, [Deltas]: owners add up what comes, and when all have sent a clock, send the
//     sum to all nodes, along a tree if the topology has one: a node hands a message on as
//     soon as it has it. All fold the same sums in in the same order, so equal versions are
//     equal bits. A sum counts for readers when all of its clock is there, never in parts.
//   - No owners, fixed ways: updates go along one breadth-first tree from each node, and
//     those that have the same part of their trees before them are merged: each comes once.
//     With it go the clocks of all whose updates are in it, and a reader knows how far it
//     has seen whom. What is on its way through leaves when somebody may wait for it, or at
//     the tick of the node that it goes through.
//   - No owners, ways that are drawn: a box for each other node, emptied when it is drawn;
//     what is due goes in any case, or, as Orpheus has it, whoever is not drawn goes without.
//   - No ways: updates pend until a [Periodic] at a barrier takes them, an all-reduce say.
//
// A tick sends all there is, or with [SSP].Lazy what is due. Due is what a reader at the
// staleness may wait for: whoever is slowest waits for nobody's clock, and the others have
// sent what it needs, so no two nodes wait for each other. Before the tick, a [Pacer] lets
// go what fits its budget, from both sides; the tick asks no pacer. A [Filter] is asked at
// both, and what it keeps does not hold the clock back: visibility is that of what was
// sent.
//
// Rows are dense float32 numbers, or of a [Kind]: [SparseRows], [IntRows] or one's own, as
// Bösen's tables have them. A row of a kind is the update that makes it of nothing, and takes part
// in all of this in that form: it is merged in boxes, divided by filters, added up by owners, sent,
// held as a replica, saved and moved. It is only added to, in any order: rules that do more, and
// averages at barriers, are of dense numbers. Integers make the law above exact.
//
// Memory is bounded before the first step, see [Engine.Bound]. A push waits while the
// outbox is full; then everything pending leaves at once, past pacers and filters, and the
// receivers are asked to acknowledge. What is on its way through a node is merged into
// boxes of the parameters' size, and leaves when its way has room.
//
// At a clock that is to be saved, owners hold back what is stamped past it until all that
// is stamped before is in; outboxes do not merge across it. So a [Shard] holds exactly the
// updates before its clock while workers run ahead, and what is held back is what
// Config.Ordered holds at every clock, to fold updates in in an order that no delay
// changes.
//
// Every wait has a context, is reported with who is missing, and ends with an error after
// a while; at once if a node is lost without which no clock ends. [Engine.Reconfigure]
// changes the view: the old one is drained, rows move, and messages of the new epoch wait
// until they have.
//
// What it does not do: replicas do not move between machines (Orpheus' rotation). What that
// is for, that each meets all data, is had for fewer bytes by drawing every batch from all
// of it, or, where data are dealt to workers, by rotating the data (workload.MLR.Rotate).
// Rows that die with their owner are not rebuilt from what readers have of them, which may
// be neither all nor only what was acknowledged: a checkpoint is exact. Snapshots of rules,
// other than what they keep for each row, do not move with rows. A bound of memory counts
// updates and rows, not the transport's buffers nor the heads of messages.
//
// The package uses the standard library alone, and no network: a [Transport] carries
// bytes between nodes. Clusters, with membership and encryption, are another package's.
package distrib

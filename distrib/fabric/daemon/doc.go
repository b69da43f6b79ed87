// Package daemon runs MLfabric: every node has a daemon around its transport, which holds updates
// until a scheduler has said when they go, and over which links (mlfabric-2020, sections 3 to 5;
// package fabric decides).
//
// A [Daemon] is a transport under an engine of package distrib, whose handler is a
// [distrib.Pool]. A message of updates for another node is announced to the scheduler with its
// size, the version of the values that it was computed from, and how late it may come. The
// scheduler gathers what is announced while other updates are on their way to the same owner, and
// schedules it together: an update goes to its owner when its time has come, or to an aggregator,
// which adds up a group and sends the sum, or it is discarded at its worker, because it would come
// too late: then its clock goes without it, and its sender hears [distrib.ErrStale], and counts
// it. Everything else passes through; what is behind an update for the same node waits for it, so
// that the order of a stream is kept.
//
// # What is certain
//
// The fabric decides when updates come, and never whether the job goes on. Without a scheduler, or
// when it says nothing for 300 ms, updates go directly; and by its word none waits longer than
// 20 s, whatever links are taken for. A sum is folded in whole or not at all, and its owner says
// which to all who have a part in it; who hears nothing, or that the aggregator is
// gone, sends its update again by itself. An update is known to its owner by its number from its
// node, and is folded in once, however often it comes. An owner itself discards what comes later
// than its plan's bound, so the bound holds also for what went without a schedule.
//
// Where updates are added up on their way, floating point sums are others than one by one, and
// which are added up depends on who was when: no bits are promised then. They are added up in the
// order of the schedule. Where a plan promises bits (Config.Ordered: workers in step), or where
// its rule does more than add, updates are never added up, only timed. Under a rule that is
// [distrib.Weighing], each is multiplied by its weight first, by the place that the schedule gives
// it.
//
// # Replicas
//
// With Options.Replicas, each owner's rows are kept by other nodes, too ([Replicas], [Keeps]; the
// engine's Config.Keeps), where updates are added to them. Who has pushed an update keeps it. Once
// its owner has folded it in, and says so, it goes to the first replica when the scheduler says:
// with the other updates that this lacks it is scheduled on what the owner's own have left of the
// links, added up with others on its way, and punted to the next batch where it would come after
// the batch's end and the bound does not ask for it (section 5.3). Without a scheduler, or under a
// new one, it goes at once. A replica has every update once, by its number, hands it on to the next
// one, and the last says so, to the owner, to who has pushed it, who then lets go of it, and to the
// scheduler.
//
// The bound, Options.Bound, is kept by the owner, whatever was scheduled: an update that its
// replicas may not lack, too, waits there, and all that comes after it, until they have more; those
// who have what they lack are asked for it. So at every instant, not only at a batch's end, what an
// owner has folded in and a replica has not is within the bound, in updates, or as the sum of their
// norms, which is equation 11 for a rule that adds; but a single update larger than that is folded
// in where nothing else is lacking. A replica is never ahead of its owner.
//
// When an owner dies, what its replica lacks is with those who have pushed it. They have it still
// (Spares), the replica takes what it does not have (Adopt), and what is lost is the dead node's
// own updates among those. What was pushed in a step that was not done (Finish) is not sent again:
// the step is done again. If its owner and the replica had got it before, it is in the rows beside
// what the step then comes to.
//
// # Memory
//
// What a node holds to add up, and the sums that have not left, are within Options.Parts. A part
// that has no room goes back, and then to its owner directly. What it keeps for replicas is within
// Options.Copies: who has no room for the next update sends what is there at once, and waits.
//
// # Scheduler
//
// One node schedules at a time: whom a [distrib.Coordinator] elects, or the first that is there.
// It says so now and again; a daemon believes the newest term. When nothing is heard of it for a
// second, another node takes its place, before those who elect may know that it is gone: the
// first that is there, or, a beat later each, the next. One that was silent and is back
// schedules no more. Updates that an old one knew of go directly. Each owner's updates are
// scheduled by themselves, on links that all owners share: a model that is spread over several
// owners has an order at each, not one for all, as in section 10.2. What an owner reports, how
// many updates it has folded in, corrects what the scheduler expects. Rates of links are
// measured by daemons, of what they send when the schedule says, which has the links to itself:
// a link is as fast as the fastest way over it was lately.
//
// What is not done: one order for an update in several parts at several owners (10.2), models by
// way of distributors (10.3), which are scheduled by package fabric and not run, and replicas of
// rows whose rule does more than add. Only times are kept to, not rates: transfers that the
// schedule has at the same time share links as the network has it.
package daemon

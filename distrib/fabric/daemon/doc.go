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
// when it says nothing for 300 ms, updates go directly. A sum is folded in whole or not at all, and
// its owner says which to all who have a part in it; who hears nothing, or that the aggregator is
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
// # Scheduler
//
// One node schedules at a time: whom a [distrib.Coordinator] elects, or the first that is there.
// It says so now and again; a daemon believes the newest term. Updates that an old one knew of go
// directly. Each owner's updates are scheduled by themselves, on links that all owners share: a
// model that is spread over several owners has an order at each, not one for all, as in section
// 10.2. What an owner reports, how many updates it has folded in, corrects what the scheduler
// expects. Rates of links are measured by daemons, of what they send when the schedule says, which
// has the links to itself: a link is as fast as the fastest way over it was lately.
//
// Only times are kept to, not rates: transfers that the schedule has at the same time share links
// as the network has it.
package daemon

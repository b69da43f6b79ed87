// Package memnet is a network in memory: transports for tests and simulations.
//
// Every node has an uplink and a downlink, and the core between them is free of
// congestion, as in the papers' clusters: what two nodes may send each other is bounded
// by their own links alone. A message is not cut into packets. All messages that are
// under way at the same time flow like water: their rates are max-min fair over the
// links, which is what TCP comes to when all connections are equal, and rates change
// only when a message starts or ends, or a link changes. So the time that a transfer
// takes is exact, and simulating a gigabyte costs as much as simulating a byte. Messages
// of one stream (from, to, class) go one after the other; a message that has left takes
// the latency of its way to arrive, while the next one leaves already.
//
// Time is package time's. In a bubble of testing/synctest it is virtual: minutes of
// traffic take milliseconds, and a program's own computing takes none unless it sleeps.
//
// Streams are reliable, as those of the real transport: what is lost on the wire is sent
// again below, and shows as a lower rate. What can happen instead is that the way between
// two nodes fails for good: then all that was under way is refused, and each is told
// that the other is down, once, after it has handled all that had arrived. Nodes can be
// killed, paused (as by a stopped process: nothing leaves, nothing is handled) and
// partitioned; a way that is silent for longer than the timeout fails.
//
// A handler that is slow fills the window of its stream; then messages stay with the
// sender, and their Done comes late. That is how a receiver holds a sender back.
//
// It does not model packets, retransmissions, slow start or a switch that is congested.
package memnet

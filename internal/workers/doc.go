// Package workers lets runs of several processes train one model: it is what package train
// asks for of a job ([train.Peers], [train.Between], and the network of a session), on what
// packages distrib and distrib/collective have.
//
// A [Desk] is where workers agree. It takes the few messages that are for it from a
// transport, and hands the others on. Who leaves with an error says why, so that the others
// end with that reason and not with a connection that broke: whatever they wait for ends
// with the desk's context.
//
// Where workers may come and go ([Elastic]), a [Member] is of one group after the other. What
// breaks a group breaks what its workers wait for; each then closes what it has of it, waits
// for the next view, and package train has all of them begin with one state. Who comes to
// others at work ([Coming]) joins them only when it can begin at once.
//
// [Between] keeps variables in step through a [distrib.Synchronizer]: what a worker's own
// step has changed is an update like any other. So every optimizer works with every
// scheme; its state stays the worker's own, and a checkpoint has that of all. Where no
// worker may be ahead of another, owners add up what comes in one order, so that runs
// repeat to the bit.
package workers

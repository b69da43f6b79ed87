// Package compile turns a graph into a plan: it runs the passes that decide,
// and lowers their decisions to addresses, streams and waits.
//
// # Lowering
//
// The operations are emitted in the order of the traversal, and between them
// the copies that the decisions ask for. A copy towards the device is issued
// some operations before it is needed, at most one partition early; a copy from
// the device is issued right after the value is made, and the slot it reads is
// not reused for as many operations. That distance, the prefetch, decides how
// much copying can overlap computing, and what it costs in memory. Lifetimes in
// emission order go to the arena, which fixes addresses; then every step gets
// the waits that order it after the steps it conflicts with, on other streams,
// by value or by address.
//
// # The ladder
//
// The prefetch is not an option but an output: plans are made from the longest
// prefetch (one partition, as in the thesis) to none, and the first that fits
// the budgets is taken. The last rung stages variables for every reader anew. The
// policy Auto climbs further: it searches for the longest look-ahead that fits, so
// that what the budget leaves over is used to copy less. For the nested lifetimes
// of forward and backward passes that is the best use of it, since what is kept is
// what is needed again soonest (Belady). The least peak on the ladder is the smallest budget that
// works; [ErrOutOfMemory] reports it. So a larger budget never gives a tighter
// schedule.
package compile

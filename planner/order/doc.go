// Package order puts the operations of a program into a sequence, for planners that
// do not cut it into partitions first.
//
// The order decides how many bytes live at once before anything is swapped or
// computed again: for a second derivative the worst order of those below needs half
// as much again as the best. No order is best for all graphs, and which one leads to
// the fastest plan within a budget is known only when the plan is there. So this is a
// portfolio, and a planner tries what it has time for:
//
//   - [Creation] is the order in which the model made the nodes, and every update as
//     soon as it is ready: what frees a gradient should not wait for all others. It is
//     best, or within one or two per cent of it, for most models.
//   - [DFS] goes on with what the last operation has made ready, and first with that
//     of it which needs the fewest bytes. (By what it leaves behind, which looks more
//     sensible, the weights' gradients of a recurrent network come last, and what they
//     read lives until then: seven times the peak.)
//   - [LeastPeak] takes, of all that is ready, what raises the peak least; if several
//     do not raise it, what leaves the fewest bytes behind; then the first created.
//     It is blind to what comes later, but so is every rule that ends in time.
//   - [Beam] begins with the best of these and rearranges short stretches of it.
//
// # A stretch
//
// The operations of a stretch of an order can be rearranged, within their
// dependencies, without any effect outside: what has been executed before the stretch
// and after it stays the same, and with it what lives there. So stretches are
// improved one by one, and the peak of the whole is the largest of theirs. What lives
// after some operations of a stretch does not depend on their order either; so
// partial orders are told apart by the set of what they have executed, of two with
// the same set the one with the lower peak is kept, and of all sets of one size so
// many as the beam is wide. If there are never more, the stretch is optimal: that is
// exact dynamic programming, and for the chains with few branches that models are made
// of it usually comes to that.
//
// # What is counted
//
// [Account] has it: the bytes that a node's results, operands and workspace take on
// the device if every value stays from where it is made to its last use there. Sizes
// are those of slots, which are aligned. A result that is made in place has the bytes
// of the operand. What Place has on the host, or moves there, takes nothing: an update
// there does not extend the life of its gradient, which leaves for the host as soon as
// it is made; variables and constants there are staged for each operation that reads
// them. Without Place everything but the inputs is on the device.
//
// # What this does not do
//
// Orders do not look at time: on one compute engine all of them take the same. They
// know of no budget, and of nothing that is swapped or computed again. A stretch is at
// most 64 operations long, so what should move farther stays where the rule that came
// first has put it.
package order

// Package bound says what no plan can do better: the least memory in which a program
// can run at all, and for a budget the least time of a step. They make a refusal
// honest, and they are what a plan's time is measured against.
//
// # Memory
//
// An operation needs its operands, its results and its workspace at once, however much
// of the rest is elsewhere: the largest of these sums is [Bounds.Least]. With the
// operands of the next operation on their way while one runs it is
// [Bounds.Overlapped].
//
// # Time
//
// There is one compute engine, a copy engine for each direction, and the host's
// processor. Operations are first executed in the program's order; pure ones may run
// again at any time; what Place has on the host, or moves there, may be there or on
// the device, as the plan likes. So no step is shorter than the device's operations
// together, nor than the updates divided between device and host as well as can be.
//
// The rest is a look at the moment at which some operation p starts for the first
// time. All earlier operations have run by then, none of the later ones has, and of
// the budget B there is M = B − (what p needs) for everything else. So
//
//   - a value made before p and read after it is among the M bytes, or it has been
//     copied out before p and comes back after, or its producer runs again after p;
//   - an input or a part of a variable that is read before and after p is among the M
//     bytes, or is copied in twice;
//   - a variable that is never copied in is there throughout, with the optimizer's
//     states that its update writes, and so among the M bytes too; if it is not, then
//     its update is on the host and the gradient has to get there, or the update's
//     results have to.
//
// For a time T of a step, T less the time of all operations is what may be spent on
// running some again. What that and M can save at most of each engine's copies, in all
// and, since p splits the time, before p and after it, is found by filling both with
// what saves most for its size, the last of it in part (the knapsack problem
// relaxed). If the copies that are left do not fit, T is too short. The bound is the
// longest T that is too short at one of some hundred operations.
//
// For a palindrome of weights W with C bytes kept this is the 2W − C of the
// literature, and for saved values the sum over the forward pass of what does not fit.
//
// # What this does not do
//
// The bound knows no floor of the operands of what is computed again, looks at one
// moment at a time, divides what cannot be divided, and lets M be used for each of its
// questions anew. So it is below what can be had: by nothing where computing binds, and
// by a third or so where weights are streamed. It holds for one order, one compute
// stream, for values that are copied whole (parts of variables as they are read), and
// for machines whose copies take no less in pieces than at once. The host's memory is
// taken to be large enough.
package bound

// Package control has operations whose work is said by graphs of their own: loops, branches and
// recursion, that is, [Scan], [While], [Cond] and [Recurse] (thesis 7.2.2 names loops and branches
// as what a static plan lacks).
//
// # Bodies and frames
//
// A body is a graph with operands and results, and no variables. It is laid out once, when the
// operation is made: each of its values gets an address in a frame, packed as a plan's are, and the
// frame is the operation's scratch. An iteration copies what it reads into the frame, executes the
// body's kernels there, and copies out what it has computed; the next one uses the same addresses
// again. So a plan has one node for a loop, however long it runs, and the peak that the plan
// predicts has the frame in it, to the byte. The two bodies of a branch share one frame: only the
// larger one's memory is needed.
//
// To everything above, a loop is one operation: it is ordered, swapped around, computed again and
// verified as any other. What follows from that is its limit: a frame is on the device as a whole,
// and so is what the body reads of the operands. Where a loop's rows are too much at once, the
// planner makes several operations of it, with the bits of the whole (package split), between which
// what was recorded is kept, swapped out or computed again: a loop is a [graph.Sequence]. Each of
// them begins with the states, and goes on with the sums, that the one before it left.
// [Options.Segments] has it so in any case.
//
// # Gradients
//
// The gradient of a loop is a loop from the last iteration to the first. It needs the states that
// every iteration began with, so a loop records them, a row an iteration, unless it is told not to.
// Within an iteration it computes the body again, in its frame, and then the body's gradient: an
// iteration's intermediates are never kept. Gradients of operands that all iterations read are
// added up from the last iteration on, in the order of an unrolled loop, with its bits: the sum
// starts at −0, to which adding changes nothing. A gradient of a loop that recorded nothing, such
// as a second gradient, runs it once more to record; a branch's computes the branch once more.
//
// # While
//
// A loop whose end depends on data has a bound, which its memory is planned for, and counts its
// iterations; its gradient runs as many. One that would go on beyond the bound is an error of the
// step.
//
// # Recursion
//
// A function that calls itself has a bound, too: how many calls there may be within one another.
// Each depth is a body, in whose frame is that of the next, so that a plan has as many frames as
// calls are deep, and calls beside each other share theirs. The call that would be too deep is an
// error of the step. The gradient of a call is a call: it computes the body once more, with all
// calls within, so that what is deepest is computed as many times as calls are deep.
//
// # On a GPU
//
// A [Scan] is launched iteration by iteration, and nobody looks at data. Of a [While], a [Cond] and
// a [Scan] with a count data says what runs, so it is looked at in between: one answer of a
// condition an iteration, one number a scan, one answer a branch. Each costs a wait for the stream
// and a copy, in which the GPU has nothing of this stream to do and no other stream is given
// anything. The other way, to run all iterations up to the bound and both branches, and to select
// what counts, needs no wait; but it takes as long as the worst case, and would run bodies on data
// that they are not for. An error, such as a loop that goes on beyond its bound, names the loop, as
// on the host; such operations are not part of CUDA graphs. Commands have no subroutines: those of
// a function that calls itself twice are written out twice a depth.
//
// # What a body may not have
//
// Variables, updates, inputs and exchanges: what it reads, it is given.
//
// # Noise
//
// A random operation draws by its name and a seed, and has no state: an iteration that is computed
// again for its gradient, or by another plan, draws what it drew. It draws the same in all
// iterations where all have one seed, as a mask that holds throughout a sequence does. For numbers
// of its own an iteration folds its number into the seed (ops.FoldIn): the number is a state that
// counts, or an element of what a scan goes along. An unrolled loop that does so draws the same.
package control

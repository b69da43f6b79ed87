// Package search searches for the fastest plan within a budget: which values are
// kept, swapped and computed again, and which variables live on the device.
//
// # What is decided
//
// The order of the operations is given. Decided are, for every value that an
// operation makes: to keep it until its last use; to swap it, that is, to copy it
// to the host once, right after it is made, and to be without it in every gap
// between uses that is longer than the copies; or to drop it in its longest gap
// (or in all long ones) and to execute its operation again just before the next
// use. For every group of variables that are updated together: to have them on the
// device with their optimizer's state; to have them on the host, to stream them to
// their readers, and to send the gradients to the host, where they are updated; or
// to have them on the host, but to stream them to their update on the device too,
// and to write them back. The parts of variables on the host that operations read
// are kept between uses or fetched again.
//
// # How it is found
//
// A state of these decisions is evaluated in three passes, each of which takes
// time that grows like n log n and allocates nothing. Build finds out which
// operations run again, from the last to the first, so that all readers of a
// result are known when its turn comes; it cuts the uses of every value into stays
// and adds up the bytes at every position. The calendar then moves each copy to
// the device ahead of its need: as late as the copies after it allow, and only
// where there is room; what is still being copied to the host takes room too, or
// copies ahead of need would fill the memory that the next operation waits for. The
// simulation runs four engines (the device, the copies each way, the host) in the
// order of the sequence; memory is granted in that order too. If the bytes at every
// position are within the budget, it cannot get stuck.
//
// A descent makes a state fit: while the highest position is over the budget, it lists all that
// could be absent there, weighs the bytes (and for how much of the time over the budget they
// would be absent) against what the absence costs, and takes the best until what is missing is
// covered, or a third of it before it looks again: that takes three times as long, and is better
// where weights are most of what is there. A copy costs its time, by a price: copies are free
// until the link is full, and nobody knows beforehand when it will be. What costs to execute
// again is counted with all operands that are gone by then, and must be computed again too.
// Variables that are worth the same are taken from all over the graph, since copies that are
// needed at the same time wait for one another. Where nothing is left, small values count too,
// and in the end a value may be away in every gap, however short.
//
// Which prices are right, whether variables begin on the device or on the host, in which gaps
// values are away, and whether to recompute at all is found by climbing: from the fastest of a
// few starts to those that differ in one respect, as long as one of them is faster.
//
// Where copies to the host or updates there end after the computation, the variables that are
// updated last are kept on the device, and more descents are made. The rest of the effort goes
// into a local search. Most of its steps decide otherwise about one to three values. Three in
// four of these begin with one that is to blame: for what is executed again because of it, or
// for what the device waits for its copies, those included that were in the way of the copy it
// waits for. What does not fit then is given up, or others are sent away in its place, every
// other time. Now and then a step takes back what is decided of a window of values, or brings a
// group of variables to the device, and descends again at another price. The search goes on from
// there if the step gets faster, or hardly slower at first.
//
// Why not an integer program: with engines that overlap it needs a maximum in its
// goal and a variable for every value and position, and solvers take hours for
// what this does in a second. The descent with prices comes within some percent of
// what exhaustive search finds on small graphs, and the local search takes most
// of that.
//
// # Why not a minimal cut
//
// What a forward pass saves can be chosen by a minimal cut: through values, by their bytes,
// between what is there anyway and what the backward pass reads, so that all else is computed
// again from as few bytes as possible. This was tried as one start more, at equal effort, for
// the thesis' models on two machines (titanx, h200-pcie5) and six budgets of 50 to 90 % less
// memory, in the order of creation; 54 of these have a plan. A step takes 0.999 of the time
// without, by the mean and before packing: less by more than half a percent in 8 cases, and
// more in 7. A start that keeps everything, instead of the cut, does as much: 0.997, 6 and 4.
// A cut has hardly fewer bytes than what it stands for: 68 % for MoE, 79 % for DeepSpeech, 91
// to 99 % for the others. One model gains: WGAN-GP on titanx, 3 to 5 % at 75, 85 and 90 % less;
// at 75 and 85 % the plan that is taken is faster still, without a cut, of another order. That
// is too little for a flow algorithm in every plan.
//
// Partitions are not cut by bytes either: the planner's schedules have none, and it decides
// about each value.
//
// # How it becomes a schedule
//
// All executions and copies are sorted by when they are simulated to start. A stay
// lasts from its first event to the last that starts before its bytes are simulated
// to be free: so the bytes that stays have at an event are those of the simulation,
// and as long as reality keeps to the calendar, nobody waits for an address. With
// stays that end with their last event, whoever takes the address next would wait
// for the copy that still reads it.
//
// # Where variables are best
//
// A descent gives up what is over the budget and no more, and random steps seldom move a group of
// variables for good. So those of the best state are moved one by one, the longest updates first,
// to where a step takes less time: to the host where the device waits for nothing that is updated
// there, whether or not there is room for them, and back.
//
// # Where packing finds no room
//
// Addresses are packed by others, and now and then some block finds no hole, although the bytes
// are there. [Options.Spare] leaves as many free while the operations run that it is there
// with, as if those needed more, and nothing elsewhere: a smaller budget would take from every
// operation what a few of them lack.
//
// # Where the host is short
//
// Values that are swapped take the host's memory instead of the device's. Where that is
// what is short, [Problem.Segmented] is a decision without a search: the forward pass is
// cut where little crosses, what crosses is swapped, and the rest is computed again. With
// as many segments as the square root of what is saved over what crosses, neither memory
// grows with the depth by more than its square root; variables aside.
//
// # What it does not do
//
// It does not choose the order, split operations, or pack addresses. Where
// copies take from operations that run beside them, it does not know which, only that a step takes
// no less than all together. It does not prove that nothing fits where it finds nothing.
//
// Everything is deterministic: times are whole nanoseconds, the effort is a number
// of evaluations, and random choices begin with a fixed seed.
package search

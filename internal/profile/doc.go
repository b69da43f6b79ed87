// Package profile explains a plan and a run of it: what is in each memory at what
// time, who holds the peak, what copies cost and how much of that was hidden behind
// computing, which operations are slow, and what would help. It also says what
// differs between two plans, and finds steps in one.
//
// A profile is made of a plan and its graph alone, and tells more with each of two
// clocks: a predicted one, of a simulated machine, and a measured one, of traced
// steps. A clock is a [Run]: when every step of the plan began and ended. What is
// computed of a clock does not depend on which one it is, so that the two columns
// of a profile can be compared: what a figure is under one of them it is under the
// other.
//
// # Memory over time
//
// A slot has bytes from the beginning of the first step that touches it to the end
// of the last; what is bound when the step begins is there from the start, what is
// fetched until the end, and variables throughout. This is not the plan's own
// notion, in which a slot lives from step to step in a linear order, but the same
// at the speed of the streams: where one of them runs ahead, values live longer
// than the order says, never at an address that anything else has. The peak,
// therefore, is the plan's: the largest end of a slot. It has the operation during
// which most is live in the linear order, and what holds memory then.
//
// What a slot holds is found by replaying the plan. Every byte is of one category:
// weights and optimizer state where they are bound; staging, which is copies of
// variables and constants on their way to an operation; inputs, with constants;
// activations, computed in the forward phase; gradients, in the backward phase;
// and workspace, which operations scribble in. A value that was swapped out is of
// the category that it had before.
//
// # What copies cost
//
// A copy is hidden while any operation runs, on the device or on the host, and
// exposed while none does. The sum over copies says which reason to look at; the
// union says what a step would gain at most if copies were free. Time in which
// nothing runs at all is idle: starting tasks, and waiting for other streams.
//
// How much of a copy could be hidden is not known without making another plan, but what
// it cannot exceed is: the copy cannot begin before an operation has made its bytes, nor
// end after one has begun to read them, and of the time between those two no more than
// operations run can hide it. Room in the memory, and other copies on the same link, are
// left out of this; so hidden is at least as large a part of what could be as it is of
// this bound.
//
// # Measured steps
//
// Of several measured steps the one of median length draws the timeline, so that
// all in it happened together; the time of an operation is the median over all.
//
// # What it does not do
//
// It takes no samples and instruments nothing: a device tells when its tasks began
// and ended. It advises by what it is told of other plans, and plans nothing
// itself.
package profile

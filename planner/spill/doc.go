// Package spill adds a third memory to a schedule that is made: it moves what the
// host holds to a disk, so that a model can be larger than the host's memory.
//
// # What it does
//
// A schedule says when the host's bytes of a value are used: copied to or from the
// device, read or written by an operation that runs there. Between two uses the bytes
// may be on the disk. A variable or constant that is chosen for it is bound there,
// read into a stay on the host for a visit, which is one use or several in a row, and
// written back after the visit in which it is updated. A value that an operation
// computes is written to the disk once, after the visit in which it comes to the host,
// and read for each that follows. Loads and stores are copies like all others, on two
// streams of their own.
//
// # Which gaps
//
// The host's load at every event is known exactly, and so is what a gap on the disk
// saves: the bytes, at every event between the two uses. It costs the same bytes once
// or twice over the disk, and what a disk takes for every access, however short. So
// gaps are taken in the order of events saved for what they cost, and one is taken
// only if it covers an event at which the load is above the limit. When none is left
// above, what the host has free is used to load early and to store late, so that
// nothing waits for the disk; a distance that does not fit is halved until it does. A
// schedule may hold values past their last use: where gaps alone do not suffice, none is.
//
// Of the variables those come first that fewest operations touch, as the optimizer's
// state: two copies for a step's length of memory. See [Order].
//
// # The least
//
// With a limit of 0 every gap is on the disk and nothing is early or late. Then the
// host has at each event what the event touches, inputs, what is not chosen to be on
// the disk, and nothing else: no schedule of the same copies and executions in the
// same order needs less, but for what packing loses. [Least] is that number.
//
// # What it does not do
//
// It does not reorder events, or take back a copy to the device that the disk makes
// slow; a planner that knows prices should plan with what the host has free. Inputs
// stay on the host: they are given there.
package spill

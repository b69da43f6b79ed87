// Package schedule writes down what a step does, event by event, from what the
// thesis' passes have decided: an order of nodes cut into partitions, where each
// runs, and when values are away.
//
// Operations come in the order of the traversal, and between them the copies that
// the decisions ask for. A copy towards the device is issued some operations
// before it is needed, at most a given number of partitions early; a copy from the
// device is issued right after the value is made, and the bytes it reads are not
// reused for as many operations. That distance, the prefetch, decides how much
// copying can overlap computing, and what it costs in memory.
//
// A part of a variable on the host is staged for a reader, and kept for other
// readers within the look-ahead. A result is made in place where the operation
// allows it and nobody needs the operand on the device any more. Among several
// compute streams, an operation goes where its latest operand was made, if that
// stream is free, and else where the least work is.
//
// What it does not do: look at times. Package search does.
package schedule

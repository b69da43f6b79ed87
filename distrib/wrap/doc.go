// Package wrap decorates transports: a limit of rate, a meter, and faults.
//
// A decorator is a transport around a transport, so each works over all: in memory, over
// sockets, and around another decorator. All keep what [distrib.Transport] promises: order
// within a stream, Done once, and never by the goroutine that sends. A limit holds messages
// back, and their Done with them, so that whoever bounds what he has under way is slowed
// down and nobody's memory grows. Faults break promises on purpose, by a schedule that
// depends on a seed and the number of a message in its stream alone, so that a test that
// fails fails again.
package wrap

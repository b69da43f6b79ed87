// Package transporttest is what every [distrib.Transport] must do, as tests: order,
// ownership of bytes, Done once, back-pressure, the end of a node as the others see it.
//
// A transport in memory, whose time is virtual, and one over a network pass the same
// tests, so that what works on the one works on the other. Nothing is timed; a test that
// waits for what does not come gives up after a minute.
package transporttest

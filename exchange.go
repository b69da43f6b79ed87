package gomem

import "github.com/gomem/gomem/executor"

// Network carries the exchanges of a job's steps between its workers: what ops.Send
// and ops.Await ask for.
type Network = executor.Network

// Meter is implemented by networks that know how much memory they have.
type Meter interface {
	// Peak is the most bytes of buffers of its own, in host memory, that the network has
	// had at once: what it was sent is not counted.
	Peak() int64
}

// Exchange is a value that a step gives to the network, and what it gets for it.
type Exchange = executor.Exchange

// Gatherer is a network of a job that goes on without a worker that is lost in a step.
type Gatherer = executor.Gatherer

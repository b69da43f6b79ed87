package gomem

import "github.com/gomem/gomem/executor"

// Network carries the exchanges of a job's steps between its workers: what ops.Send
// and ops.Await ask for.
type Network = executor.Network

// Exchange is a value that a step gives to the network, and what it gets for it.
type Exchange = executor.Exchange

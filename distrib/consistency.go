package distrib

// BSP is bulk-synchronous: a worker reads in clock t what all workers wrote in the clocks
// before it.
type BSP struct{}

// MayRead reports whether all updates of earlier clocks are in.
func (BSP) MayRead(at Clock, seen func(NodeID) Clock, peers []NodeID) bool {
	return SSP{}.MayRead(at, seen, peers)
}

// Due reports whether an entry is of a clock that ends.
func (BSP) Due(e *Entry, now Clock) bool { return SSP{}.Due(e, now) }

// SSP is stale-synchronous: a worker reads in clock t what all workers wrote in the clocks
// before t-S, and what has come of later ones. Between reading and ticking, workers are at
// most S ticks apart.
type SSP struct {
	S    int
	Lazy bool // entries wait until they are due, and are merged the while; else each tick sends
}

// MayRead reports whether all updates stamped less than at-S are in.
func (s SSP) MayRead(at Clock, seen func(NodeID) Clock, peers []NodeID) bool {
	for _, p := range peers {
		if seen(p) < at-Clock(s.S) {
			return false
		}
	}
	return true
}

// Due reports whether a reader S clocks ahead may wait for an entry. The slowest worker
// waits for nobody's clock, and whoever is ahead of it has sent what it needs: so nobody
// waits for an entry that is not due.
func (s SSP) Due(e *Entry, now Clock) bool { return e.Made <= now-Clock(s.S) }

// Async lets everybody read what is there.
//
// With Delay, updates are bounded in how late they may come, as MLfabric's are (section 5.1):
// the delay of one is how many others its owner has folded in since it sent the values that the
// update was computed from, and one with more is discarded, and counted. A message of updates
// is one: Config.Message is to hold all that a worker pushes in a clock. Who pushes gets the
// rows back at once, and reads when they hold its own updates, so that it computes from values
// that are as new as can be. What a filter keeps back counts as new when it is sent.
type Async struct {
	Delay Version // 0: any
}

// MayRead is always true.
func (Async) MayRead(Clock, func(NodeID) Clock, []NodeID) bool { return true }

// Due is never true: what goes at a tick goes because nothing holds it back.
func (Async) Due(*Entry, Clock) bool { return false }

// lazy reports whether a tick sends only what is due.
func lazy(c Consistency) bool {
	s, ok := c.(SSP)
	return ok && s.Lazy
}

// needs is the least clock n such that a worker in clock at may read when it has seen all
// updates stamped less than n of everybody. It relies on this: who may read may do so as
// well having seen more.
func needs(c Consistency, at Clock, peers []NodeID) Clock {
	lo, hi := Clock(0), max(at, 0)
	for lo < hi {
		mid := (lo + hi) / 2
		if c.MayRead(at, func(NodeID) Clock { return mid }, peers) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

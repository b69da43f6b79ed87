package fabric

import "fmt"

// ID is an update's, in a job.
type ID uint64

// Update is one that a worker has ready.
type Update struct {
	ID      ID
	From    Host
	Bytes   []float64 // of its components, one a server
	Version int64     // of the model that it was computed from
	Norm    float64   // its Euclidean norm; for a bound by norms
}

// Batch is what is scheduled at once.
type Batch struct {
	Updates []Update
	Servers []Host
	// Aggregators are those of each server, in the order of their groups; none: all updates go to
	// the servers directly. Each server has as many.
	Aggregators [][]Host
	// Version is the model's before the batch, and MaxDelay how many updates may be applied
	// between an update's version and it; below 0: any number, and all come in order of arrival.
	Version, MaxDelay int64
}

// Transfer is bytes on their way between two hosts.
type Transfer struct {
	Updates    []ID // one, or those that were added up
	From, To   Host
	Component  int
	Bytes      float64
	Start, End float64 // seconds after the batch's beginning
}

// Group is updates that arrive at the servers as one, added up, in order.
type Group struct {
	Updates []ID
	Direct  bool // one update, that went to the servers itself
	Arrives float64
}

// Schedule is what becomes of a batch.
type Schedule struct {
	Order     []ID // that are applied
	Dropped   []ID // at their workers
	Groups    []Group
	Transfers []Transfer
	End       float64      // when the last group has arrived
	Replica   *Replication // nil: there is none
}

// BatchError is a batch that cannot be scheduled.
type BatchError struct{ What string }

// Error is one line.
func (e *BatchError) Error() string { return "a batch that cannot be scheduled: " + e.What }

// check reports what is wrong with a batch.
func (b *Batch) check(hosts int) error {
	inside := func(h Host) bool { return h >= 0 && int(h) < hosts }
	if len(b.Servers) == 0 {
		return &BatchError{"it has no server"}
	}
	if n := len(b.Aggregators); n > 0 && n != len(b.Servers) {
		return &BatchError{fmt.Sprintf("aggregators of %d servers, and there are %d", n,
			len(b.Servers))}
	}
	for _, h := range b.Servers {
		if !inside(h) {
			return &BatchError{fmt.Sprintf("a server on host %d of %d", h, hosts)}
		}
	}
	for _, all := range b.Aggregators {
		if len(all) != len(b.Aggregators[0]) {
			return &BatchError{"servers with different numbers of aggregators"}
		}
		for _, h := range all {
			if !inside(h) {
				return &BatchError{fmt.Sprintf("an aggregator on host %d of %d", h, hosts)}
			}
		}
	}
	seen := map[ID]bool{}
	for _, u := range b.Updates {
		if !inside(u.From) || len(u.Bytes) != len(b.Servers) || seen[u.ID] {
			return &BatchError{fmt.Sprintf("update %d comes twice, from a host that is not there, "+
				"or has %d components for %d servers", u.ID, len(u.Bytes), len(b.Servers))}
		}
		seen[u.ID] = true
	}
	return nil
}

// groups is how many aggregators each server has.
func (b *Batch) groups() int {
	if len(b.Aggregators) == 0 {
		return 0
	}
	return len(b.Aggregators[0])
}

// finish is when all components of an update have arrived at the servers.
func (b *Batch) finish(n *Network, u *Update) float64 {
	end := 0.0
	for j, bytes := range u.Bytes {
		end = max(end, n.Finish(u.From, b.Servers[j], 0, bytes))
	}
	return end
}

// reserve is finish, and takes it.
func (b *Batch) reserve(n *Network, u *Update) float64 {
	end := 0.0
	for j, bytes := range u.Bytes {
		_, e := n.Reserve(u.From, b.Servers[j], 0, bytes)
		end = max(end, e)
	}
	return end
}

package distrib

import (
	"fmt"
	"time"
)

// Order says which entries go first when not all may.
type Order uint8

// The orders of managed communication.
const (
	Random     Order = iota // drawn anew for every message
	RoundRobin              // rows in turn, from the one after the last that went
	AbsMag                  // the largest sum of absolute changes first, a row
	RelMag                  // the largest sum of changes relative to the values first, a row
	orders
)

// String is the order's name, "relmag".
func (o Order) String() string {
	return [...]string{"random", "round-robin", "absmag", "relmag", "?"}[min(o, orders)]
}

// ParseOrder is the order of a name. The error lists them.
func ParseOrder(name string) (Order, error) {
	var all []string
	for o := range orders {
		if o.String() == name {
			return o, nil
		}
		all = append(all, o.String())
	}
	return 0, fmt.Errorf("no order %.60q: there are %s", name, enumerate(all))
}

// LeakyBucket is Bösen's managed communication: what need not go yet goes as bandwidth
// allows, the most important first. After B bytes the next voluntary message may leave
// 8*B/(Mbps*1e6) seconds later, and has at most Queue bytes, so in any time t no more than
// Mbps*t/8 + Queue bytes are voluntary. What is due goes without asking, and is counted:
// a network that is busy with it takes nothing voluntary.
//
// The guard against overuse: while more than Window messages have not arrived, nothing
// voluntary goes, whatever the budget, since the network does not carry that much.
type LeakyBucket struct {
	Mbps   float64 // of the node's messages together; 0: no limit
	Queue  int     // bytes; 100 KB if 0
	Order  Order
	Window int    // messages; 0: no guard
	Seed   uint64 // of Random

	next     time.Time // when a voluntary message may leave
	on       int       // messages that have not arrived
	messages uint64    // sent so far
	last     *Ref      // what went last
}

// poll is when to ask again where only an arrival can change the answer, as Bösen does.
const poll = 2 * time.Millisecond

func (p *LeakyBucket) queue() int {
	if p.Queue > 0 {
		return p.Queue
	}
	return 100_000
}

// Budget is a queue's bytes when the last message has leaked away.
func (p *LeakyBucket) Budget(_ NodeID, now time.Time) (bytes int, again time.Duration) {
	if p.Window > 0 && p.on > p.Window {
		return 0, poll
	}
	if wait := p.next.Sub(now); wait > 0 {
		return 0, wait
	}
	return p.queue(), p.leak(p.queue())
}

// leak is how long so many bytes take, rounded up.
func (p *LeakyBucket) leak(bytes int) time.Duration {
	if p.Mbps <= 0 {
		return 0
	}
	return time.Duration(8000*float64(bytes)/p.Mbps) + 1
}

// Sent fills the bucket, by a message that was due as well.
func (p *LeakyBucket) Sent(_ NodeID, bytes int, at time.Time) {
	if p.next.Before(at) {
		p.next = at
	}
	p.next = p.next.Add(p.leak(bytes))
	p.on++
	p.messages++
}

// Acked notes that a message has arrived.
func (p *LeakyBucket) Acked(NodeID) { p.on = max(0, p.on-1) }

// Released notes what goes early.
func (p *LeakyBucket) Released(e *Entry) { p.last = &e.Ref }

// Better compares by [LeakyBucket.Score], and then by age and place.
func (p *LeakyBucket) Better(a, b *Entry, value func(Ref) []float32) bool {
	if x, y := p.Score(a, value), p.Score(b, value); x != y {
		return x > y
	}
	if a.Made != b.Made {
		return a.Made < b.Made
	}
	return before(a.Ref, b.Ref)
}

// Score is what the order sorts by, the largest first; it stays until the next message.
func (p *LeakyBucket) Score(e *Entry, value func(Ref) []float32) float64 {
	switch p.Order {
	case Random:
		return float64(mix(p.Seed^drawOf(e, Clock(p.messages))) >> 11)
	case RoundRobin:
		if p.last != nil && before(*p.last, e.Ref) {
			return 1
		}
		return 0
	case RelMag:
		return magnitude(e, value(e.Ref))
	}
	return magnitude(e, nil)
}

func before(a, b Ref) bool {
	if a.Param != b.Param {
		return a.Param < b.Param
	}
	return a.Row < b.Row
}

// magnitude is the sum of an entry's absolute changes, each relative to its value where
// there is one that is not 0, for a row.
func magnitude(e *Entry, value []float32) float64 {
	var sum float64
	add := func(i int, d float32) {
		if i < len(value) && value[i] != 0 {
			d /= value[i]
		}
		sum += float64(abs(d))
	}
	switch u := plain(e.U).(type) {
	case Sparse:
		for i, at := range u.Idx {
			add(int(at), u.Val[i])
		}
	case Ints:
		for at, v := range u.All() {
			add(at, float32(v))
		}
	case Cell:
		for i, d := range AsDense(u) {
			add(i, d)
		}
	default:
		for i, d := range parted(u) {
			add(i, d)
		}
	}
	return sum / float64(max(e.Ref.N, 1))
}

package distrib

import (
	"fmt"
	"math"
	"slices"
)

// Audit is what a node has counted since it began.
type Audit struct {
	Self     NodeID
	Epoch    int64
	Received int64 // messages that were taken
	Foreign  int64 // that were of another epoch, or of nodes that were lost, and dropped
	Repeated int64 // that had come before, and were dropped
	Blocked  int64 // pushes that waited for the outbox
	Squeezed int64 // entries that left before their clock, past filters, for want of memory
	Kept     int64 // bytes of updates that filters have kept back, once for every time
	Lost     int64 // bytes of updates that a plan sends to nobody, once for each who goes without
	Stale    int64 // messages of updates that were discarded: of this node's, or by it as an owner
	Moved    int64 // rows that were sent to new owners, or to nodes that joined
	Saved    int64 // shards that were saved
	Unsaved  int64 // and those that could not be
	// Delays counts messages of updates that were folded in by their delay: see [Async]. The last
	// is of those with that or more. It is kept where delays have a bound.
	Delays []int64
	Params []Ledger

	Held, Staged, Queued int64 // bytes now: see [Memory]
	peak                 Memory
}

// Ledger is where the updates of a parameter are, as sums of their elements: no way of
// adding updates up changes these but by rounding. An update that goes to several nodes
// counts once for each. They are kept if Config.Audited.
type Ledger struct {
	Name     string
	Pushed   float64 // by workers here, and on the way through
	Pending  float64 // of it, in the outbox
	Sent     float64 // handed to the transport
	Dropped  float64 // not sent, since its receiver is lost, or goes without
	Drained  float64 // taken by what is done at barriers
	Received float64
	Folded   float64 // into rows or sums of this node
	Late     float64 // received and discarded: see [Async]
	Held     float64 // received and to be folded in later
	Moved    float64 // absolute values of all that was pushed or received: what sums are exact to
}

// Check reports whether nothing was lost or taken twice on this node: pushed is pending,
// sent, dropped or drained; received is folded in, discarded or held.
func (l Ledger) Check() error {
	out := l.Pushed - (l.Pending + l.Sent + l.Dropped + l.Drained)
	in := l.Received - (l.Folded + l.Late + l.Held)
	if slack := float64(1e-5*l.Moved) + 1e-12; math.Abs(out) > slack || math.Abs(in) > slack {
		return fmt.Errorf("distrib: updates of %s are lost or doubled: %g pushed are missing, %g "+
			"received are", l.Name, out, in)
	}
	return nil
}

// Check is of all parameters: the first that is not right.
func (a Audit) Check() error {
	for _, l := range a.Params {
		if err := l.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Audit is what the node has counted so far, at an instant.
func (e *Engine) Audit() Audit {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.audit
	a.Self, a.Epoch, a.Delays = e.self, e.cfg.View.Epoch, slices.Clone(a.Delays)
	for _, p := range e.params {
		l := p.ledger
		l.Name = p.name
		a.Params = append(a.Params, l)
	}
	if !e.cfg.Audited {
		return a
	}
	pends := func(it *item) { a.Params[it.p.id].Pending += mass(it.U) }
	e.eachPending(pends)
	e.mail.eachQueued(pends)
	for _, l := range e.lanes {
		if l.server == nil {
			continue
		}
		for _, u := range l.server.held {
			a.Params[u.Ref.Param].Held += mass(u.U)
		}
	}
	return a
}

// eachPending calls f for every entry of a box.
func (t *tables) eachPending(f func(*item)) {
	for _, l := range t.lanes {
		for _, b := range l.outbox.boxes {
			for _, it := range b.items {
				f(it)
			}
		}
	}
}

// eachQueued calls f for every entry that waits to be handed to the transport.
func (ml *mail) eachQueued(f func(*item)) {
	for _, id := range ml.all {
		for _, p := range ml.links[id].updates {
			for _, it := range p.items {
				f(it)
			}
		}
	}
}

func (l *Ledger) push(c *Config, u Update, copies int) {
	if c.Audited {
		l.Pushed += float64(float64(copies) * mass(u))
		l.Moved += float64(float64(copies) * size(u))
	}
}

func (l *Ledger) send(c *Config, u Update) {
	if c.Audited {
		l.Sent += mass(u)
	}
}

func (l *Ledger) drop(c *Config, u Update) {
	if c.Audited {
		l.Dropped += mass(u)
	}
}

func (l *Ledger) drain(c *Config, u Update) {
	if c.Audited {
		l.Drained += mass(u)
	}
}

func (l *Ledger) receive(c *Config, u Update) {
	if c.Audited {
		l.Received += mass(u)
		l.Moved += size(u)
	}
}

func (l *Ledger) fold(c *Config, u Update) {
	if c.Audited {
		l.Folded += mass(u)
	}
}

// size is the sum of an update's absolute values, or more.
func size(u Update) float64 {
	var sum float64
	switch u := plain(u).(type) {
	case Dense:
		sum = absolutes(u)
	case Sparse:
		sum = absolutes(u.Val)
	case Factored:
		for r := range u.R {
			sum += float64(absolutes(u.a(r)) * absolutes(u.b(r)))
		}
	case Cell:
		_, sum = u.Sums()
	}
	return sum
}

func absolutes(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += math.Abs(float64(v))
	}
	return sum
}

package daemon

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric"
)

// Options of a daemon. Nodes must be given; the zero value of the others is the plain choice.
type Options struct {
	// Nodes are those of the view, the same on all of them.
	Nodes []distrib.NodeID
	// Elect chooses who schedules, as a [distrib.Coordinator] does; nil: the first of the nodes
	// that is there, as far as each knows.
	Elect Elector
	// Aggregators is how many nodes add updates up for an owner; 0: none does.
	Aggregators int
	// Batch is how much is scheduled ahead, 0: 100 ms: updates wait, and others for the same owner
	// with them, until what was scheduled before them has arrived but for so long.
	Batch time.Duration
	// Patience is how long a daemon waits for the scheduler's word before it sends an update as if
	// there was none; 0: 300 ms, and not less than 200. Lost is how much later than foreseen an
	// owner may say that it has what was added up, before each part is sent again; 0: 1 s.
	Patience, Lost time.Duration
	// Replicas is how many nodes keep a replica of each owner's rows, and Bound what these may lack
	// of what it has folded in: see [Replicas]. Bound.Momentum is 0.
	Replicas int
	Bound    fabric.Bound
	// Copies is the bytes of updates of this node that wait for replicas, at most, but for one; and
	// Parts of what it is to add up, and of sums. 0: any number.
	Copies, Parts int64
	Bps           float64 // of links that nobody has measured, bits a second; 0: 1e9
	// Log takes what a person should know, a line at a time. It may not call the daemon.
	Log func(string)
}

// Elector chooses one of all who ask, and another when that one is gone.
type Elector interface {
	// Lead waits until this node leads in a role; term ends when it does not any more.
	Lead(ctx context.Context, role string) (term context.Context, err error)
}

// Role is what a daemon is elected for.
const Role = "fabric"

// beat is how often a scheduler says that it is one.
const beat = 100 * time.Millisecond

// Stats is what a daemon has counted.
type Stats struct {
	Scheduled int64   // updates of this node that went when the scheduler said
	Alone     int64   // that went without its word: there was none
	Dropped   int64   // that were discarded, since they would have come too late
	Summed    int64   // that their owners took as part of a sum
	Again     int64   // that were sent again by themselves: nobody had said that a sum was taken
	Sums      int64   // that this node has added up
	Parts     int64   // updates in them
	Batches   int64   // that this node has scheduled
	Refused   int64   // messages that could not be used
	Copied    int64   // updates of this node that all replicas have got
	Waited    int64   // updates that this node as an owner has made wait for its replicas
	Lacking   int     // updates that its replicas lack
	Lacked    int     // and have lacked at most
	Apart     float64 // what its rows and theirs differ by, at most; 0 without a bound by norms
	Farthest  float64 // and have
	Held      int64   // bytes of parts and sums that this node holds to add up
	Most      int64   // and has held
	Spared    int64   // bytes of its updates that wait for replicas
	Sparest   int64   // and have waited, at most
	Full      int64   // parts that were sent back, since there was no room for them
}

// Daemon is a transport that has updates scheduled. Its parts are under its one lock, but for lag
// and shelf, which have their own.
type Daemon struct {
	distrib.Transport
	o    Options
	self distrib.NodeID
	stop context.CancelFunc
	ends sync.WaitGroup // of what goes on beside

	mu      sync.Mutex
	calls   []func() // once the lock is given up
	pool    distrib.Pool
	handler distrib.Handler
	closing bool
	stats   Stats

	ring     ring
	election election
	ways     ways
	spares   spares
	sums     aggregator
	lag      lag
	shelf    shelf
}

// Wrap has updates that are sent through a transport scheduled. The transport is the daemon's from
// here on. Every node of the view has one, with the same options.
func Wrap(t distrib.Transport, o Options) *Daemon {
	o.Batch = cmp.Or(o.Batch, 100*time.Millisecond)
	o.Patience = max(cmp.Or(o.Patience, 300*time.Millisecond), 2*beat)
	o.Lost = cmp.Or(o.Lost, time.Second)
	o.Bps = cmp.Or(o.Bps, 1e9)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	o.Nodes = slices.Sorted(slices.Values(o.Nodes))
	d := &Daemon{Transport: t, o: o, self: t.Self(), stop: func() {},
		ring: ring{o.Nodes, o.Replicas, map[distrib.NodeID]bool{}}}
	d.election = election{d: d, chief: -1, chiefs: map[distrib.NodeID]bool{}}
	d.ways = ways{d: d, to: map[distrib.NodeID]*way{}, rates: map[distrib.NodeID]float64{}}
	d.spares = spares{d: d, byID: map[id]*spare{}}
	d.sums = aggregator{d: d, groups: map[uint64]*gathering{}}
	d.lag = lag{d: d, seen: map[distrib.NodeID]uint64{}}
	d.shelf = shelf{d: d, have: map[[2]distrib.NodeID]*numbered{}}
	return d
}

// Stats is what has been counted so far.
func (d *Daemon) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// unlock gives the lock up, and calls what was to be called then.
func (d *Daemon) unlock() {
	calls := d.calls
	d.calls = nil
	d.mu.Unlock()
	for _, f := range calls {
		f()
	}
}

// Drop gives a node up.
func (d *Daemon) Drop(node distrib.NodeID, why error) { distrib.Drop(d.Transport, node, why) }

// Serve begins to deliver messages; where their handler is a [distrib.Pool], updates are scheduled
// from then on.
func (d *Daemon) Serve(h distrib.Handler) {
	d.mu.Lock()
	d.handler = h
	d.pool, _ = h.(distrib.Pool)
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	if d.pool != nil {
		d.election.heard = time.Now()
		d.election.watch()
	}
	switch {
	case d.pool == nil:
	case d.o.Elect != nil:
		d.ends.Go(func() { d.election.campaign(ctx) })
	default:
		d.election.volunteer()
	}
	d.unlock()
	d.Transport.Serve(receiver{d})
}

// Close sends all that is held back, and ends.
func (d *Daemon) Close() error {
	d.mu.Lock()
	d.closing = true
	d.election.resign()
	if d.election.vigil != nil {
		d.election.vigil.Stop()
	}
	for _, w := range d.ways.to {
		w.flush()
	}
	for _, g := range d.sums.groups {
		d.sums.forward(g)
	}
	d.stop()
	d.unlock()
	d.ends.Wait()
	return d.Transport.Close()
}

// receiver takes what comes.
type receiver struct{ d *Daemon }

// Receive hands a message on, or does what the fabric wants done with it.
func (r receiver) Receive(from distrib.NodeID, m *distrib.Msg) {
	d := r.d
	if m.Tag == tag && (m.Class == distrib.Control || m.Class == distrib.Updates) {
		if err := d.read(from, m); err != nil {
			d.refuse(from, err)
		}
		return
	}
	if m.Class != distrib.Updates || d.pool == nil {
		d.handler.Receive(from, m)
		return
	}
	if err := d.lag.accept(d.arrived(from, m)); err != nil {
		d.refuse(from, err)
	}
}

// arrived is a message of updates for this node that has come by itself.
func (d *Daemon) arrived(from distrib.NodeID, m *distrib.Msg) incoming {
	p, ok := d.pool.Push(m)
	if !ok {
		return incoming{take: func() (bool, error) {
			d.handler.Receive(from, m)
			return false, nil
		}}
	}
	x := piece{ID: idOf(from, d.self, p), Norm: d.norm(m)}
	f := fold{ID: x.ID, Bytes: size(m), Norm: x.Norm}
	head := &distrib.Msg{Class: m.Class, Head: m.Head}
	return incoming{pieces: []piece{x}, single: true, take: func() (bool, error) {
		before := d.pool.Folded(head)
		d.handler.Receive(from, m)
		f.Version = d.pool.Folded(head)
		d.report(f)
		return f.Version > before, nil
	}}
}

// refuse counts a message that cannot be used.
func (d *Daemon) refuse(from distrib.NodeID, err error) {
	d.mu.Lock()
	d.stats.Refused++
	d.unlock()
	d.o.Log((&ScheduleError{from, err.Error()}).Error())
}

// Down takes note that a node is gone: what waits for it waits no longer.
func (r receiver) Down(from distrib.NodeID, err error) {
	d := r.d
	d.mu.Lock()
	d.ring.down[from] = true
	lost := d.election.chief == from
	if lost {
		d.election.chief = -1
	}
	if d.election.own != nil {
		d.election.own.lose(from)
	}
	d.ways.lose(from, lost)
	for _, g := range d.sums.groups {
		d.sums.complete(g)
	}
	d.spares.rearrange(from)
	if lost {
		d.spares.alone(func(*spare) bool { return true })
	}
	if d.o.Elect == nil && d.pool != nil && !d.closing {
		d.election.volunteer()
	}
	d.unlock()
	d.lag.lose(from)
	d.handler.Down(from, err)
}

package daemon

import (
	"slices"
	"sync"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric"
)

// Replicas are the nodes that keep the rows of an owner, in the order in which each hands on to the
// next what it has got: those before it in the ring of all nodes. There are fewer than are asked
// for where there are no more nodes.
func Replicas(nodes []distrib.NodeID, owner distrib.NodeID, count int) (list []distrib.NodeID) {
	at := slices.Index(nodes, owner)
	for i := 1; at >= 0 && i < len(nodes) && len(list) < count; i++ {
		list = append(list, nodes[(at-i+len(nodes))%len(nodes)])
	}
	return list
}

// Keeps are the nodes of whose rows one keeps a replica, as of [Replicas].
func Keeps(nodes []distrib.NodeID, node distrib.NodeID, count int) (owners []distrib.NodeID) {
	for _, n := range nodes {
		if slices.Contains(Replicas(nodes, n, count), node) {
			owners = append(owners, n)
		}
	}
	return owners
}

// replicas are those of an owner that are there, and replicates reports whether a node is one.
func (d *Daemon) replicas(owner distrib.NodeID) []distrib.NodeID {
	if d.o.Replicas == 0 {
		return nil
	}
	all := Replicas(d.o.Nodes, owner, d.o.Replicas)
	return slices.DeleteFunc(all, func(n distrib.NodeID) bool { return d.down[n] })
}

func (d *Daemon) replicates(owner, node distrib.NodeID) bool {
	return slices.Contains(Replicas(d.o.Nodes, owner, d.o.Replicas), node)
}

// goesTo reports whether a node takes updates of an owner's rows.
func (d *Daemon) goesTo(owner, node distrib.NodeID) bool {
	return owner == node || d.replicates(owner, node)
}

// lag is what an owner knows of its replicas. Its lock is held while updates are folded in, so
// that these and what is noted of them are in one order.
type lag struct {
	mu   sync.Mutex
	void bool                      // there is no replica any more
	lack []piece                   // that are folded in, and not with all replicas
	held []incoming                // that wait until the replicas have more
	seen map[distrib.NodeID]uint64 // the last of a node that was folded in or discarded
}

// incoming is updates that have come for their owner, one or those of a sum; or none, in a message
// that keeps its place among them.
type incoming struct {
	pieces []piece
	single bool
	take   func() (folded bool, err error)
	refuse func() // of a sum: its parts are to come one by one
}

// accept folds updates in, or has them wait, and all that comes after them, until the replicas have
// got so much that they may lack these.
func (d *Daemon) accept(x incoming) error {
	if d.o.Replicas == 0 {
		_, err := x.take()
		return err
	}
	l := &d.lag
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.refuse != nil && !l.void && !d.o.Bound.Holds(0, norms(x.pieces)) {
		x.refuse()
		return nil
	}
	if len(l.held) > 0 || !d.fits(x) {
		l.held = append(l.held, x)
		d.urge(len(x.pieces))
		return nil
	}
	return d.fold(x)
}

// fits reports whether replicas may lack updates, too. One alone may be larger than any bound.
func (d *Daemon) fits(x incoming) bool {
	l := &d.lag
	return l.void || len(x.pieces) == 0 || len(l.lack) == 0 && x.single ||
		d.o.Bound.Holds(0, slices.Concat(norms(l.lack), norms(x.pieces)))
}

func norms(ps []piece) (all []float64) {
	for _, p := range ps {
		all = append(all, p.Norm)
	}
	return all
}

// fold folds updates in, and notes that the replicas lack them.
func (d *Daemon) fold(x incoming) error {
	l := &d.lag
	folded, err := x.take()
	for _, p := range x.pieces {
		if p.ID.Seq <= l.seen[p.ID.From] {
			continue // it had come before
		}
		if x.single {
			d.Transport.Send(p.ID.From, message(aFate, nil, fate{p.ID, folded}))
		}
		if folded || x.single {
			l.seen[p.ID.From] = p.ID.Seq
		}
		if folded && !l.void {
			l.lack = append(l.lack, p)
		}
	}
	d.count()
	return err
}

// count notes how far the replicas are behind.
func (d *Daemon) count() {
	n, apart := len(d.lag.lack), fabric.Bound{}.Distance(0, norms(d.lag.lack))
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.stats
	s.Lacking, s.Lacked = n, max(s.Lacked, n)
	s.Apart, s.Farthest = apart, max(s.Farthest, apart)
}

// urge asks for what replicas lack, at once.
func (d *Daemon) urge(more int) {
	d.mu.Lock()
	d.stats.Waited += int64(more)
	d.mu.Unlock()
	asked := map[distrib.NodeID]bool{}
	for _, p := range d.lag.lack {
		if !asked[p.ID.From] {
			asked[p.ID.From] = true
			d.Transport.Send(p.ID.From, message(anUrge, nil))
		}
	}
}

// caughtUp notes that all replicas have an update, and folds in what has waited for that.
func (d *Daemon) caughtUp(x id) {
	l := &d.lag
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lack = slices.DeleteFunc(l.lack, func(p piece) bool { return p.ID == x })
	d.resume()
}

// resume folds in what may be folded in now.
func (d *Daemon) resume() {
	l := &d.lag
	n := len(l.held)
	for len(l.held) > 0 && d.fits(l.held[0]) {
		x := l.held[0]
		l.held = l.held[1:]
		if err := d.fold(x); err != nil {
			d.o.Log("fabric: " + err.Error())
		}
	}
	if len(l.held) > 0 && len(l.held) < n {
		d.urge(0)
	}
	d.count()
}

// lose waits no more for what a node would have sent to replicas, nor for a replica that is gone.
func (l *lag) lose(d *Daemon, node distrib.NodeID) {
	if d.o.Replicas == 0 {
		return
	}
	d.mu.Lock()
	left := len(d.replicas(d.self))
	d.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lack = slices.DeleteFunc(l.lack, func(p piece) bool { return p.ID.From == node })
	if left == 0 {
		l.void, l.lack = true, nil
	}
	d.resume()
}

package daemon

import (
	"slices"
	"sync"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric"
)

// lag is what an owner knows of its replicas. Its lock is held while updates are folded in, so
// that these and what is noted of them are in one order.
type lag struct {
	d    *Daemon
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
func (l *lag) accept(x incoming) error {
	if l.d.ring.count == 0 {
		_, err := x.take()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.refuse != nil && !l.void && !l.d.o.Bound.Holds(0, norms(x.pieces)) {
		x.refuse()
		return nil
	}
	if len(l.held) > 0 || !l.fits(x) {
		l.held = append(l.held, x)
		l.urge(len(x.pieces))
		return nil
	}
	return l.fold(x)
}

// fits reports whether replicas may lack updates, too. One alone may be larger than any bound.
func (l *lag) fits(x incoming) bool {
	return l.void || len(x.pieces) == 0 || len(l.lack) == 0 && x.single ||
		l.d.o.Bound.Holds(0, slices.Concat(norms(l.lack), norms(x.pieces)))
}

func norms(ps []piece) (all []float64) {
	for _, p := range ps {
		all = append(all, p.Norm)
	}
	return all
}

// fold folds updates in, and notes that the replicas lack them.
func (l *lag) fold(x incoming) error {
	folded, err := x.take()
	for _, p := range x.pieces {
		if p.ID.Seq <= l.seen[p.ID.From] {
			continue // it had come before
		}
		if x.single {
			l.d.Transport.Send(p.ID.From, message(aFate, nil, fate{p.ID, folded}))
		}
		if folded || x.single {
			l.seen[p.ID.From] = p.ID.Seq
		}
		if folded && !l.void {
			l.lack = append(l.lack, p)
		}
	}
	l.count()
	return err
}

// count notes how far the replicas are behind.
func (l *lag) count() {
	n, apart := len(l.lack), fabric.Bound{}.Distance(0, norms(l.lack))
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	s := &l.d.stats
	s.Lacking, s.Lacked = n, max(s.Lacked, n)
	s.Apart, s.Farthest = apart, max(s.Farthest, apart)
}

// urge asks for what replicas lack, at once.
func (l *lag) urge(more int) {
	l.d.mu.Lock()
	l.d.stats.Waited += int64(more)
	l.d.mu.Unlock()
	asked := map[distrib.NodeID]bool{}
	for _, p := range l.lack {
		if !asked[p.ID.From] {
			asked[p.ID.From] = true
			l.d.Transport.Send(p.ID.From, message(anUrge, nil))
		}
	}
}

// caughtUp notes that all replicas have an update, and folds in what has waited for that.
func (l *lag) caughtUp(x id) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lack = slices.DeleteFunc(l.lack, func(p piece) bool { return p.ID == x })
	l.resume()
}

// resume folds in what may be folded in now.
func (l *lag) resume() {
	n := len(l.held)
	for len(l.held) > 0 && l.fits(l.held[0]) {
		x := l.held[0]
		l.held = l.held[1:]
		if err := l.fold(x); err != nil {
			l.d.o.Log("fabric: " + err.Error())
		}
	}
	if len(l.held) > 0 && len(l.held) < n {
		l.urge(0)
	}
	l.count()
}

// lose waits no more for what a node would have sent to replicas, nor for a replica that is gone.
func (l *lag) lose(node distrib.NodeID) {
	if l.d.ring.count == 0 {
		return
	}
	l.d.mu.Lock()
	left := len(l.d.ring.replicas(l.d.self))
	l.d.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lack = slices.DeleteFunc(l.lack, func(p piece) bool { return p.ID.From == node })
	if left == 0 {
		l.void, l.lack = true, nil
	}
	l.resume()
}

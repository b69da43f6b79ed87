package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
)

// election is who schedules, as far as this node knows: it stands for it, is believed, or believes
// another.
type election struct {
	d      *Daemon
	chief  distrib.NodeID          // who schedules, -1: nobody
	term   uint64                  // of the chief, or the last
	chiefs map[distrib.NodeID]bool // who has ever said that it schedules
	own    *scheduler              // if it is this node
	pulse  *time.Timer
	vigil  *time.Timer // which looks for a scheduler's silence
	heard  time.Time   // the last of the chief
}

// campaign schedules whenever this node is elected.
func (e *election) campaign(ctx context.Context) {
	for ctx.Err() == nil {
		term, err := e.d.o.Elect.Lead(ctx, Role)
		if err != nil {
			if ctx.Err() == nil {
				e.d.o.Log(fmt.Sprintf("fabric: nobody is elected to schedule: %v", err))
				sleep(ctx, time.Second)
			}
			continue
		}
		e.d.mu.Lock()
		if !e.d.closing {
			e.lead()
		}
		e.d.unlock()
		select {
		case <-term.Done():
		case <-ctx.Done():
		}
		e.d.mu.Lock()
		e.resign()
		e.d.unlock()
	}
}

// volunteer schedules if this is the first node that is there.
func (e *election) volunteer() {
	for _, n := range e.d.o.Nodes {
		if !e.d.ring.down[n] {
			if n == e.d.self && e.own == nil {
				e.lead()
			}
			return
		}
	}
}

// watch looks again and again whether a scheduler is heard of.
func (e *election) watch() {
	e.vigil = time.AfterFunc(beat, func() {
		e.d.mu.Lock()
		defer e.d.unlock()
		if e.d.closing {
			return
		}
		turn := silence + time.Duration(rank(e.d.self, e.d.o.Nodes, e.d.ring.down))*beat
		if e.own == nil && time.Since(e.heard) > turn {
			e.lead()
		}
		e.watch()
	})
}

// lead begins to schedule, and to say so.
func (e *election) lead() {
	e.own = newScheduler(e.d, max(e.term+1, uint64(time.Now().UnixNano())))
	e.say()
}

// say tells all that this node schedules, now and again.
func (e *election) say() {
	e.claimed(e.d.self, e.own.term)
	e.heard = time.Now()
	for _, n := range e.d.o.Nodes {
		if n != e.d.self && !e.d.ring.down[n] {
			e.d.Transport.Send(n, message(aClaim, nil, claim{e.own.term}))
		}
	}
	own := e.own
	e.pulse = time.AfterFunc(beat, func() {
		e.d.mu.Lock()
		defer e.d.unlock()
		if e.own == own {
			e.say()
		}
	})
}

// resign schedules no more.
func (e *election) resign() {
	if e.own == nil {
		return
	}
	e.own.end()
	e.pulse.Stop()
	e.own = nil
	if e.chief == e.d.self {
		e.chief = -1
	}
}

// claimed takes a node for the scheduler, unless a newer one is known to be there.
func (e *election) claimed(from distrib.NodeID, term uint64) {
	e.chiefs[from] = true
	if term < e.term && e.chief >= 0 || e.d.ring.down[from] {
		return
	}
	if e.own != nil && from != e.d.self {
		e.resign() // it has been silent itself, and another one has taken its place
	}
	if e.chief != from {
		e.heard = time.Now()
	}
	if e.chief != from || e.term != term {
		e.d.ways.unheld()
		e.d.spares.alone(func(*spare) bool { return true }) // it knows nothing of these
	}
	e.chief, e.term = from, term
}

// schedules reports whether a node's word counts. That of one which has scheduled before comes
// late, and is nothing to complain about.
func (e *election) schedules(from distrib.NodeID, what string) (bool, error) {
	if from == e.chief || e.chiefs[from] {
		return from == e.chief, nil
	}
	return false, fmt.Errorf("%s, and it does not schedule", what)
}

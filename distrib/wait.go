package distrib

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// monitor is the one lock of a node, and who waits for what happens under it.
type monitor struct {
	cfg      *Config
	mu       sync.Mutex
	changed  chan struct{}       // closed and made anew when something happens; nil: none waits
	kick     chan struct{}       // wakes the sending goroutine
	err      error               // what ended the engine
	hopeless func(waiting) error // why a wait cannot end, nil if it can
}

// waiting is what somebody waits for, and what is said if it does not come. All of its
// functions are called under the lock.
type waiting struct {
	ready func() bool
	clock Clock
	what  func() string
	who   func() []NodeID // are waited for
	probe func()          // asks who is behind, after a while; nil: nobody knows
	moves bool            // it is part of a change of views, which workers wait for
}

// wait gives up the lock until something is ready. It ends with the context's error, with
// the engine's, with a *[LostError] as soon as a node is lost without which no clock ends,
// or with a *[StallError] after Config.Timeout. After Config.Stall, the log says who is
// waited for.
func (m *monitor) wait(ctx context.Context, w waiting) error {
	begun := time.Now()
	stall := time.NewTimer(m.cfg.Stall)
	defer stall.Stop()
	end := time.NewTimer(m.cfg.Timeout)
	defer end.Stop()
	if w.probe != nil {
		probe := time.AfterFunc(m.cfg.Stall/2, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			w.probe()
		})
		defer probe.Stop()
	}
	for {
		if m.err != nil {
			return m.err
		}
		if w.ready() {
			return nil
		}
		if err := m.hopeless(w); err != nil {
			return err
		}
		if err := m.sleep(ctx, stall.C, end.C, w, begun); err != nil {
			return err
		}
	}
}

// signal lets everybody who waits look again.
func (m *monitor) signal() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// next is closed when something has happened.
func (m *monitor) next() <-chan struct{} {
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// sleep waits for the next change, without the lock.
func (m *monitor) sleep(ctx context.Context, stall, end <-chan time.Time, w waiting,
	begun time.Time) error {
	changed := m.next()
	m.mu.Unlock()
	var late, over bool
	var err error
	select {
	case <-changed:
	case <-ctx.Done():
		err = ctx.Err()
	case <-stall:
		late = true
	case <-end:
		over = true
	}
	m.mu.Lock()
	if err != nil {
		return fmt.Errorf("distrib: waiting for %s: %w", w.what(), err)
	}
	if over && !w.ready() {
		return &StallError{Nodes: w.who(), Clock: w.clock, What: w.what()}
	}
	if late && !w.ready() {
		m.cfg.Stalled(fmt.Sprintf("node %d waits for %s at clock %d since %v: not there yet: "+
			"node %v", m.cfg.View.Self, w.what(), w.clock,
			time.Since(begun).Round(time.Second), w.who()))
	}
	return nil
}

// hopeless is why a wait cannot end: nodes are lost that it needs.
func (e *Engine) hopeless(w waiting) error {
	if len(e.mail.lost) == 0 {
		return nil
	}
	return e.mail.lostError(e.views.neededFor(w))
}

// needed is the nodes without which a clock cannot end: owners, and who has not ended.
func (e *Engine) needed() []NodeID {
	var ids []NodeID
	for _, id := range e.members {
		if !e.mail.gone[id] {
			ids = insert(ids, id)
		}
	}
	for _, l := range e.lanes {
		for _, id := range l.owners {
			ids = insert(ids, id)
		}
	}
	return ids
}

// premature reports whether a message must wait: for its epoch, or for the end of what is
// done to replicas at a barrier.
func (e *Engine) premature(h header) bool {
	if h.epoch != e.cfg.View.Epoch || e.views.unsettled(h) {
		return h.epoch >= e.cfg.View.Epoch
	}
	if !e.barriers.apart || h.kind != kindUpdates || int(h.lane) >= len(e.lanes) {
		return false
	}
	l := e.lanes[h.lane]
	return l.mode == graph || l.mode == carry
}

// contains and insert keep ascending lists of nodes.
func contains(ids []NodeID, id NodeID) bool {
	_, ok := slices.BinarySearch(ids, id)
	return ok
}

func insert(ids []NodeID, id NodeID) []NodeID {
	i, ok := slices.BinarySearch(ids, id)
	if ok {
		return ids
	}
	return slices.Insert(ids, i, id)
}

// fail ends the engine with an error that everybody who waits gets.
func (m *monitor) fail(err error) {
	if m.err == nil {
		m.err = err
		m.cfg.Log(err.Error())
	}
	m.wake()
}

// wake lets everybody who waits look again, and the sending goroutine too.
func (m *monitor) wake() {
	m.signal()
	m.nudge()
}

func (m *monitor) nudge() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

package distrib

import (
	"context"
	"fmt"
	"slices"
	"time"
)

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
func (e *Engine) wait(ctx context.Context, w waiting) error {
	begun := time.Now()
	stall := time.NewTimer(e.cfg.Stall)
	defer stall.Stop()
	end := time.NewTimer(e.cfg.Timeout)
	defer end.Stop()
	if w.probe != nil {
		probe := time.AfterFunc(e.cfg.Stall/2, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			w.probe()
		})
		defer probe.Stop()
	}
	for {
		if e.err != nil {
			return e.err
		}
		if w.ready() {
			return nil
		}
		if len(e.lost) > 0 {
			if err := e.lostError(e.neededFor(w)); err != nil {
				return err
			}
		}
		if err := e.sleep(ctx, stall.C, end.C, w, begun); err != nil {
			return err
		}
	}
}

// sleep waits for the next change, without the lock.
func (e *Engine) sleep(ctx context.Context, stall, end <-chan time.Time, w waiting,
	begun time.Time) error {
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	changed := e.changed
	e.mu.Unlock()
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
	e.mu.Lock()
	if err != nil {
		return fmt.Errorf("distrib: waiting for %s: %w", w.what(), err)
	}
	if over && !w.ready() {
		return &StallError{Nodes: w.who(), Clock: w.clock, What: w.what()}
	}
	if late && !w.ready() {
		e.cfg.Stalled(fmt.Sprintf("node %d waits for %s at clock %d since %v: not there yet: "+
			"node %v", e.self, w.what(), w.clock, time.Since(begun).Round(time.Second), w.who()))
	}
	return nil
}

// lostError says which of some nodes are lost.
func (e *Engine) lostError(of []NodeID) error {
	var ids []NodeID
	var why error
	for _, id := range of {
		if err, ok := e.lost[id]; ok {
			ids, why = insert(ids, id), err
		}
	}
	if ids == nil {
		return nil
	}
	return &LostError{Nodes: ids, Epoch: e.cfg.View.Epoch, Err: why}
}

// neededFor is the nodes without which a wait cannot end.
func (e *Engine) neededFor(w waiting) []NodeID {
	switch {
	case e.moving == nil || e.moving.joins:
		return e.needed()
	case w.moves:
		return e.moving.stay
	}
	return nil
}

// needed is the nodes without which a clock cannot end: owners, and who has not ended.
func (e *Engine) needed() []NodeID {
	var ids []NodeID
	for _, id := range e.members {
		if !e.gone[id] {
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

// unsent is the lost nodes that updates were meant for that they do not have.
func (e *Engine) unsent() []NodeID {
	var ids []NodeID
	for _, id := range e.all {
		if k := e.links[id]; e.lost[id] != nil && (k.dropped > 0 || k.unacked > 0) {
			ids = insert(ids, id)
		}
	}
	return ids
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

package distrib

import "fmt"

// Journal is told what becomes of a node's replicas, in the order in which it does: whoever
// does the same to values of his own has the bits that the node has. It is for plans under
// which every node folds updates into a replica of its own, and for nodes of one worker. Calls
// come one at a time, under the node's lock but for Room, and may not wait.
type Journal interface {
	// Base is told the values of all replicas: the first ones, and what a barrier's work or a
	// new view has made of them. They are lent for the call.
	Base(at Clock, ps []*Param)
	// Applied is told of an update that has been added to rows. It never changes, so it may be
	// kept.
	Applied(from NodeID, at Clock, ref Ref, u Update)
	// Read is told which rows the worker takes, as they are now, to compute with.
	Read(at Clock, ref Ref)
	// Due reports whether Base is wanted without need.
	Due() bool
	// Room waits, at a worker's tick, until what was told is few enough bytes.
	Room()
}

// record is what a node's journal is told.
type record struct {
	e      *Engine
	rebase bool // the journal is to be told what replicas are before it is told more
}

// check refuses a journal where it would not be told all.
func (r *record) check() error {
	if r.e.cfg.Journal == nil {
		return nil
	}
	if len(r.e.workers.list) != 1 {
		return fmt.Errorf("distrib: a journal is of a node with one worker, not with %d",
			len(r.e.workers.list))
	}
	for _, l := range r.e.lanes {
		if l.mode != graph && l.mode != carry {
			return fmt.Errorf("distrib: a journal is of replicas that nodes fold updates into " +
				"themselves: a plan with owners, or one that sends nothing, has none")
		}
	}
	r.rebase = true
	return nil
}

// open is the node's, nil if there is none. One that lacks what replicas are has it first.
func (r *record) open() Journal {
	j := r.e.cfg.Journal
	if j == nil || !r.rebase {
		return j
	}
	r.rebase = false
	ps := r.e.declared()
	for i, p := range r.e.params {
		ps[i].Data = p.rowsOf(p.whole())
	}
	j.Base(r.e.workers.clock, ps)
	return j
}

// offer has the journal take what all replicas are, if it wants to.
func (r *record) offer() {
	if j := r.e.cfg.Journal; j != nil {
		r.rebase = r.rebase || j.Due()
		r.open()
	}
}

package daemon

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
)

// spare is an update of this node, until the replicas of its owner have it.
type spare struct {
	id       id
	m        *distrib.Msg
	norm     float64
	bytes    int64
	settled  bool // its owner has folded it in
	finished bool // see Finish
	alone    bool // it goes without a slot
	sent     bool
	copied   bool // some replica has it, and another one may be gone
	slot     *slot
	at       time.Time // of the slot
	timer    *time.Timer
}

// norm is that of an update, where the bound is one of norms.
func (d *Daemon) norm(m *distrib.Msg) float64 {
	if d.o.Replicas == 0 || d.o.Bound.Norm == 0 {
		return 0
	}
	return d.pool.Norm(m)
}

// piece is what is told of an update of this node with it.
func (d *Daemon) piece(x id) piece {
	p := piece{ID: x}
	if s := d.spares[x]; s != nil {
		p.Norm = s.norm
	}
	if d.o.Replicas > 0 {
		p.Floor = x.Seq
		for y := range d.spares {
			if y.To == x.To {
				p.Floor = min(p.Floor, y.Seq)
			}
		}
	}
	return p
}

// spare keeps an update for its owner's replicas, unless too much is kept already: then all that
// is there goes at once.
func (d *Daemon) spare(q *queued) bool {
	if d.spares[q.id] != nil || len(d.replicas(q.id.To)) == 0 {
		return true
	}
	n := size(q.m)
	full := func() bool {
		return d.o.Copies > 0 && len(d.spares) > 0 && d.stats.Spared+n > d.o.Copies
	}
	for _, s := range d.ordered() {
		if s.copied && full() {
			d.release(s.id)
		}
	}
	if full() {
		d.alone(func(*spare) bool { return true })
		return false
	}
	s := &spare{id: q.id, bytes: n, norm: d.norm(q.m), m: &distrib.Msg{Class: distrib.Updates,
		Head: bytes.Clone(q.m.Head), Body: [][]byte{bytes.Join(q.m.Body, nil)}}}
	d.spares[q.id] = s
	d.stats.Spared += n
	d.stats.Sparest = max(d.stats.Sparest, d.stats.Spared)
	return true
}

// copied lets go of a spare that all replicas have. What one of them has that had nobody before it,
// or behind it, is kept while there is room: who seems to be gone may only have heard first of what
// ends this group, and be the one that takes the rows over.
func (d *Daemon) copied(from distrib.NodeID, s *spare) {
	d.stats.Copied++
	all := Replicas(d.o.Nodes, s.id.To, d.o.Replicas)
	if s.copied = true; from == all[len(all)-1] && len(d.replicas(s.id.To)) == len(all) {
		d.release(s.id)
	}
}

// release lets go of a spare, and of what has waited for room.
func (d *Daemon) release(x id) {
	s := d.spares[x]
	if s == nil {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	delete(d.spares, x)
	d.stats.Spared -= s.bytes
	if d.o.Copies > 0 {
		d.calls = append(d.calls, func() {
			d.mu.Lock()
			defer d.unlock()
			for _, w := range d.ways {
				d.advance(w)
			}
		})
	}
}

// fated takes note of what has become of an update at its owner.
func (d *Daemon) fated(from distrib.NodeID, f fate) error {
	if from != f.ID.To {
		return fmt.Errorf("what became of %v", f.ID)
	}
	if !f.Folded {
		d.release(f.ID)
		return nil
	}
	d.settle(f.ID)
	return nil
}

// settle notes that an owner has folded an update in, so that its replicas are to have it.
func (d *Daemon) settle(x id) {
	if s := d.spares[x]; s != nil {
		s.settled = true
		s.alone = s.alone || d.chief < 0
		d.offer(s)
	}
}

// alone has spares go without a slot.
func (d *Daemon) alone(which func(*spare) bool) {
	for _, s := range d.ordered() {
		if which(s) {
			s.alone = true
			d.offer(s)
		}
	}
}

// ordered is the spares by owner and number.
func (d *Daemon) ordered() (all []*spare) {
	for _, s := range d.spares {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *spare) int {
		return cmp.Or(cmp.Compare(a.id.To, b.id.To), cmp.Compare(a.id.Seq, b.id.Seq))
	})
	return all
}

// urged has all go that an owner's replicas lack.
func (d *Daemon) urged(from distrib.NodeID) {
	d.alone(func(s *spare) bool { return s.id.To == from })
}

// copySlot takes note of when an update goes to a replica.
func (d *Daemon) copySlot(x slot) error {
	s := d.spares[x.ID]
	if s == nil || s.slot != nil {
		return nil // it has gone, or was discarded
	}
	wait, ends := time.Duration(x.Wait), time.Duration(x.Ends)
	if wait < 0 || wait > longest || ends < 0 || ends > longest ||
		x.Verdict == copyDirect && !d.replicates(x.ID.To, x.Via) ||
		!slices.Contains(d.o.Nodes, x.Via) {
		s.alone = true
		d.offer(s)
		return fmt.Errorf("a slot that a copy of %v cannot have: %+v", x.ID, x)
	}
	s.slot, s.at = &x, time.Now().Add(wait)
	d.offer(s)
	return nil
}

// offer sends a spare when it is time.
func (d *Daemon) offer(s *spare) {
	if s.sent || s.copied || !s.settled || d.spares[s.id] != s {
		return
	}
	if s.alone || s.slot != nil && d.down[s.slot.Via] {
		d.copyTo(s)
		return
	}
	if s.slot == nil {
		return
	}
	if wait := time.Until(s.at); wait > 0 {
		d.later(s, wait, func() { d.offer(s) })
		return
	}
	x := *s.slot
	if x.Verdict == copyDirect {
		d.copyTo(s)
		return
	}
	all := d.replicas(s.id.To)
	if len(all) == 0 {
		return
	}
	s.sent = true
	d.Transport.Send(x.Via, partOf(x, d.piece(s.id), all[0], s.m))
	d.later(s, time.Duration(max(0, x.Ends-x.Wait))+d.o.Lost, func() { d.copyTo(s) })
}

// later has a spare looked at, if it is there still.
func (d *Daemon) later(s *spare, wait time.Duration, then func()) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.unlock()
		if d.spares[s.id] == s && !d.closing {
			then()
		}
	})
}

// copyTo sends a spare to the first of its owner's replicas, by itself.
func (d *Daemon) copyTo(s *spare) {
	all := d.replicas(s.id.To)
	if len(all) == 0 {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.sent, s.alone = true, true
	c := copied{piece: d.piece(s.id), Head: uint16(len(s.m.Head))}
	d.Transport.Send(all[0], message(aCopy, s.m.Body[0], c, s.m.Head))
}

// rearrange sends again what may have been with a node that is gone. What no replica or no owner
// is left for is kept, for who takes the rows over.
func (d *Daemon) rearrange(gone distrib.NodeID) {
	for _, s := range d.ordered() {
		if s.sent && !s.copied && (d.replicates(s.id.To, gone) || s.slotVia() == gone) {
			d.copyTo(s)
		}
	}
}

// Spare is an update that a node has pushed, for the replica of an owner that is gone.
type Spare struct {
	Floor      uint64 // the least number of those that the replica may lack
	Head, Body []byte
}

// Finish says that what this node has pushed so far is of steps that are done: if an owner dies,
// nobody does them again.
func (d *Daemon) Finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.spares {
		s.finished = true
	}
}

// Spares are this node's updates for an owner of steps that are done, that the replicas may lack,
// in order. Also a daemon that is closed has them.
func (d *Daemon) Spares(owner distrib.NodeID) (all []Spare) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.ordered() {
		if s.id.To == owner && s.finished {
			all = append(all, Spare{d.piece(s.id).Floor, s.m.Head, s.m.Body[0]})
		}
	}
	return all
}

// Adopt adds a node's update to this node's replica of an owner's rows, unless it is there; it
// reports whether it was not. Also a daemon that is closed does that.
func (d *Daemon) Adopt(owner, from distrib.NodeID, s Spare) (bool, error) {
	p, ok := d.pool.Push(&distrib.Msg{Class: distrib.Updates, Head: s.Head, Body: [][]byte{s.Body}})
	if !ok || !d.replicates(owner, d.self) {
		return false, fmt.Errorf("node %d has no update for a replica of node %d", from, owner)
	}
	return d.adopt([]piece{{ID: idOf(from, owner, p), Floor: s.Floor}}, s.Body)
}

// refused sends a part of a sum to the replicas by itself, which did not take that.
func (d *Daemon) refused(from distrib.NodeID, x id) bool {
	s := d.spares[x]
	if s == nil || !s.sent || s.copied || from != s.slotVia() && !d.replicates(x.To, from) {
		return false
	}
	d.copyTo(s)
	return true
}

// slotVia is who adds a spare up; -1: nobody.
func (s *spare) slotVia() distrib.NodeID {
	if s.slot == nil || s.slot.Verdict != copySummed {
		return -1
	}
	return s.slot.Via
}

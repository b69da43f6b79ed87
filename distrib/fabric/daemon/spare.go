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

// spares are all of a node.
type spares struct {
	d    *Daemon
	byID map[id]*spare // updates of this node that replicas may lack
}

// norm is that of an update, where the bound is one of norms.
func (d *Daemon) norm(m *distrib.Msg) float64 {
	if d.ring.count == 0 || d.o.Bound.Norm == 0 {
		return 0
	}
	return d.pool.Norm(m)
}

// piece is what is told of an update of this node with it.
func (k *spares) piece(x id) piece {
	p := piece{ID: x}
	if s := k.byID[x]; s != nil {
		p.Norm = s.norm
	}
	if k.d.ring.count > 0 {
		p.Floor = x.Seq
		for y := range k.byID {
			if y.To == x.To {
				p.Floor = min(p.Floor, y.Seq)
			}
		}
	}
	return p
}

// keep keeps an update for its owner's replicas, unless too much is kept already: then all that
// is there goes at once.
func (k *spares) keep(q *queued) bool {
	if k.byID[q.id] != nil || len(k.d.ring.replicas(q.id.To)) == 0 {
		return true
	}
	n := size(q.m)
	full := func() bool {
		return k.d.o.Copies > 0 && len(k.byID) > 0 && k.d.stats.Spared+n > k.d.o.Copies
	}
	for _, s := range k.ordered() {
		if s.copied && full() {
			k.release(s.id)
		}
	}
	if full() {
		k.alone(func(*spare) bool { return true })
		return false
	}
	s := &spare{id: q.id, bytes: n, norm: k.d.norm(q.m), m: &distrib.Msg{Class: distrib.Updates,
		Head: bytes.Clone(q.m.Head), Body: [][]byte{bytes.Join(q.m.Body, nil)}}}
	k.byID[q.id] = s
	k.d.stats.Spared += n
	k.d.stats.Sparest = max(k.d.stats.Sparest, k.d.stats.Spared)
	return true
}

// copied lets go of a spare that all replicas have. What one of them has that had nobody before it,
// or behind it, is kept while there is room: who seems to be gone may only have heard first of what
// ends this group, and be the one that takes the rows over.
func (k *spares) copied(from distrib.NodeID, s *spare) {
	k.d.stats.Copied++
	all := Replicas(k.d.o.Nodes, s.id.To, k.d.ring.count)
	if s.copied = true; from == all[len(all)-1] && len(k.d.ring.replicas(s.id.To)) == len(all) {
		k.release(s.id)
	}
}

// release lets go of a spare, and of what has waited for room.
func (k *spares) release(x id) {
	s := k.byID[x]
	if s == nil {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	delete(k.byID, x)
	k.d.stats.Spared -= s.bytes
	if k.d.o.Copies > 0 {
		k.d.calls = append(k.d.calls, func() {
			k.d.mu.Lock()
			defer k.d.unlock()
			for _, w := range k.d.ways.to {
				w.advance()
			}
		})
	}
}

// fated takes note of what has become of an update at its owner.
func (k *spares) fated(from distrib.NodeID, f fate) error {
	if from != f.ID.To {
		return fmt.Errorf("what became of %v", f.ID)
	}
	if !f.Folded {
		k.release(f.ID)
		return nil
	}
	k.settle(f.ID)
	return nil
}

// settle notes that an owner has folded an update in, so that its replicas are to have it.
func (k *spares) settle(x id) {
	if s := k.byID[x]; s != nil {
		s.settled = true
		s.alone = s.alone || k.d.election.chief < 0
		k.offer(s)
	}
}

// alone has spares go without a slot.
func (k *spares) alone(which func(*spare) bool) {
	for _, s := range k.ordered() {
		if which(s) {
			s.alone = true
			k.offer(s)
		}
	}
}

// ordered is the spares by owner and number.
func (k *spares) ordered() (all []*spare) {
	for _, s := range k.byID {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *spare) int {
		return cmp.Or(cmp.Compare(a.id.To, b.id.To), cmp.Compare(a.id.Seq, b.id.Seq))
	})
	return all
}

// urged has all go that an owner's replicas lack.
func (k *spares) urged(from distrib.NodeID) {
	k.alone(func(s *spare) bool { return s.id.To == from })
}

// copySlot takes note of when an update goes to a replica.
func (k *spares) copySlot(x slot) error {
	s := k.byID[x.ID]
	if s == nil || s.slot != nil {
		return nil // it has gone, or was discarded
	}
	wait, ends := time.Duration(x.Wait), time.Duration(x.Ends)
	if wait < 0 || wait > longest || ends < 0 || ends > longest ||
		x.Verdict == copyDirect && !k.d.ring.replicates(x.ID.To, x.Via) ||
		!slices.Contains(k.d.o.Nodes, x.Via) {
		s.alone = true
		k.offer(s)
		return fmt.Errorf("a slot that a copy of %v cannot have: %+v", x.ID, x)
	}
	s.slot, s.at = &x, time.Now().Add(wait)
	k.offer(s)
	return nil
}

// offer sends a spare when it is time.
func (k *spares) offer(s *spare) {
	if s.sent || s.copied || !s.settled || k.byID[s.id] != s {
		return
	}
	if s.alone || s.slot != nil && k.d.ring.down[s.slot.Via] {
		k.copyTo(s)
		return
	}
	if s.slot == nil {
		return
	}
	if wait := time.Until(s.at); wait > 0 {
		k.later(s, wait, func() { k.offer(s) })
		return
	}
	x := *s.slot
	if x.Verdict == copyDirect {
		k.copyTo(s)
		return
	}
	all := k.d.ring.replicas(s.id.To)
	if len(all) == 0 {
		return
	}
	s.sent = true
	k.d.Transport.Send(x.Via, partOf(x, k.piece(s.id), all[0], s.m))
	k.later(s, time.Duration(max(0, x.Ends-x.Wait))+k.d.o.Lost, func() { k.copyTo(s) })
}

// later has a spare looked at, if it is there still.
func (k *spares) later(s *spare, wait time.Duration, then func()) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(wait, func() {
		k.d.mu.Lock()
		defer k.d.unlock()
		if k.byID[s.id] == s && !k.d.closing {
			then()
		}
	})
}

// copyTo sends a spare to the first of its owner's replicas, by itself.
func (k *spares) copyTo(s *spare) {
	all := k.d.ring.replicas(s.id.To)
	if len(all) == 0 {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.sent, s.alone = true, true
	c := copied{piece: k.piece(s.id), Head: uint16(len(s.m.Head))}
	k.d.Transport.Send(all[0], message(aCopy, s.m.Body[0], c, s.m.Head))
}

// rearrange sends again what may have been with a node that is gone. What no replica or no owner
// is left for is kept, for who takes the rows over.
func (k *spares) rearrange(gone distrib.NodeID) {
	for _, s := range k.ordered() {
		if s.sent && !s.copied && (k.d.ring.replicates(s.id.To, gone) || s.slotVia() == gone) {
			k.copyTo(s)
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
	for _, s := range d.spares.byID {
		s.finished = true
	}
}

// Spares are this node's updates for an owner of steps that are done, that the replicas may lack,
// in order. Also a daemon that is closed has them.
func (d *Daemon) Spares(owner distrib.NodeID) (all []Spare) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.spares.ordered() {
		if s.id.To == owner && s.finished {
			all = append(all, Spare{d.spares.piece(s.id).Floor, s.m.Head, s.m.Body[0]})
		}
	}
	return all
}

// Adopt adds a node's update to this node's replica of an owner's rows, unless it is there; it
// reports whether it was not. Also a daemon that is closed does that.
func (d *Daemon) Adopt(owner, from distrib.NodeID, s Spare) (bool, error) {
	p, ok := d.pool.Push(&distrib.Msg{Class: distrib.Updates, Head: s.Head, Body: [][]byte{s.Body}})
	if !ok || !d.ring.replicates(owner, d.self) {
		return false, fmt.Errorf("node %d has no update for a replica of node %d", from, owner)
	}
	return d.shelf.adopt([]piece{{ID: idOf(from, owner, p), Floor: s.Floor}}, s.Body)
}

// refused sends a part of a sum to the replicas by itself, which did not take that.
func (k *spares) refused(from distrib.NodeID, x id) bool {
	s := k.byID[x]
	if s == nil || !s.sent || s.copied || from != s.slotVia() && !k.d.ring.replicates(x.To, from) {
		return false
	}
	k.copyTo(s)
	return true
}

// slotVia is who adds a spare up; -1: nobody.
func (s *spare) slotVia() distrib.NodeID {
	if s.slot == nil || s.slot.Verdict != copySummed {
		return -1
	}
	return s.slot.Via
}

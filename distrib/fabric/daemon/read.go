package daemon

import (
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
)

// read does what a message of the fabric says.
func (d *Daemon) read(from distrib.NodeID, m *distrib.Msg) error {
	o, err := open(m)
	if err != nil {
		return err
	}
	if o.kind == aSum || o.kind == aCopy || o.kind == aKept {
		if d.pool == nil {
			return fmt.Errorf("a %v, and nobody here owns anything", o.kind)
		}
		switch o.kind {
		case aSum:
			return d.takeSum(from, o)
		case aCopy:
			return d.shelf.takeCopy(from, o)
		}
		return d.readKept(from, o)
	}
	d.mu.Lock()
	defer d.unlock()
	if from == d.election.chief {
		d.election.heard = time.Now()
	}
	switch o.kind {
	case aClaim:
		var c claim
		if err = o.next(&c); err == nil {
			d.election.claimed(from, c.Term)
		}
	case aReady:
		return d.readReady(from, o)
	case aSlot:
		var s slot
		if err = o.next(&s); err == nil {
			err = d.ways.slotted(from, s)
		}
	case aGroup:
		var g group
		if err = o.next(&g); err == nil {
			var members []id
			if members, err = list[id](o, g.Members); err == nil {
				err = d.sums.grouped(from, g, members)
			}
		}
	case aPart:
		return d.readPart(from, o)
	case anAnswer:
		var a answer
		if err = o.next(&a); err == nil {
			err = d.ways.answered(from, a)
		}
	case aFate:
		var f fate
		if err = o.next(&f); err == nil {
			err = d.spares.fated(from, f)
		}
	case anUrge:
		d.spares.urged(from)
	case aFold:
		var f fold
		if err = o.next(&f); err == nil && d.election.own != nil {
			err = d.election.own.folded(from, f)
		}
	}
	return err
}

func (d *Daemon) readReady(from distrib.NodeID, o *opened) error {
	var r ready
	if err := o.next(&r); err != nil {
		return err
	}
	rates, err := list[rate](o, r.Rates)
	if err != nil {
		return err
	}
	if r.ID.From != from || r.Bytes < 0 || r.Version < 0 || r.Delay < 0 {
		return fmt.Errorf("an announcement of %v: %+v", r.ID, r)
	}
	if d.election.own != nil {
		d.election.own.ready(r, rates)
	}
	return nil
}

func (d *Daemon) readPart(from distrib.NodeID, o *opened) error {
	var p part
	if err := o.next(&p); err != nil {
		return err
	}
	head, err := o.bytes(int(p.Head))
	if err != nil {
		return err
	}
	if d.pool == nil {
		return fmt.Errorf("a part, and nobody here adds up")
	}
	return d.sums.gather(from, p, &distrib.Msg{Class: distrib.Updates, Head: head,
		Body: [][]byte{o.bare}})
}

// takeSum hands a sum to the engine, tells those who have a part in it, and the scheduler; or it
// keeps it, if it is for a replica.
func (d *Daemon) takeSum(from distrib.NodeID, o *opened) error {
	var s sum
	if err := o.next(&s); err != nil {
		return err
	}
	if int(s.Bytes) != o.fixed.Len() {
		return fmt.Errorf("a sum of %d bytes with %d", s.Bytes, o.fixed.Len())
	}
	var ids []id
	var pieces []piece
	var parts []distrib.Part
	for range s.Parts {
		var x piece
		var n uint16
		if err := o.next(&x); err != nil {
			return err
		}
		if err := o.next(&n); err != nil {
			return err
		}
		head, err := o.bytes(int(n))
		if err != nil {
			return err
		}
		other := len(ids) > 0 && x.ID.To != ids[0].To
		if other || !d.ring.goesTo(x.ID.To, d.self) {
			return fmt.Errorf("a sum with %v", x.ID)
		}
		pieces, ids = append(pieces, x), append(ids, x.ID)
		parts = append(parts, distrib.Part{From: x.ID.From, Head: head})
	}
	if len(ids) == 0 {
		return fmt.Errorf("a sum of nothing")
	}
	if ids[0].To != d.self {
		return d.shelf.keepSum(from, pieces, o)
	}
	return d.lag.accept(incoming{pieces: pieces, take: func() (bool, error) {
		taken, err := d.pool.TakeSum(parts, [][]byte{o.bare})
		d.answer(ids, taken)
		if taken {
			version := d.pool.Folded(&distrib.Msg{Class: distrib.Updates, Head: parts[0].Head})
			for _, x := range pieces {
				d.report(fold{ID: x.ID, Version: version, Bytes: int64(len(o.bare)), Norm: x.Norm})
			}
		}
		return taken, err
	}, refuse: func() { d.answer(ids, false) }})
}

// report tells the scheduler that an owner has an update.
func (d *Daemon) report(f fold) {
	d.mu.Lock()
	defer d.unlock()
	if d.election.chief >= 0 {
		d.Transport.Send(d.election.chief, message(aFold, nil, f))
	}
}

// answer tells those whose updates were to be added up what came of it.
func (d *Daemon) answer(ids []id, taken bool) {
	for _, x := range ids {
		d.Transport.Send(x.From, message(anAnswer, nil, answer{x, taken}))
	}
}

// readKept takes note that all replicas have an update: as its owner, who has pushed it, and the
// scheduler.
func (d *Daemon) readKept(from distrib.NodeID, o *opened) error {
	var k kept
	if err := o.next(&k); err != nil {
		return err
	}
	if !d.ring.replicates(k.ID.To, from) {
		return fmt.Errorf("an acknowledgement of %v", k.ID)
	}
	if k.ID.To == d.self {
		d.lag.caughtUp(k.ID)
	}
	d.mu.Lock()
	defer d.unlock()
	if s := d.spares.byID[k.ID]; s != nil && k.ID.From == d.self {
		d.spares.copied(from, s)
	}
	if d.election.own != nil {
		d.election.own.kept(k.ID)
	}
	return nil
}

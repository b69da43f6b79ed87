package daemon

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
)

// gathering is updates that this node is to add up.
type gathering struct {
	group
	members []id // nil: the scheduler has not said who
	parts   map[id]gathered
	order   []id // in which parts came
	timer   *time.Timer
}

// gathered is a part of a group.
type gathered struct {
	piece
	m *distrib.Msg
}

// gathering finds or makes a group, which goes after a time with what it has.
func (d *Daemon) gathering(number uint64, wait time.Duration) *gathering {
	g := d.groups[number]
	if g == nil {
		g = &gathering{group: group{Group: number}, parts: map[id]gathered{}}
		d.groups[number] = g
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.unlock()
		if d.groups[number] == g {
			d.forward(g)
		}
	})
	return g
}

// grouped takes note of who is in a group.
func (d *Daemon) grouped(from distrib.NodeID, x group, members []id) error {
	if ok, err := d.schedules(from, "a group"); !ok {
		return err
	}
	ends := time.Duration(x.Ends)
	if ends < 0 || ends > longest || len(members) == 0 || x.At < 0 {
		return fmt.Errorf("a group of %d that ends in %v", len(members), ends)
	}
	for _, m := range members {
		if m.To != x.To || m.Plan != members[0].Plan {
			return fmt.Errorf("a group for node %d with %v", x.To, m)
		}
	}
	g := d.gathering(x.Group, ends+d.o.Lost/2)
	if !d.goesTo(x.To, x.Dest) {
		return fmt.Errorf("a group of node %d for node %d, which has none of its rows", x.To,
			x.Dest)
	}
	g.group, g.members = x, members
	d.complete(g)
	return nil
}

// gather takes an update that is to be added to others.
func (d *Daemon) gather(from distrib.NodeID, p part, m *distrib.Msg) error {
	push, ok := d.pool.Push(m)
	if !ok || !push.Adds || p.ID != idOf(from, p.ID.To, push) {
		return fmt.Errorf("a part, %v, that is another or cannot be added up", p.ID)
	}
	g := d.groups[p.Group]
	if g == nil {
		g = d.gathering(p.Group, d.o.Lost/2)
		g.To, g.Dest = p.ID.To, p.Dest
	}
	if g.To != p.ID.To || g.Dest != p.Dest || !d.goesTo(p.ID.To, p.Dest) {
		return fmt.Errorf("a part for node %d by way of node %d in a group for node %d", p.ID.To,
			p.Dest, g.To)
	}
	if _, ok := g.parts[p.ID]; ok {
		return nil
	}
	if !d.hold(size(m)) {
		d.stats.Full++
		d.answer([]id{p.ID}, false)
		return nil
	}
	g.order = append(g.order, p.ID)
	g.parts[p.ID] = gathered{p.piece, m}
	d.complete(g)
	return nil
}

// hold makes room for what this node is to add up, or for a sum, if there is some.
func (d *Daemon) hold(bytes int64) bool {
	if most := d.o.Parts; most > 0 && d.stats.Held+bytes > most {
		return false
	}
	d.stats.Held += bytes
	d.stats.Most = max(d.stats.Most, d.stats.Held)
	return true
}

// complete forwards a group of which all parts are there that will come.
func (d *Daemon) complete(g *gathering) {
	if g.members == nil {
		return
	}
	for _, x := range g.members {
		if _, ok := g.parts[x]; !ok && !d.down[x.From] {
			return
		}
	}
	d.forward(g)
}

// forward adds up what a group has, in the schedule's order, and sends it to its owner. A sum
// that does not arrive is not taken.
func (d *Daemon) forward(g *gathering) {
	delete(d.groups, g.Group)
	g.timer.Stop()
	if g.members == nil {
		g.members = g.order
	}
	var ids []id
	var bytes int64
	for _, p := range g.parts {
		bytes += size(p.m)
	}
	var parts []gathered
	var ms []*distrib.Msg
	for _, x := range g.members {
		if p, ok := g.parts[x]; ok {
			ids, parts, ms = append(ids, x), append(parts, p), append(ms, p.m)
		}
	}
	if len(ids) == 0 {
		d.stats.Held -= bytes
		return
	}
	d.calls = append(d.calls, func() {
		done := func(err error) {
			d.mu.Lock()
			d.stats.Held -= bytes
			d.mu.Unlock()
			if err != nil {
				d.answer(ids, false)
			}
		}
		body, err := d.pool.Sum(ms, g.At)
		if err != nil {
			done(err)
			return
		}
		m := sumOf(parts, body)
		m.Done = done
		d.mu.Lock()
		if !d.hold(size(m)) {
			d.stats.Full += int64(len(ids))
			d.mu.Unlock()
			done(errFull)
			return
		}
		d.stats.Held -= bytes // the parts are not needed any more
		bytes = size(m)
		d.stats.Sums++
		d.stats.Parts += int64(len(ids))
		d.mu.Unlock()
		d.Transport.Send(g.Dest, m)
	})
}

// errFull is why a sum is not sent: its parts go one by one.
var errFull = errors.New("fabric: no room for a sum")

// sumOf is the message of a sum.
func sumOf(parts []gathered, body [][]byte) *distrib.Msg {
	fixed := []any{sum{}}
	n := 0
	for _, p := range parts {
		fixed = append(fixed, p.piece, uint16(len(p.m.Head)), p.m.Head)
		n += pieceLen + 2 + len(p.m.Head)
	}
	fixed[0] = sum{uint16(len(parts)), uint32(n)}
	m := message(aSum, nil, fixed...)
	m.Body = append(m.Body, body...)
	return m
}

// answer tells those whose updates were to be added up what came of it.
func (d *Daemon) answer(ids []id, taken bool) {
	for _, x := range ids {
		d.Transport.Send(x.From, message(anAnswer, nil, answer{x, taken}))
	}
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
		if other || !d.goesTo(x.ID.To, d.self) {
			return fmt.Errorf("a sum with %v", x.ID)
		}
		pieces, ids = append(pieces, x), append(ids, x.ID)
		parts = append(parts, distrib.Part{From: x.ID.From, Head: head})
	}
	if len(ids) == 0 {
		return fmt.Errorf("a sum of nothing")
	}
	if ids[0].To != d.self {
		return d.keepSum(from, pieces, o)
	}
	return d.accept(incoming{pieces: pieces, take: func() (bool, error) {
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
	if d.chief >= 0 {
		d.Transport.Send(d.chief, message(aFold, nil, f))
	}
}

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
			return d.takeCopy(from, o)
		}
		return d.readKept(from, o)
	}
	d.mu.Lock()
	defer d.unlock()
	if from == d.chief {
		d.heard = time.Now()
	}
	switch o.kind {
	case aClaim:
		var c claim
		if err = o.next(&c); err == nil {
			d.claimed(from, c.Term)
		}
	case aReady:
		return d.readReady(from, o)
	case aSlot:
		var s slot
		if err = o.next(&s); err == nil {
			err = d.slotted(from, s)
		}
	case aGroup:
		var g group
		if err = o.next(&g); err == nil {
			var members []id
			if members, err = list[id](o, g.Members); err == nil {
				err = d.grouped(from, g, members)
			}
		}
	case aPart:
		return d.readPart(from, o)
	case anAnswer:
		var a answer
		if err = o.next(&a); err == nil {
			err = d.answered(from, a)
		}
	case aFate:
		var f fate
		if err = o.next(&f); err == nil {
			err = d.fated(from, f)
		}
	case anUrge:
		d.urged(from)
	case aFold:
		var f fold
		if err = o.next(&f); err == nil && d.own != nil {
			err = d.own.folded(from, f)
		}
	}
	return err
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
	return d.gather(from, p, &distrib.Msg{Class: distrib.Updates, Head: head,
		Body: [][]byte{o.bare}})
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
	if d.own != nil {
		d.own.ready(r, rates)
	}
	return nil
}

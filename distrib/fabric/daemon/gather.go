package daemon

import (
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
)

// gathering is updates that this node is to add up.
type gathering struct {
	group
	members []id // nil: the scheduler has not said who
	parts   map[id]*distrib.Msg
	order   []id // in which parts came
	timer   *time.Timer
}

// gathering finds or makes a group, which goes after a time with what it has.
func (d *Daemon) gathering(number uint64, wait time.Duration) *gathering {
	g := d.groups[number]
	if g == nil {
		g = &gathering{group: group{Group: number}, parts: map[id]*distrib.Msg{}}
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
		g.To = p.ID.To
	}
	if g.To != p.ID.To {
		return fmt.Errorf("a part for node %d in a group for node %d", p.ID.To, g.To)
	}
	if g.parts[p.ID] == nil {
		g.order = append(g.order, p.ID)
	}
	g.parts[p.ID] = m
	d.complete(g)
	return nil
}

// complete forwards a group of which all parts are there that will come.
func (d *Daemon) complete(g *gathering) {
	if g.members == nil {
		return
	}
	for _, x := range g.members {
		if g.parts[x] == nil && !d.down[x.From] {
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
	var ms []*distrib.Msg
	for _, x := range g.members {
		if m := g.parts[x]; m != nil {
			ids, ms = append(ids, x), append(ms, m)
		}
	}
	if len(ids) == 0 {
		return
	}
	d.calls = append(d.calls, func() {
		refused := func(err error) {
			if err != nil {
				d.answer(ids, false)
			}
		}
		body, err := d.pool.Sum(ms, g.At)
		if err != nil {
			refused(err)
			return
		}
		m := sumOf(ids, ms, body)
		m.Done = refused
		d.mu.Lock()
		d.stats.Sums++
		d.stats.Parts += int64(len(ids))
		d.mu.Unlock()
		d.Transport.Send(g.To, m)
	})
}

// sumOf is the message of a sum.
func sumOf(ids []id, ms []*distrib.Msg, body [][]byte) *distrib.Msg {
	fixed := []any{sum{}}
	n := 0
	for i, x := range ids {
		head := ms[i].Head
		fixed = append(fixed, x, uint16(len(head)), head)
		n += idLen + 2 + len(head)
	}
	fixed[0] = sum{uint16(len(ids)), uint32(n)}
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

// takeSum hands a sum to the engine, tells those who have a part in it, and the scheduler.
func (d *Daemon) takeSum(o *opened) error {
	var s sum
	if err := o.next(&s); err != nil {
		return err
	}
	if int(s.Bytes) != o.fixed.Len() {
		return fmt.Errorf("a sum of %d bytes with %d", s.Bytes, o.fixed.Len())
	}
	var ids []id
	var parts []distrib.Part
	for range s.Parts {
		var x id
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
		if x.To != d.self {
			return fmt.Errorf("a sum with %v", x)
		}
		ids, parts = append(ids, x), append(parts, distrib.Part{From: x.From, Head: head})
	}
	taken, err := d.pool.TakeSum(parts, [][]byte{o.bare})
	d.answer(ids, taken)
	if taken {
		version := d.pool.Folded(&distrib.Msg{Class: distrib.Updates, Head: parts[0].Head})
		for _, x := range ids {
			d.report(x, version)
		}
	}
	return err
}

// report tells the scheduler that an owner has an update.
func (d *Daemon) report(x id, version distrib.Version) {
	d.mu.Lock()
	defer d.unlock()
	if d.chief >= 0 {
		d.Transport.Send(d.chief, message(aFold, nil, fold{x, version}))
	}
}

// read does what a message of the fabric says.
func (d *Daemon) read(from distrib.NodeID, m *distrib.Msg) error {
	o, err := open(m)
	if err != nil {
		return err
	}
	if o.kind == aSum {
		if d.pool == nil {
			return fmt.Errorf("a sum, and nobody here owns anything")
		}
		return d.takeSum(o)
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

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

// aggregator is what this node adds up for others.
type aggregator struct {
	d      *Daemon
	groups map[uint64]*gathering
}

// gathered is a part of a group.
type gathered struct {
	piece
	m *distrib.Msg
}

// gathering finds or makes a group, which goes after a time with what it has.
func (a *aggregator) gathering(number uint64, wait time.Duration) *gathering {
	g := a.groups[number]
	if g == nil {
		g = &gathering{group: group{Group: number}, parts: map[id]gathered{}}
		a.groups[number] = g
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer = time.AfterFunc(wait, func() {
		a.d.mu.Lock()
		defer a.d.unlock()
		if a.groups[number] == g {
			a.forward(g)
		}
	})
	return g
}

// grouped takes note of who is in a group.
func (a *aggregator) grouped(from distrib.NodeID, x group, members []id) error {
	if ok, err := a.d.election.schedules(from, "a group"); !ok {
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
	g := a.gathering(x.Group, ends+a.d.o.Lost/2)
	if !a.d.ring.goesTo(x.To, x.Dest) {
		return fmt.Errorf("a group of node %d for node %d, which has none of its rows", x.To,
			x.Dest)
	}
	g.group, g.members = x, members
	a.complete(g)
	return nil
}

// gather takes an update that is to be added to others.
func (a *aggregator) gather(from distrib.NodeID, p part, m *distrib.Msg) error {
	push, ok := a.d.pool.Push(m)
	if !ok || !push.Adds || p.ID != idOf(from, p.ID.To, push) {
		return fmt.Errorf("a part, %v, that is another or cannot be added up", p.ID)
	}
	g := a.groups[p.Group]
	if g == nil {
		g = a.gathering(p.Group, a.d.o.Lost/2)
		g.To, g.Dest = p.ID.To, p.Dest
	}
	if g.To != p.ID.To || g.Dest != p.Dest || !a.d.ring.goesTo(p.ID.To, p.Dest) {
		return fmt.Errorf("a part for node %d by way of node %d in a group for node %d", p.ID.To,
			p.Dest, g.To)
	}
	if _, ok := g.parts[p.ID]; ok {
		return nil
	}
	if !a.hold(size(m)) {
		a.d.stats.Full++
		a.d.answer([]id{p.ID}, false)
		return nil
	}
	g.order = append(g.order, p.ID)
	g.parts[p.ID] = gathered{p.piece, m}
	a.complete(g)
	return nil
}

// hold makes room for what this node is to add up, or for a sum, if there is some.
func (a *aggregator) hold(bytes int64) bool {
	if most := a.d.o.Parts; most > 0 && a.d.stats.Held+bytes > most {
		return false
	}
	a.d.stats.Held += bytes
	a.d.stats.Most = max(a.d.stats.Most, a.d.stats.Held)
	return true
}

// complete forwards a group of which all parts are there that will come.
func (a *aggregator) complete(g *gathering) {
	if g.members == nil {
		return
	}
	for _, x := range g.members {
		if _, ok := g.parts[x]; !ok && !a.d.ring.down[x.From] {
			return
		}
	}
	a.forward(g)
}

// forward adds up what a group has, in the schedule's order, and sends it to its owner. A sum
// that does not arrive is not taken.
func (a *aggregator) forward(g *gathering) {
	delete(a.groups, g.Group)
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
		a.d.stats.Held -= bytes
		return
	}
	a.d.calls = append(a.d.calls, func() {
		done := func(err error) {
			a.d.mu.Lock()
			a.d.stats.Held -= bytes
			a.d.mu.Unlock()
			if err != nil {
				a.d.answer(ids, false)
			}
		}
		body, err := a.d.pool.Sum(ms, g.At)
		if err != nil {
			done(err)
			return
		}
		m := sumOf(parts, body)
		m.Done = done
		a.d.mu.Lock()
		if !a.hold(size(m)) {
			a.d.stats.Full += int64(len(ids))
			a.d.mu.Unlock()
			done(errFull)
			return
		}
		a.d.stats.Held -= bytes // the parts are not needed any more
		bytes = size(m)
		a.d.stats.Sums++
		a.d.stats.Parts += int64(len(ids))
		a.d.mu.Unlock()
		a.d.Transport.Send(g.Dest, m)
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

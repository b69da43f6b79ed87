package daemon

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
)

// way is the messages of class Updates to a node, in order: the first waits for its slot, or for
// word that it was taken, and those behind it for the first.
type way struct {
	d     *Daemon
	to    distrib.NodeID
	queue []*queued
}

// ways are those to all nodes, and how fast they were.
type ways struct {
	d     *Daemon
	to    map[distrib.NodeID]*way
	rates map[distrib.NodeID]float64 // bits a second, of what arrived since they were reported
}

// queued is a message that is held.
type queued struct {
	id    id
	m     *distrib.Msg
	push  distrib.Push
	is    bool // a push; anything else only keeps its place
	state state
	via   distrib.NodeID
	timer *time.Timer
	held  bool // the scheduler has heard of it
	spare bool // replicas are to have it, too
}

// state is how far the first of a way is.
type state uint8

const (
	fresh state = iota
	asked       // it is announced
	timed       // it has a slot, that has not come yet
	away        // with an aggregator
)

// Send holds a message of updates until its slot, and those to the same node behind it; others go
// at once.
func (d *Daemon) Send(to distrib.NodeID, m *distrib.Msg) {
	if m.Class != distrib.Updates {
		d.Transport.Send(to, m)
		return
	}
	d.mu.Lock()
	defer d.unlock()
	w := d.ways.to[to]
	if w == nil {
		w = &way{d: d, to: to}
		d.ways.to[to] = w
	}
	q := &queued{m: m}
	if d.pool != nil {
		q.push, q.is = d.pool.Push(m)
		q.id = idOf(d.self, to, q.push)
		q.spare = q.is && len(d.ring.replicas(to)) > 0
		q.is = q.is && to != d.self
	}
	w.queue = append(w.queue, q)
	w.advance()
}

// advance sends what nothing holds up, and announces the first push.
func (w *way) advance() {
	for len(w.queue) > 0 && w.queue[0].state == fresh {
		q := w.queue[0]
		if q.spare && !w.d.spares.keep(q) {
			return // until there is room
		}
		if q.is && w.d.election.chief >= 0 && !w.d.closing {
			w.announce(q)
			return
		}
		if q.is {
			w.d.stats.Alone++
		}
		w.send(q.m)
	}
}

// send lets the first of a way go as a message.
func (w *way) send(m *distrib.Msg) {
	w.queue = slices.Delete(w.queue, 0, 1)
	w.d.Transport.Send(w.to, m)
}

// flush lets all of a way go at once.
func (w *way) flush() {
	for len(w.queue) > 0 {
		q := w.queue[0]
		if q.timer != nil {
			q.timer.Stop()
		}
		switch {
		case q.state == away:
			w.d.stats.Again++
		case q.is:
			w.d.stats.Alone++
		}
		w.send(q.m)
	}
}

// after has the first of a way looked at, unless it has gone further until then.
func (w *way) after(q *queued, wait time.Duration, then func()) {
	if q.timer != nil {
		q.timer.Stop()
	}
	is := q.state
	q.timer = time.AfterFunc(wait, func() {
		w.d.mu.Lock()
		defer w.d.unlock()
		if len(w.queue) > 0 && w.queue[0] == q && q.state == is {
			then()
			w.advance()
		}
	})
}

// announce asks the scheduler for a slot. If it says nothing for long, it is taken for none until
// it says again that it is there.
func (w *way) announce(q *queued) {
	q.state = asked
	r := ready{ID: q.id, Bytes: size(q.m), Version: q.push.Version, Delay: q.push.Delay,
		Adds: q.push.Adds, Norm: w.d.spares.piece(q.id).Norm}
	var rates []rate
	for to, bps := range w.d.ways.rates {
		rates = append(rates, rate{to, bps})
	}
	clear(w.d.ways.rates)
	r.Rates = uint16(len(rates))
	w.d.Transport.Send(w.d.election.chief, message(aReady, nil, r, rates))
	w.patient(q, w.d.election.chief, w.d.o.Patience)
}

// patient waits for a slot as long as the scheduler is heard of, once it has said that it will
// come.
func (w *way) patient(q *queued, chief distrib.NodeID, wait time.Duration) {
	w.after(q, wait, func() {
		e := &w.d.election
		left := w.d.o.Patience - time.Since(e.heard)
		if q.held && e.chief == chief && left > 0 {
			w.patient(q, chief, left)
			return
		}
		if e.chief == chief {
			e.chief = -1
			w.d.ways.unheld()
		}
		w.d.stats.Alone++
		w.send(q.m)
	})
}

// unheld believes no more that slots will come which a scheduler has said to be coming: it was
// taken for none, and what it said then was not heard, or there is another one.
func (a *ways) unheld() {
	for _, w := range a.to {
		if len(w.queue) > 0 {
			w.queue[0].held = false
		}
	}
}

// lose sends by itself what waits for a node that is gone. It may have been the scheduler.
func (a *ways) lose(node distrib.NodeID, chief bool) {
	for _, w := range a.to {
		switch {
		case w.to == node:
			w.flush()
		case len(w.queue) == 0:
		case chief && w.queue[0].state == asked:
			w.queue[0].timer.Stop()
			a.d.stats.Alone++
			w.send(w.queue[0].m)
			w.advance()
		case w.queue[0].state == away && w.queue[0].via == node:
			w.again()
		}
	}
}

// first is the way whose first message is an update in a state; nil if it is not there any more.
func (a *ways) first(x id, in state) (*way, *queued) {
	w := a.to[x.To]
	if w == nil || len(w.queue) == 0 || w.queue[0].id != x || w.queue[0].state != in {
		return nil, nil
	}
	return w, w.queue[0]
}

// longest is how long an update waits for its slot at most: a third of what an engine waits for
// another. A slot that comes later than that is of links that look slower than they are: a way to a
// node that was stopped is measured so, and only what is sent over it next says otherwise.
const longest = 20 * time.Second

// slotted does with an update what the scheduler says.
func (a *ways) slotted(from distrib.NodeID, s slot) error {
	if ok, err := a.d.election.schedules(from, fmt.Sprint("a slot for ", s.ID)); !ok {
		return err
	}
	if s.Verdict == copyDirect || s.Verdict == copySummed {
		return a.d.spares.copySlot(s)
	}
	w, q := a.first(s.ID, asked)
	if w == nil {
		return nil // it has gone without
	}
	if s.Verdict == held {
		q.held = true
		return nil
	}
	wait, ends := time.Duration(s.Wait), time.Duration(s.Ends)
	if wait < 0 || wait > longest || ends < 0 || ends > longest || s.Verdict >= verdicts ||
		s.Verdict == dropped && q.push.Delay == 0 || s.Verdict == summed && !q.push.Adds ||
		s.Verdict == summed && !slices.Contains(a.d.o.Nodes, s.Via) {
		q.timer.Stop()
		a.d.stats.Alone++
		w.send(q.m)
		w.advance()
		return fmt.Errorf("a slot that %v cannot have: %+v", s.ID, s)
	}
	if s.Verdict == dropped {
		q.timer.Stop()
		w.drop(q)
		w.advance()
		return nil
	}
	q.state = timed
	w.after(q, wait, func() {
		a.d.stats.Scheduled++
		if s.Verdict == direct || a.d.ring.down[s.Via] {
			w.send(a.measured(w.to, q.m, q.m.Done))
			return
		}
		q.state, q.via = away, s.Via
		m := partOf(s, a.d.spares.piece(s.ID), s.ID.To, q.m)
		a.d.Transport.Send(s.Via, a.measured(s.Via, m, nil))
		w.after(q, max(0, ends-wait)+a.d.o.Lost, func() { w.again() })
	})
	return nil
}

// partOf is an update on its way to an aggregator. Its memory is its own, for it may be sent again.
func partOf(s slot, x piece, dest distrib.NodeID, m *distrib.Msg) *distrib.Msg {
	p := part{piece: x, Group: s.Group, Dest: dest, Head: uint16(len(m.Head))}
	return message(aPart, bytes.Join(m.Body, nil), p, bytes.Clone(m.Head))
}

// measured is a message whose way is measured: how fast it arrives that is sent when the schedule
// says, and so has the links to itself if all goes well.
func (a *ways) measured(to distrib.NodeID, m *distrib.Msg, done func(error)) *distrib.Msg {
	c, begun, bytes := *m, time.Now(), size(m)
	c.Done = func(err error) {
		if took := time.Since(begun).Seconds(); err == nil && took > 0 && to != a.d.self {
			a.d.mu.Lock()
			a.rates[to] = max(a.rates[to], 8*float64(bytes)/took)
			a.d.mu.Unlock()
		}
		if done != nil {
			done(err)
		}
	}
	return &c
}

// drop sends what is left of an update that is discarded.
func (w *way) drop(q *queued) {
	w.d.stats.Dropped++
	w.d.spares.release(q.id)
	m, done := distrib.Without(q.m), q.m.Done
	m.Done = func(err error) {
		if err == nil {
			err = distrib.ErrStale
		}
		if done != nil {
			done(err)
		}
	}
	w.send(m)
}

// again sends the first of a way by itself, which nobody has said to have taken. If somebody has,
// its owner knows it by its number.
func (w *way) again() {
	q := w.queue[0]
	if q.timer != nil {
		q.timer.Stop()
	}
	w.d.stats.Again++
	w.send(q.m)
	w.advance()
}

// answered takes note of what became of an update that was added to others.
func (a *ways) answered(from distrib.NodeID, x answer) error {
	if from == x.ID.To && x.Taken {
		a.d.spares.settle(x.ID)
	}
	if !x.Taken && a.d.spares.refused(from, x.ID) {
		return nil
	}
	w, q := a.first(x.ID, away)
	switch {
	case w == nil:
		return nil // it was sent again
	case from != w.to && (x.Taken || from != q.via):
		return fmt.Errorf("an answer about %v", x.ID)
	case !x.Taken:
		w.again()
		return nil
	}
	q.timer.Stop()
	a.d.stats.Summed++
	w.queue = slices.Delete(w.queue, 0, 1)
	if done := q.m.Done; done != nil {
		a.d.calls = append(a.d.calls, func() { done(nil) })
	}
	w.advance()
	return nil
}

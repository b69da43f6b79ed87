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
	to    distrib.NodeID
	queue []*queued
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
	w := d.ways[to]
	if w == nil {
		w = &way{to: to}
		d.ways[to] = w
	}
	q := &queued{m: m}
	if d.pool != nil {
		q.push, q.is = d.pool.Push(m)
		q.id = idOf(d.self, to, q.push)
		q.spare = q.is && len(d.replicas(to)) > 0
		q.is = q.is && to != d.self
	}
	w.queue = append(w.queue, q)
	d.advance(w)
}

// advance sends what nothing holds up, and announces the first push.
func (d *Daemon) advance(w *way) {
	for len(w.queue) > 0 && w.queue[0].state == fresh {
		q := w.queue[0]
		if q.spare && !d.spare(q) {
			return // until there is room
		}
		if q.is && d.chief >= 0 && !d.closing {
			d.announce(w, q)
			return
		}
		if q.is {
			d.stats.Alone++
		}
		d.send(w, q.m)
	}
}

// send lets the first of a way go as a message.
func (d *Daemon) send(w *way, m *distrib.Msg) {
	w.queue = slices.Delete(w.queue, 0, 1)
	d.Transport.Send(w.to, m)
}

// flush lets all of a way go at once.
func (d *Daemon) flush(w *way) {
	for len(w.queue) > 0 {
		q := w.queue[0]
		if q.timer != nil {
			q.timer.Stop()
		}
		switch {
		case q.state == away:
			d.stats.Again++
		case q.is:
			d.stats.Alone++
		}
		d.send(w, q.m)
	}
}

// after has the first of a way looked at, unless it has gone further until then.
func (d *Daemon) after(w *way, q *queued, wait time.Duration, then func()) {
	if q.timer != nil {
		q.timer.Stop()
	}
	is := q.state
	q.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.unlock()
		if len(w.queue) > 0 && w.queue[0] == q && q.state == is {
			then()
			d.advance(w)
		}
	})
}

// announce asks the scheduler for a slot. If it says nothing for long, it is taken for none until
// it says again that it is there.
func (d *Daemon) announce(w *way, q *queued) {
	q.state = asked
	r := ready{ID: q.id, Bytes: size(q.m), Version: q.push.Version, Delay: q.push.Delay,
		Adds: q.push.Adds, Norm: d.piece(q.id).Norm}
	var rates []rate
	for to, bps := range d.rates {
		rates = append(rates, rate{to, bps})
	}
	clear(d.rates)
	r.Rates = uint16(len(rates))
	d.Transport.Send(d.chief, message(aReady, nil, r, rates))
	d.patient(w, q, d.chief, d.o.Patience)
}

// patient waits for a slot as long as the scheduler is heard of, once it has said that it will
// come.
func (d *Daemon) patient(w *way, q *queued, chief distrib.NodeID, wait time.Duration) {
	d.after(w, q, wait, func() {
		if left := d.o.Patience - time.Since(d.heard); q.held && d.chief == chief && left > 0 {
			d.patient(w, q, chief, left)
			return
		}
		if d.chief == chief {
			d.chief = -1
			d.unheld()
		}
		d.stats.Alone++
		d.send(w, q.m)
	})
}

// unheld believes no more that slots will come which a scheduler has said to be coming: it was
// taken for none, and what it said then was not heard, or there is another one.
func (d *Daemon) unheld() {
	for _, w := range d.ways {
		if len(w.queue) > 0 {
			w.queue[0].held = false
		}
	}
}

// first is the way whose first message is an update in a state; nil if it is not there any more.
func (d *Daemon) first(x id, in state) (*way, *queued) {
	w := d.ways[x.To]
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
func (d *Daemon) slotted(from distrib.NodeID, s slot) error {
	if ok, err := d.schedules(from, fmt.Sprint("a slot for ", s.ID)); !ok {
		return err
	}
	if s.Verdict == copyDirect || s.Verdict == copySummed {
		return d.copySlot(s)
	}
	w, q := d.first(s.ID, asked)
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
		s.Verdict == summed && !slices.Contains(d.o.Nodes, s.Via) {
		q.timer.Stop()
		d.stats.Alone++
		d.send(w, q.m)
		d.advance(w)
		return fmt.Errorf("a slot that %v cannot have: %+v", s.ID, s)
	}
	if s.Verdict == dropped {
		q.timer.Stop()
		d.drop(w, q)
		d.advance(w)
		return nil
	}
	q.state = timed
	d.after(w, q, wait, func() {
		d.stats.Scheduled++
		if s.Verdict == direct || d.down[s.Via] {
			d.send(w, d.timed(w.to, q.m, q.m.Done))
			return
		}
		q.state, q.via = away, s.Via
		m := partOf(s, d.piece(s.ID), s.ID.To, q.m)
		d.Transport.Send(s.Via, d.timed(s.Via, m, nil))
		d.after(w, q, max(0, ends-wait)+d.o.Lost, func() { d.again(w) })
	})
	return nil
}

// partOf is an update on its way to an aggregator. Its memory is its own, for it may be sent again.
func partOf(s slot, x piece, dest distrib.NodeID, m *distrib.Msg) *distrib.Msg {
	p := part{piece: x, Group: s.Group, Dest: dest, Head: uint16(len(m.Head))}
	return message(aPart, bytes.Join(m.Body, nil), p, bytes.Clone(m.Head))
}

// timed is a message whose way is measured: how fast it arrives that is sent when the schedule
// says, and so has the links to itself if all goes well.
func (d *Daemon) timed(to distrib.NodeID, m *distrib.Msg, done func(error)) *distrib.Msg {
	c, begun, bytes := *m, time.Now(), size(m)
	c.Done = func(err error) {
		if took := time.Since(begun).Seconds(); err == nil && took > 0 && to != d.self {
			d.mu.Lock()
			d.rates[to] = max(d.rates[to], 8*float64(bytes)/took)
			d.mu.Unlock()
		}
		if done != nil {
			done(err)
		}
	}
	return &c
}

// drop sends what is left of an update that is discarded.
func (d *Daemon) drop(w *way, q *queued) {
	d.stats.Dropped++
	d.release(q.id)
	m, done := distrib.Without(q.m), q.m.Done
	m.Done = func(err error) {
		if err == nil {
			err = distrib.ErrStale
		}
		if done != nil {
			done(err)
		}
	}
	d.send(w, m)
}

// again sends the first of a way by itself, which nobody has said to have taken. If somebody has,
// its owner knows it by its number.
func (d *Daemon) again(w *way) {
	q := w.queue[0]
	if q.timer != nil {
		q.timer.Stop()
	}
	d.stats.Again++
	d.send(w, q.m)
	d.advance(w)
}

// answered takes note of what became of an update that was added to others.
func (d *Daemon) answered(from distrib.NodeID, a answer) error {
	if from == a.ID.To && a.Taken {
		d.settle(a.ID)
	}
	if !a.Taken && d.refused(from, a.ID) {
		return nil
	}
	w, q := d.first(a.ID, away)
	switch {
	case w == nil:
		return nil // it was sent again
	case from != w.to && (a.Taken || from != q.via):
		return fmt.Errorf("an answer about %v", a.ID)
	case !a.Taken:
		d.again(w)
		return nil
	}
	q.timer.Stop()
	d.stats.Summed++
	w.queue = slices.Delete(w.queue, 0, 1)
	if done := q.m.Done; done != nil {
		d.calls = append(d.calls, func() { done(nil) })
	}
	d.advance(w)
	return nil
}

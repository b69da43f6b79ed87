package collective

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gomem/gomem/distrib"
)

// waiter is a goroutine that waits for something to change in a group.
type waiter struct {
	c     chan struct{}
	timer *time.Timer
}

// waiter registers one; from here on it misses nothing. The group is locked.
func (g *Group) waiter() *waiter {
	var w *waiter
	if n := len(g.idle); n > 0 {
		w = g.idle[n-1]
		g.idle = g.idle[:n-1]
		select {
		case <-w.c:
		default:
		}
	} else {
		w = &waiter{c: make(chan struct{}, 1)}
	}
	g.waiters = append(g.waiters, w)
	return w
}

func (g *Group) release(w *waiter) {
	for i, x := range g.waiters {
		if x == w {
			n := len(g.waiters) - 1
			g.waiters[i] = g.waiters[n]
			g.waiters = g.waiters[:n]
		}
	}
	g.idle = append(g.idle, w)
}

// wake tells everybody who waits to look again. The group is locked.
func (g *Group) wake() {
	for _, w := range g.waiters {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// sleep waits for a change, the end of the context or the time.
func (w *waiter) sleep(ctx context.Context, d time.Duration) error {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	defer w.timer.Stop()
	select {
	case <-w.c:
	case <-w.timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// want is what somebody waits for: the end of a batch, or else a message.
type want struct {
	batch *batch
	from  int
	user  bool
	tag   uint64 // of a message of a user
	seq   uint64 // of an operation, for reports
	what  string // the same
	found int    // where the message is in its queue
	calm  bool   // it is no stall if nothing comes
}

func (g *Group) ready(w *want) bool {
	switch {
	case w.batch != nil:
		return w.batch.queued == 0 && w.batch.flying == 0
	case !w.user:
		return g.peers[w.from].ops.len() > 0
	}
	q := &g.peers[w.from].msgs
	for w.found = 0; w.found < q.len(); w.found++ {
		if q.at(w.found).msg.Tag == w.tag {
			return true
		}
	}
	return false
}

// refused says why it is useless to wait.
func (g *Group) refused(w *want) error {
	if g.err != nil {
		return g.err
	}
	if w.batch == nil && g.peers[w.from].bye {
		return g.left(w.from)
	}
	for i := range g.peers {
		if w.batch != nil && g.peers[i].bye && g.peers[i].out.len() > 0 {
			return g.left(i)
		}
	}
	return nil
}

// wait returns when there is what is wanted, whatever else has happened, or when it cannot
// come any more. It sends what can be sent meanwhile. The group is locked.
func (g *Group) wait(ctx context.Context, w *want) error {
	if g.backlog > 0 {
		g.mu.Unlock()
		g.pump()
		g.mu.Lock()
	}
	if g.ready(w) {
		return nil
	}
	wt := g.waiter()
	defer g.release(wt)
	p := patience{g: g, since: time.Now(), report: g.mux.o.Stall}
	for !g.ready(w) {
		if err := g.refused(w); err != nil {
			return err
		}
		d, err := p.next(w)
		if err != nil {
			return err
		}
		before := g.backlog
		g.mu.Unlock()
		if before > 0 {
			g.pump()
		}
		err = wt.sleep(ctx, d)
		g.mu.Lock()
		if err != nil && !g.ready(w) {
			return err
		}
	}
	return nil
}

// patience is how long somebody has waited. After the time of a stall, and then twice,
// four times that and so on, there is a report; shortly before, all members are asked how
// far they are, so that it can say who is missing.
type patience struct {
	g      *Group
	since  time.Time
	report time.Duration // when the next one is due
	asked  bool          // for it
}

// next does what is due and is how long to sleep then. The group is locked, but not while
// others are called.
func (p *patience) next(w *want) (time.Duration, error) {
	if w.calm {
		return time.Hour, nil
	}
	o := &p.g.mux.o
	for {
		past := time.Since(p.since)
		due := min(p.report, o.Timeout)
		switch ask := due - o.Stall/10; {
		case past < ask:
			return ask - past, nil
		case !p.asked:
			p.asked = true
			p.g.ask()
		case past < due:
			return due - past, nil
		case due == o.Timeout:
			return 0, p.g.stalled(w)
		default:
			p.report, p.asked = 2*p.report, false
			line := p.g.stalled(w).Error()
			p.g.mu.Unlock()
			p.g.mux.log(line + " for " + past.Round(time.Second/10).String())
			p.g.mu.Lock()
		}
	}
}

// ask sends a probe to all members.
func (g *Group) ask() {
	for i := range g.peers {
		g.peers[i].ans = false
	}
	g.mu.Unlock()
	g.toAll(head{kind: probe, group: g.id}, "")
	g.mu.Lock()
}

// stalled says who is missing: those that have not begun the operation, or did not even
// answer; if all have, then whom this rank waits for.
func (g *Group) stalled(w *want) *distrib.StallError {
	e := &distrib.StallError{Clock: distrib.Clock(w.seq), What: w.what}
	for i := range g.peers {
		p := &g.peers[i]
		if i != g.rank && (!p.ans || p.seen < w.seq) {
			e.Nodes = append(e.Nodes, p.node)
		}
	}
	if len(e.Nodes) > 0 {
		return e
	}
	for i := range g.peers {
		p := &g.peers[i]
		if w.batch == nil && i == w.from || w.batch != nil && p.out.len()+p.flying > 0 {
			e.Nodes = append(e.Nodes, p.node)
		}
	}
	return e
}

// down notes that a node is lost. In peace, what it has sent still counts.
func (g *Group) down(n distrib.NodeID, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.rankOf(n); i >= 0 && !g.peers[i].bye {
		g.fail(g.lost(err, i))
	}
	g.wake()
}

func (g *Group) lost(err error, rank int) error {
	return &distrib.LostError{Nodes: []distrib.NodeID{g.peers[rank].node}, Epoch: g.mux.o.Epoch,
		Err: err}
}

// errLeft is what is wrong with a member that has closed a group in peace.
var errLeft = errors.New("it has closed the group")

func (g *Group) left(rank int) error { return g.lost(errLeft, rank) }

// fail poisons the group; the first reason stays. The group is locked.
func (g *Group) fail(err error) {
	if g.err == nil {
		g.err = err
	}
	g.wake()
}

// tell lets the other members know why the group fails here. It is not locked.
func (g *Group) tell() {
	g.mu.Lock()
	err := g.err
	told := g.told
	g.told = true
	g.mu.Unlock()
	if err == nil || told {
		return
	}
	h := head{kind: abort, group: g.id}
	if lost, ok := err.(*distrib.LostError); ok {
		h.total = uint64(len(lost.Nodes))
	}
	g.toAll(h, reasonOf(err))
}

// toAll sends a message without data to all members.
func (g *Group) toAll(h head, body string) {
	for i, n := range g.members {
		if i == g.rank {
			continue
		}
		g.mu.Lock()
		h.took = g.peers[i].took
		g.mu.Unlock()
		msg := &distrib.Msg{Class: distrib.Collective, Head: h.append(nil)}
		if body != "" {
			msg.Body = [][]byte{[]byte(body)}
		}
		g.mux.t.Send(n, msg)
	}
}

// aborted is what a member's abort means here. The group is locked.
func (g *Group) aborted(a arrival) {
	var body strings.Builder
	for _, b := range a.msg.Body {
		body.Write(b)
	}
	g.told = true // they know
	nodes, reason := parseReason(body.String(), int(a.head.total))
	err := error(&AbortError{a.from, reason})
	if len(nodes) > 0 {
		err = &distrib.LostError{Nodes: nodes, Epoch: g.mux.o.Epoch, Err: err}
	}
	g.fail(err)
}

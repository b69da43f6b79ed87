package distrib

import (
	"bytes"
	"context"
	"slices"
)

// takeMoved takes rows that are this node's from now on, or a replica.
func (e *Engine) takeMoved(from NodeID, h header, marks []mark, body []byte) error {
	if h.flags&endsRows != 0 {
		return e.takeEnd(from, h, marks)
	}
	s, err := ReadShard(bytes.NewReader(body), e.kinds()...)
	if err != nil {
		return err
	}
	for _, r := range s.Rows {
		i := slices.IndexFunc(e.params, func(p *param) bool { return p.name == r.Param })
		if i < 0 || !r.fits(e.params[i].rows, e.params[i].cols, e.params[i].kind) {
			return badFrame("rows [%d, +%d) of %s have moved, which there are not", r.Row, r.N,
				r.Param)
		}
		if err := e.adopt(e.params[i], r); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) adopt(p *param, r SavedRows) error {
	ref := Ref{p.id, r.Row, r.N}
	if p.lane.mode == served {
		if p.lane.server == nil {
			return badFrame("rows of %s have moved to node %d, which serves none", p.name, e.self)
		}
		if err := p.lane.server.owns(ref); err != nil {
			return err
		}
		p.master.load(int(p.slot[r.Row]), r)
	} else {
		p.replica.load(int(r.Row), r)
		e.touch(p, ref)
		e.rebase = true
	}
	rule, ok := p.lane.plan.Rule.(Stateful)
	for i, state := range r.State {
		if !ok {
			return badFrame("rows of %s have moved with what no rule keeps", p.name)
		}
		if err := rule.Load(p.id, r.Row+int32(i), p.cols, state); err != nil {
			return err
		}
	}
	return nil
}

// takeEnd notes that all rows of a node have come. Who joins learns its clock with it, and
// may begin when all have ended.
func (e *Engine) takeEnd(from NodeID, h header, marks []mark) error {
	m := e.moving
	if m == nil {
		return badFrame("rows move where no view changes")
	}
	m.ends++
	if !m.joins || m.ends < h.ack {
		return nil
	}
	for _, w := range e.workers {
		w.clock = h.clock + 1
	}
	if len(e.workers) > 0 {
		e.clock = h.clock + 1
	}
	for _, l := range e.lanes {
		l.begin(marks)
	}
	e.moving, e.paused = nil, false
	return nil
}

// Joined waits until this node, made with Config.Joins, has what it needs of the others,
// and returns the clock in which its workers begin.
func (e *Engine) Joined(ctx context.Context) (Clock, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.joined(ctx)
	return e.clock, err
}

func (e *Engine) joined(ctx context.Context) error {
	return e.wait(ctx, waiting{
		ready: func() bool { return e.started && (e.moving == nil || !e.moving.joins) },
		what:  func() string { return "rows of the epoch that it joins" },
		who:   func() []NodeID { return e.all },
	})
}

// takeMove takes what changes views.
func (e *Engine) takeMove(from NodeID, h header, marks []mark, body []byte) error {
	switch h.kind {
	case kindDrained, kindEnded:
		e.takeDrained(from, h, marks)
		return nil
	case kindMoved:
		return e.takeMoved(from, h, marks, body)
	}
	return badFrame("a message of kind %d", h.kind)
}

// unsettled reports whether a message must wait for a change of views to come so far.
func (e *Engine) unsettled(h header) bool {
	m := e.moving
	switch h.kind {
	case kindDrained, kindEnded:
		return m == nil || m.round < h.clock
	case kindHello, kindBye, kindMoved:
		return false
	}
	return m != nil && (m.closed || m.joins)
}

// still reports whether nothing may be sent that has not been queued.
func (e *Engine) still() bool { return e.moving != nil }

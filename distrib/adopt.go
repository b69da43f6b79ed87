package distrib

import (
	"bytes"
	"context"
	"slices"
)

// takeMoved takes rows that are this node's from now on, or a replica.
func (vs *views) takeMoved(from NodeID, h header, marks []mark, body []byte) error {
	if h.flags&endsRows != 0 {
		return vs.takeEnd(from, h, marks)
	}
	s, err := ReadShard(bytes.NewReader(body), vs.e.kinds()...)
	if err != nil {
		return err
	}
	for _, r := range s.Rows {
		i := slices.IndexFunc(vs.e.params, func(p *param) bool { return p.name == r.Param })
		if i < 0 || !r.fits(vs.e.params[i].rows, vs.e.params[i].cols, vs.e.params[i].kind) {
			return badFrame("rows [%d, +%d) of %s have moved, which there are not", r.Row, r.N,
				r.Param)
		}
		if err := vs.adopt(vs.e.params[i], r); err != nil {
			return err
		}
	}
	return nil
}

func (vs *views) adopt(p *param, r SavedRows) error {
	ref := Ref{p.id, r.Row, r.N}
	if p.lane.mode == served {
		if p.lane.server == nil {
			return badFrame("rows of %s have moved to node %d, which serves none", p.name,
				vs.e.self)
		}
		if err := p.lane.server.owns(ref); err != nil {
			return err
		}
		p.master.load(int(p.slot[r.Row]), r)
	} else {
		p.replica.load(int(r.Row), r)
		vs.e.workers.touch(p, ref)
		vs.e.record.rebase = true
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
func (vs *views) takeEnd(from NodeID, h header, marks []mark) error {
	m := vs.moving
	if m == nil {
		return badFrame("rows move where no view changes")
	}
	m.ends++
	if !m.joins || m.ends < h.ack {
		return nil
	}
	for _, w := range vs.e.workers.list {
		w.clock = h.clock + 1
	}
	if len(vs.e.workers.list) > 0 {
		vs.e.workers.clock = h.clock + 1
	}
	for _, l := range vs.e.lanes {
		l.begin(marks)
	}
	vs.moving, vs.paused = nil, false
	return nil
}

func (vs *views) joined(ctx context.Context) error {
	return vs.e.wait(ctx, waiting{
		ready: func() bool { return vs.e.started && (vs.moving == nil || !vs.moving.joins) },
		what:  func() string { return "rows of the epoch that it joins" },
		who:   func() []NodeID { return vs.e.mail.all },
	})
}

// takeMove takes what changes views.
func (vs *views) takeMove(from NodeID, h header, marks []mark, body []byte) error {
	switch h.kind {
	case kindDrained, kindEnded:
		vs.takeDrained(from, h, marks)
		return nil
	case kindMoved:
		return vs.takeMoved(from, h, marks, body)
	}
	return badFrame("a message of kind %d", h.kind)
}

// unsettled reports whether a message must wait for a change of views to come so far.
func (vs *views) unsettled(h header) bool {
	m := vs.moving
	switch h.kind {
	case kindDrained, kindEnded:
		return m == nil || m.round < h.clock
	case kindHello, kindBye, kindMoved:
		return false
	}
	return m != nil && (m.closed || m.joins)
}

// still reports whether nothing may be sent that has not been queued.
func (vs *views) still() bool { return vs.moving != nil }

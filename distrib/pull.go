package distrib

import (
	"context"
	"slices"
)

// Pull copies what has come.
func (w *worker) Pull(ctx context.Context, ref Ref) (Version, error) {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	if err := w.ready(); err != nil {
		return 0, err
	}
	return w.pull(ctx, ref)
}

// PullRows copies what has come of some rows.
func (w *worker) PullRows(ctx context.Context, refs []Ref) error {
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := w.ready(); err != nil {
		return err
	}
	by := make([][]Ref, len(e.params))
	for _, ref := range refs {
		p, ref, err := e.resolve(ref)
		if err != nil {
			return err
		}
		by[p.id] = append(by[p.id], ref)
	}
	for i, list := range by {
		if p := e.params[i]; p.lane.mode == served && len(list) > 0 && !e.views.paused {
			p.lane.client.missing(p, list, needs(p.lane.cons, w.clock, e.members))
		}
	}
	for _, ref := range refs {
		if _, err := w.pull(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// pull is Pull under the lock.
func (w *worker) pull(ctx context.Context, ref Ref) (Version, error) {
	e := w.e
	p, ref, err := e.resolve(ref)
	if err != nil {
		return 0, err
	}
	l := p.lane
	need := needs(l.cons, w.clock, e.members)
	if !l.readable(w, p, ref, need) {
		err = e.wait(ctx, waiting{
			ready: func() bool { return l.readable(w, p, ref, need) }, clock: need,
			what:  func() string { return "parameter " + p.name },
			who:   func() []NodeID { return l.blamed(p, ref, need) },
			probe: func() { l.client.probe(p, ref, need) },
		})
		if err != nil {
			return 0, err
		}
	}
	if j := e.record.open(); j != nil {
		j.Read(w.clock, ref)
	}
	w.copy(p, ref)
	w.begins()
	return l.version(p, ref), nil
}

// readable reports whether a worker may read rows, and asks for those that are missing.
func (l *lane) readable(w *worker, p *param, ref Ref, need Clock) bool {
	if l.e.views.paused {
		return false
	}
	switch l.mode {
	case served:
		return l.client.fresh(p, ref, need)
	case flow:
		return l.client.reached(p, ref, need)
	case local:
		return true
	}
	return l.cons.MayRead(w.clock, l.seen.of, l.e.members)
}

// version is of the oldest of some rows.
func (l *lane) version(p *param, ref Ref) Version {
	switch l.mode {
	case served:
		return slices.Min(p.versions[ref.Row : ref.Row+ref.N])
	case flow:
		least := endOfTime
		for _, id := range p.owner[ref.Row : ref.Row+ref.N] {
			least = min(least, l.client.age.of(id))
		}
		return Version(least)
	case local:
		return Version(l.e.workers.clock)
	}
	return Version(l.seen.min())
}

// blamed is who keeps rows from being read.
func (l *lane) blamed(p *param, ref Ref, need Clock) []NodeID {
	if l.mode == graph || l.mode == carry {
		return l.seen.behind(nil, need)
	}
	return l.client.blamed(p, ref, need)
}

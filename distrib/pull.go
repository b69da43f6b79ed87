package distrib

import "context"

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
			p.lane.missing(p, list, needs(p.lane.cons, w.clock, e.members))
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
			probe: func() { l.probe(p, ref, need) },
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

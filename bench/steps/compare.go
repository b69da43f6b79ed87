package main

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/gomem/gomem"
)

// compare times the model beside the peer's, or alone if the peer is missing.
func (r *outcome) compare(ctx context.Context, o options, m *model) (err error) {
	t, err := newTrainer(ctx, m, gomem.Options{Threads: r.threads}.With(resident))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.session.Close()) }()
	initial, err := t.initial()
	if err != nil {
		return err
	}
	p, err := startRival(ctx, o.python, r.config, r.threads, initial)
	if err != nil {
		r.missing, p = err, nil
	}
	if err = r.alternate(ctx, o.rounds, t, p); err == nil && p != nil {
		err = r.askPeer(p)
	}
	if p != nil {
		err = errors.Join(err, p.Close())
	}
	return err
}

// alternate times the two sides. The collector stays off meanwhile: a step
// leaves it next to nothing.
func (r *outcome) alternate(ctx context.Context, rounds int, t *trainer, p *peer) (err error) {
	debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if r.agreement, err = warm(ctx, t, p); err != nil {
		return err
	}
	r.rounds, err = interleave(ctx, rounds, newWatch(p), sides(ctx, t, p)...)
	return err
}

// askPeer asks for what the peer alone can tell.
func (r *outcome) askPeer(p *peer) (err error) {
	if r.peer, err = p.memory(); err != nil {
		return err
	}
	r.operators, err = p.profile()
	return err
}

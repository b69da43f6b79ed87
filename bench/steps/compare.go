package main

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/turns"
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
	peers, err := startRivals(ctx, o, r.config, r.threads, initial)
	defer func() { err = errors.Join(err, closeAll(peers)) }()
	if r.missing = err; err != nil {
		peers = nil
	}
	if err := r.alternate(ctx, o.rounds, t, peers); err != nil || len(peers) == 0 {
		return err
	}
	return r.askPeer(peers[eager])
}

// alternate times the sides. The collector stays off meanwhile: a step
// leaves it next to nothing.
func (r *outcome) alternate(ctx context.Context, rounds int, t *trainer, peers []*peer) (
	err error) {
	debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if r.agreement, err = warm(ctx, t, peers); err != nil {
		return err
	}
	r.rounds, err = turns.Take(ctx, rounds, watch(peers), sides(ctx, t, peers)...)
	return err
}

// watch watches for a comparison with the peers.
func watch(peers []*peer) *turns.Watch {
	var pids []int
	for _, p := range peers {
		pids = append(pids, p.PID())
	}
	return turns.NewWatch(pids...)
}

// askPeer asks for what the peer alone can tell.
func (r *outcome) askPeer(p *peer) (err error) {
	if r.peer, err = p.memory(); err != nil {
		return err
	}
	r.operators, err = p.profile()
	return err
}

package train

import (
	"context"
	"time"
)

// saving is when the run saves, where time says so and not the number of steps.
type saving struct {
	ended time.Time     // of the last checkpoint, or when training began
	took  time.Duration // that checkpoint; 0: there is none
}

// wants reports whether it is time for a checkpoint: worker 0 says so for all.
func (r *run) wants() bool {
	if r.SaveAfter == nil || !r.leads() {
		return false
	}
	s := &r.saving
	if s.ended.IsZero() {
		s.ended = time.Now()
	}
	return time.Since(s.ended) >= r.SaveAfter(s.took)
}

// saves reports whether a checkpoint is due after a step.
func (r *run) saves() bool {
	if r.Parallel == nil {
		return due(r.done, r.SaveEvery) || r.wants()
	}
	return due(r.done, r.SaveEvery) || r.team.save
}

// keep saves after a step that a checkpoint is due after.
func (r *run) keep(ctx context.Context) error {
	began := time.Now()
	if err := r.settle(ctx); err != nil {
		return err
	}
	err := r.saveAll(ctx, r.saved != r.done)
	r.saving = saving{ended: time.Now(), took: max(time.Since(began), 1)}
	r.team.save = false
	return err
}

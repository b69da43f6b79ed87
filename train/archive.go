package train

import (
	"errors"
	"fmt"
	"time"
)

// archive is what a run has saved, where, and when it saves next.
type archive struct {
	store   store
	place   *place // of the store; nil of one who does not save
	good    string // the newest checkpoint, or the one resumed; "" before the first
	saved   int    // its step
	unsaved error  // of the newest that could not be written, if none has been since
	out     *guard // of a run that was cut off; nil before
	saving  saving
}

// current reports whether resuming the directory finds the weights as they are after a step.
// A checkpoint that was resumed may be in another one, or not its latest.
func (a *archive) current(step int) bool {
	latest, err := find(a.store.dir)
	return a.saved == step && err == nil && sameFile(latest, a.good)
}

// endure makes a warning of a checkpoint that could not be written, and keeps the error for the
// end: a disk that is full does not end a run, which has what was saved before.
func (a *archive) endure(err error) (warning string, _ error) {
	e, ok := errors.AsType[*ErrCheckpoint](err)
	_, lost := errors.AsType[*lostError](err)
	if a.unsaved = nil; err == nil || !ok || lost {
		return "", err
	}
	a.unsaved = err
	kept := "no checkpoint yet"
	if a.good != "" {
		kept = "the checkpoint of step " + fmt.Sprint(a.saved)
	}
	return fmt.Sprintf("%v; the run goes on, and has %s", e, kept), nil
}

// guarded is the store as a worker may change it after a step, if it is one of p's.
func (a *archive) guarded(p *Parallel, step int) store {
	to := a.store
	switch {
	case a.out != nil:
		to.disk = a.out
	case p.fence() != nil:
		to.disk = a.guard(p, step)
	}
	return to
}

// guard is before the store, of a worker that others may go on without.
func (a *archive) guard(p *Parallel, step int) *guard {
	return &guard{disk: a.store.disk, of: p, dir: a.store.dir, step: step}
}

// outlived is an error if this worker is out and others go on: then there is nothing to rescue.
func (a *archive) outlived(p *Parallel, step int) error {
	if p.fence() == nil {
		return nil
	}
	a.out = a.guard(p, step)
	return a.out.pass("", true)
}

// saving is when the run saves, where time says so and not the number of steps.
type saving struct {
	ended time.Time     // of the last checkpoint, or when training began
	took  time.Duration // that checkpoint; 0: there is none
}

// wants reports whether it is time for a checkpoint, given for how long to train before the next.
func (s *saving) wants(after func(took time.Duration) time.Duration) bool {
	if s.ended.IsZero() {
		s.ended = time.Now()
	}
	return time.Since(s.ended) >= after(s.took)
}

package train

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/tensor"
)

// occupy occupies the directory that this run saves to, if it does that. One that comes to others
// at work finds out with them.
func (r *run) occupy() (err error) {
	comes := r.Parallel != nil && r.Parallel.Enter != nil
	if r.Save != "" && r.leads() && !comes && r.archive.place == nil {
		r.archive.place, err = occupy(r.Save)
	}
	return err
}

// wants reports whether it is time for a checkpoint: worker 0 says so for all.
func (r *run) wants() bool {
	return r.SaveAfter != nil && r.leads() && r.archive.saving.wants(r.SaveAfter)
}

// saves reports whether a checkpoint is due after a step.
func (r *run) saves() bool {
	if r.Parallel == nil {
		return due(r.course.done, r.SaveEvery) || r.wants()
	}
	return due(r.course.done, r.SaveEvery) || r.team.save
}

// holding is what this worker has.
func (r *run) holding() holding {
	return holding{r.session, r.Parallel, gomem.Computes(r.Session.Device)}
}

// keep saves after a step that a checkpoint is due after.
func (r *run) keep(ctx context.Context) error {
	began := time.Now()
	if err := r.settle(ctx); err != nil {
		return err
	}
	err := r.saveAll(ctx, r.archive.saved != r.course.done)
	r.archive.saving = saving{ended: time.Now(), took: max(time.Since(began), 1)}
	r.team.save = false
	return err
}

// saveAll saves what all workers have, if worker 0 has to save.
func (r *run) saveAll(ctx context.Context, due bool) error {
	if !r.Parallel.jointly() {
		if r.leads() && due {
			return r.save(nil)
		}
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	says, err := r.Parallel.agree(ctx, []byte{flag(r.leads() && due)})
	if err != nil || !slices.Equal(says[0], []byte{1}) {
		return err
	}
	var own []foreign
	if r.Parallel.differs() {
		if own, err = r.holding().collect(ctx); err != nil {
			return err
		}
	}
	if err := r.saveOrGive(ctx, own); err != nil || !r.Parallel.meshed() {
		return err
	}
	_, err = r.Parallel.agree(ctx, nil)
	return err
}

// saveOrGive saves, if this is worker 0, and gives it what it asks for, if not: what it
// lacks of divided variables, and then what is the others' own.
func (r *run) saveOrGive(ctx context.Context, own []foreign) error {
	if r.leads() {
		return r.save(own)
	}
	for _, x := range append(r.holding().lacking(), own...) {
		if _, err := r.holding().fetch(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// save writes a checkpoint, if it can: a disk that is full does not end a run, which has what was
// saved before. It is tried again when the next one is due, and at the end, when it must succeed.
func (r *run) save(others []foreign) error {
	warning, err := r.archive.endure(r.write(others))
	r.warn(warning)
	return err
}

// write writes a checkpoint, and what other workers have otherwise, which then all take part in.
func (r *run) write(others []foreign) error {
	if err := r.records.to.sync(); err != nil {
		r.warn(fmt.Sprintf("metrics in %s: %v", r.Metrics, bare(err)))
	}
	fetch := func(x foreign) (tensor.View, error) {
		t, err := r.holding().fetch(context.Background(), x)
		if err != nil {
			err = &lostError{err}
		}
		return t, err
	}
	if r.archive.place == nil { // who led before may have had it until now
		_ = r.occupy()
	}
	from := source{r.session, others, fetch, r.base.of(r.Model)}
	s := r.archive.guarded(r.Parallel, r.course.done)
	shared := &joint{disk: s.disk}
	if r.Parallel.jointly() {
		s.disk = shared
	}
	path, err := s.save(r.checkpoint(), from)
	if err != nil && r.Parallel.jointly() && !shared.begun { // the others give what they have
		_ = writeVariables(&tolerant{}, r.checkpoint(), from)
	}
	if err != nil {
		return r.diverged(err)
	}
	r.archive.saved, r.archive.good = r.course.done, path
	r.emit(Event{Kind: Save, Path: path})
	return nil
}

// checkpoint describes the run as it stands.
func (r *run) checkpoint() Checkpoint {
	executions := r.course.executions()
	if executions == r.course.done*r.course.perStep {
		executions = 0
	}
	c := Checkpoint{
		Model: r.Name, Size: r.Size, Config: r.Config, Labels: r.Labels,
		Step: r.course.done, Seed: r.Seed, Tokenizer: r.vocabulary, Machine: r.Machine,
		Best: r.watch.state(), Classes: r.Classes, Workers: r.workers(),
		Executions: executions, Base: r.base, Evaluated: r.assessed,
	}
	if f := r.Parallel.fence(); f != nil {
		c.Job, c.Epoch = f.Term()
	}
	return c
}

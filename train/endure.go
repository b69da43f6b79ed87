package train

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gomem/gomem/graph/tensor"
)

// save writes a checkpoint, if it can: a disk that is full does not end a run, which has what was
// saved before. It is tried again when the next one is due, and at the end, when it must succeed.
func (r *run) save(others []foreign) error {
	warning, err := r.endure(r.write(others))
	r.warn(warning)
	return err
}

// write writes a checkpoint, and what other workers have otherwise, which then all take part in.
func (r *run) write(others []foreign) error {
	if err := r.recorder.sync(); err != nil {
		r.warn(fmt.Sprintf("metrics in %s: %v", r.Metrics, bare(err)))
	}
	fetch := func(x foreign) (tensor.View, error) {
		t, err := r.holding().fetch(context.Background(), x)
		if err != nil {
			err = &lostError{err}
		}
		return t, err
	}
	if r.place == nil { // who led before may have had it until now
		_ = r.occupy()
	}
	from, s := source{r.session, others, fetch}, r.guarded(r.Parallel, r.done)
	shared := &joint{disk: s.disk}
	if r.jointly() {
		s.disk = shared
	}
	path, err := s.save(r.checkpoint(), from)
	if err != nil && r.jointly() && !shared.begun { // the others give what they have nevertheless
		_ = writeVariables(&tolerant{}, r.checkpoint(), from)
	}
	if err != nil {
		return r.diverged(err)
	}
	r.saved, r.good = r.done, path
	r.emit(Event{Kind: Save, Path: path})
	return nil
}

// lostError is of what another worker did not give, which is not the disk's fault.
type lostError struct{ error }

// Unwrap is the reason.
func (e *lostError) Unwrap() error { return e.error }

// joint is a disk for what all workers write together: whoever gives what it has must not wait
// for one whose disk is full. So files take what they cannot keep, and say so at their end.
type joint struct {
	disk
	begun bool // the first file's content is asked for
}

// Create makes a file that does not fail before its end.
func (d *joint) Create(name string) (file, error) {
	d.begun = true
	f, err := d.disk.Create(name)
	return &tolerant{f, err}, nil
}

// tolerant is a file that keeps its first error to its end. Without a file it keeps nothing.
type tolerant struct {
	file
	err error
}

func (f *tolerant) Write(b []byte) (int, error) {
	if f.file != nil && f.err == nil {
		_, f.err = f.file.Write(b)
	}
	return len(b), nil
}

func (f *tolerant) WriteAt(b []byte, at int64) (int, error) {
	if f.file != nil && f.err == nil {
		_, f.err = f.file.WriteAt(b, at)
	}
	return len(b), nil
}

// Sync is the first error, or the file's.
func (f *tolerant) Sync() error {
	if f.file != nil && f.err == nil {
		f.err = f.file.Sync()
	}
	return f.err
}

// Close is the first error, or the file's.
func (f *tolerant) Close() error {
	if f.file == nil {
		return f.err
	}
	return cmp.Or(f.err, f.file.Close())
}

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/train"
)

// worker is this process as one of the workers of a job; the zero value trains alone.
type worker struct {
	member   *workers.Member // nil: it is alone, or not among the others yet
	standing *standing       // where it is when something is logged
	log      func(string)    // what it says whatever it shows
	saves    location        // where the first worker does, of one that does not
	heir     bool            // all workers before this one are gone without a word
	launched bool            // by this program, with all other workers, on this machine
	follows  bool            // the first worker of these
}

// unsaid is the end of a worker that another one says the reason of, where both have one
// launcher, which shows what all say: another one has failed, or is gone, which the first of those
// who are left says, or this one is ended before it has met the others. Where this one adds how to
// go on, it says so.
func (w *worker) unsaid(ctx context.Context, at World, err error) error {
	left, _ := errors.AsType[*workers.LeftError](err)
	switch {
	case !at.Launched || err == nil:
		return err
	case left != nil && err.Error() == left.Error() &&
		(left.Err == nil && left.Why != "" || left.Err != nil && at.Rank > 0 && !w.heir):
		return &launchedError{exitFailure}
	case at.Rank > 0 && w.member == nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		return &launchedError{exitSignal(ctx)}
	}
	return err
}

// leads reports whether this process shows the run and saves it.
func (w *worker) leads() bool {
	if w.member == nil {
		return !w.follows
	}
	return w.member.Rank() == 0
}

// shares reports whether the first worker can read for all: they are on one machine.
func (w *worker) shares() bool { return w.launched && w.member != nil }

// about says who trains, nothing if it is one: how they keep in step, unless they are a mesh, and
// how much of the host they exchange by.
func (w *worker) about(mesh string, bytes int64) string {
	if w.member == nil {
		return ""
	}
	about := w.member.About()
	if mesh != "" {
		about = "a mesh, " + mesh
	}
	text := fmt.Sprintf("%d, %s", w.member.Size(), about)
	if bytes > 0 {
		text += fmt.Sprintf("; up to %s of the host is for that", size(bytes))
	}
	return text
}

// enter begins to keep where this worker is, for all that it logs.
func (w *worker) enter(e *env, at World, job string) *slog.Logger {
	w.standing = &standing{}
	e.log = w.standing.of(e.log, cmp.Or(at.Job, job), at.Rank)
	return e.log
}

// join makes this a member of the job, of which all that it logs says where it is.
func (w *worker) join(as func() (*workers.Member, error)) (err error) {
	if w.member, err = as(); err == nil {
		w.standing.member.Store(w.member)
	}
	return err
}

// samples are a worker's metrics.
func (w *worker) samples(job *Job) func() []Sample {
	return func() []Sample {
		all := append(exchanges(w.member.Exchanged()), Sample{"gomem_stalls_total",
			"Reports of a wait for other workers that goes on.", true, float64(w.member.Stalls())})
		if job.Counts != nil {
			all = append(all, job.Counts()...)
		}
		return all
	}
}

// inherits is where the first worker has saved, or else has gone on from, and after which step, if
// it is gone and this is the one to say so.
func (w *worker) inherits(resumed location) (dir location, step int) {
	if w.heir = w.member.Succeeds(); !w.heir {
		return "", 0
	}
	last, err := train.Inspect(string(cmp.Or(w.saves, resumed)))
	if err != nil { // it has saved nothing, or elsewhere
		return "", 0
	}
	return location(filepath.Dir(last.Path)), last.Step
}

// machines is how many machines may fail: each worker counts as one.
func (w *worker) machines() int {
	if w.member == nil {
		return 1
	}
	return w.member.Size()
}

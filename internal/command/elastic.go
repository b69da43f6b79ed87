package command

import (
	"cmp"
	"context"
	"time"

	"github.com/gomem/gomem/internal/workers"
)

// comes reports whether the workers of a job that begins with so many come and go, and how many
// there may be.
func (f meetFlags) comes(size int) (most int, comes bool) {
	most = int(cmp.Or(f.Max, count(size)))
	return most, f.Min > 0 && int(f.Min) < most
}

// elastic is how the workers of a job come and go, and what is said of that; nil if they do not.
func (f meetFlags) elastic(w World, job *Job, log func(string)) *workers.Elastic {
	most, comes := f.comes(w.Size)
	if !comes || job.Views == nil && job.Enter == nil {
		return nil
	}
	e := &workers.Elastic{Least: int(f.Min), Most: most, Views: job.Views, Open: job.Open,
		Renew: job.Renew, Expel: job.Expel, Wait: waitForOthers, Lease: time.Duration(f.Lease),
		Job: job.ID, Saved: job.Saved}
	if w.Launched { // by whom nobody else is
		e.Wait = 0
	}
	if job.Again != nil {
		e.Again, e.Within, e.Own = job.place(job.Again), waitForOthers, log
	}
	if !f.outlives() {
		e.Vital, e.Remedy = "the job's etcd", "begin again from a checkpoint with --resume, or "+
			"have etcd in three workers with --etcd 3, where any worker may be lost"
	}
	return e
}

// joined is this process as a worker of a job, now or when it is ready for it.
func joined(job *Job, s workers.Scheme, o workers.Options) (*workers.Member, error) {
	if job.Enter == nil {
		return workers.Join(job.View, job.Transport, s, o)
	}
	return workers.Coming(s, o, job.place(job.Enter))
}

// place is what this process has once it has joined by a function.
func (j *Job) place(join func(ctx context.Context) error) func(context.Context) (workers.Place,
	error) {
	return func(ctx context.Context) (workers.Place, error) {
		err := join(ctx)
		return workers.Place{View: j.View, Transport: j.Transport, Alive: j.Alive,
			Views: j.Views}, err
	}
}

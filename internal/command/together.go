package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/train"
)

// abreast trains on several devices of this process: as many workers as there are devices, who do
// what workers in processes of their own do, and come to the same bits. They exchange over a
// network in memory. Each has the plan of its device, and its budgets.
func (c *trainCmd) abreast(ctx context.Context, e *env, devices []string) error {
	if e.extras.Cluster != nil {
		return usagef("--device %s is for one process: want gomem train, or here --local %d "+
			"--device %s", c.Device, len(devices), gomem.CUDA)
	}
	if err := elsewhere(e, c.meetFlags.given(), c.keepFlags.given(),
		[]option{{"metrics", c.counters() != ""}}); err != nil {
		return err
	}
	if _, err := c.meshed(len(devices), c.unmeshed()...); err != nil {
		return err
	}
	own := *c
	own.Device, own.size, own.fleet = devices[0], len(devices), newFleet(devices)
	own.reach = own.fleet.peers != nil
	if own.Threads == 0 {
		own.Threads = threads(max(1, runtime.GOMAXPROCS(0)/len(devices)))
	}
	if err := cmp.Or(own.check(), present(devices)); err != nil {
		return err
	}
	return own.fleet.run(func(rank int, meet joins) error {
		worker, its := own, *e
		worker.Device = devices[rank]
		return worker.together(ctx, &its, World{Rank: rank, Size: len(devices), Local: rank,
			Launched: true}, meet)
	})
}

// joins has this process, or one of its devices, meet the other workers of a job.
type joins func(ctx context.Context, say func(string), log *slog.Logger) (*Job, error)

// together trains as one worker of several, who meet by a function. The first one shows the run and
// saves it; the others say nothing but why they fail.
func (c *trainCmd) together(ctx context.Context, e *env, w World, meet joins) (err error) {
	scheme, err := c.scheme(c.Model, c.meetFlags)
	if err != nil {
		return err
	}
	spec, err := c.meshed(w.Size, c.unmeshed()...)
	if err != nil {
		return err
	}
	c.size, c.rank = w.Size, w.Rank
	if err := c.joining(w, c.meetFlags, c.Resume != ""); err != nil {
		return err
	}
	defer func() { err = c.worker.unsaid(ctx, w, err) }()
	log := func(text string) { fmt.Fprintf(e.stderr, "gomem: %s\n", text) }
	stderr := e.stderr // its own, whoever shows the run
	c.worker.log = func(text string) { fmt.Fprintf(stderr, "gomem: %s\n", text) }
	most, comes := c.comes(w.Size)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !comes { // who comes late, or goes early, neither reads for others nor has others read
		if err := c.early(ctx, e, w); err != nil {
			return err
		}
	}
	if c.reading != nil {
		defer func() { cancel(); <-c.reading.done }()
	}
	logger := c.worker.enter(e, w, c.Job)
	job, err := meet(ctx, log, logger)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, job.Leave()) }()
	o := workers.Options{Log: log, Logger: logger, Alive: job.Alive, Asked: ctx, Elect: job.Elect,
		Elastic: c.elastic(w, job, c.worker.log),
		Logging: workers.Logging{Dir: string(c.SVLog), Keep: int(c.SVLogKeep)}}
	if spec != nil {
		o.Mesh = collective.Mesh{Shape: spec.Mesh.Cluster, Names: spec.Mesh.Axes}
		o.Timeout = waitForOthers
		if c.fleet != nil {
			o.Peers = c.fleet.peers
		}
	}
	err = c.worker.join(func() (*workers.Member, error) { return joined(job, scheme, o) })
	if err != nil {
		return err
	}
	member := c.worker.member
	defer func() { err = cmp.Or(err, member.Close(err)) }()
	if member.Network() != nil && spec == nil {
		c.exchanging, c.factoring = most, member.Factoring()
	}
	c.pushed = member.Given()
	e = c.voice(e, o.Elastic != nil && c.outlives())
	if c.counters() != "" && (c.worker.leads() || !w.Launched) { // one an address
		stop, at, err := e.extras.Cluster.Serve(c.counters(), c.worker.samples(job))
		if err != nil {
			return fmt.Errorf("--metrics %s: %w", c.counters(), err)
		}
		defer stop()
		log("metrics at " + at)
	}
	return c.alone(ctx, e)
}

// unmeshed are the flags that the processes of a mesh can't be used together with.
func (c *trainCmd) unmeshed() []option {
	return append(c.keepFlags.given(), option{"min", c.Min > 0}, option{"max", c.Max > 0},
		option{"profile", c.Profile != ""})
}

// early has the first worker of those that this program has started begin to read, for all,
// while they meet.
func (c *trainCmd) early(ctx context.Context, e *env, w World) error {
	c.worker.launched, c.worker.follows = w.Launched, w.Launched && w.Rank > 0
	k, err := kindOf(c.Model)
	if err != nil || !c.worker.launched || c.worker.follows || k.words == nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	own := *c
	c.reading = begin(func() (*trainCmd, error) { return &own, k.read(ctx, e.stderr, &own) })
	return nil
}

// waitForOthers is how long fewer workers than --min wait for others to come, one that was cut off
// to be let in again, and the processes of a mesh, who all do the same, for one that is connected
// and says nothing.
const waitForOthers = time.Minute

// voice is the environment of a worker: only the first shows the run and saves it. Where
// another one may be the first later, since etcd does not end with this one, each says from
// then on what the first does.
func (c *trainCmd) voice(e *env, succeeds bool) *env {
	if c.worker.leads() {
		return e
	}
	c.worker.saves = c.Save
	c.Save, c.Samples, c.Trace, c.Profile = "", "", "", ""
	if !succeeds {
		return e.quiet()
	}
	c.Save = c.worker.saves
	q := *e
	q.stdout, q.stderr = &heir{e.stdout, c.worker.leads}, &heir{e.stderr, c.worker.leads}
	return &q
}

// heir writes from when its worker is the first.
type heir struct {
	w     io.Writer
	leads func() bool
}

// Write writes, or forgets.
func (h *heir) Write(b []byte) (int, error) {
	if !h.leads() {
		return len(b), nil
	}
	return h.w.Write(b)
}

// remembering adds to the failure of a run how to go on, where that may help: it may be that
// of another of several workers, or a GPU's.
func (c *trainCmd) remembering(err error, s train.Summary, e *env) error {
	if _, replaced := errors.AsType[*train.ErrReplaced](err); replaced { // others go on
		return err
	}
	err = onGPU(err)
	dir, step := c.Save, s.SavedStep
	switch {
	case c.worker.member == nil && !failedOnGPU(c.Device, err):
		return err
	case !c.worker.leads():
		dir, step = c.worker.inherits(c.Resume)
	case s.Checkpoint == "":
		return err
	}
	if dir == "" {
		return err
	}
	return &rememberedError{err, fmt.Sprintf("saved at step %d; continue with: %s", step,
		resumption(e, string(dir)))}
}

// rememberedError is the failure of a run that can go on, and how.
type rememberedError struct {
	error
	how string
}

// Error is one line.
func (e *rememberedError) Error() string { return e.error.Error() + "; " + e.how }

// Unwrap is the failure.
func (e *rememberedError) Unwrap() error { return e.error }

// cutShort is the end of a worker that is asked to end, and has lost others meanwhile: as of one
// that a signal has cut short, or in order if all that it has is saved.
func (c *trainCmd) cutShort(ctx context.Context, err error, s train.Summary, e *env) error {
	if ctx.Err() == nil || !workers.NoOwnFault(err) {
		return err
	}
	stopped := &stoppedError{fmt.Sprintf("stopped after step %d: %v", s.Steps, err)}
	if c.Save == "" || !c.worker.leads() || s.Checkpoint == "" || s.SavedStep < s.Steps {
		return stopped
	}
	fmt.Fprintf(e.stderr, "gomem: %v\n", stopped)
	return nil
}

// blamed is an error as one line that names who is to blame, if that is another worker, or that
// this one is out: in which step of a plan that was noticed, or by which tensor of a checkpoint,
// says nothing of it.
func blamed(err error) error {
	if vital, ok := errors.AsType[*workers.VitalError](err); ok {
		return vital
	}
	if out, ok := errors.AsType[*workers.OutError](err); ok {
		return out
	}
	if replaced, ok := errors.AsType[*train.ErrReplaced](err); ok {
		return replaced
	}
	if left, ok := errors.AsType[*workers.LeftError](err); ok {
		return left
	}
	return err
}

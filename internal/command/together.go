package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/train"
)

// together trains as one worker of several. The first one shows the run and saves it; the
// others say nothing but why they fail.
func (c *trainCmd) together(ctx context.Context, e *env, w World) (err error) {
	scheme, err := c.scheme()
	if err != nil {
		return err
	}
	spec, err := c.meshed(w.Size)
	if err != nil {
		return err
	}
	c.size, c.rank = w.Size, w.Rank
	if err := c.newLog(w); err != nil {
		return err
	}
	defer func() { err = c.unsaid(ctx, w, err) }()
	log := func(text string) { fmt.Fprintf(e.stderr, "gomem: %s\n", text) }
	stderr := e.stderr // its own, whoever shows the run
	c.log = func(text string) { fmt.Fprintf(stderr, "gomem: %s\n", text) }
	most, comes := c.comes(w)
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
	logger := c.place(e, w)
	job, err := e.extras.Cluster.Join(ctx, c.flags(), w, log, logger)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, job.Leave()) }()
	o := workers.Options{Log: log, Logger: logger, Alive: job.Alive, Asked: ctx, Elect: job.Elect,
		Elastic: c.elastic(w, job),
		Logging: workers.Logging{Dir: string(c.SVLog), Keep: int(c.SVLogKeep)}}
	if spec != nil {
		o.Mesh = collective.Mesh{Shape: spec.Mesh.Cluster, Names: spec.Mesh.Axes}
		o.Timeout = waitForOthers
	}
	if c.member, err = joined(job, scheme, o); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, c.member.Close(err)) }()
	c.standing.member.Store(c.member)
	if c.member.Network() != nil && spec == nil {
		c.exchanging, c.factoring = most, c.member.Factoring()
	}
	c.pushed = c.member.Given()
	e = c.voice(e, o.Elastic != nil && c.outlives())
	if c.counters() != "" && (c.leads() || !w.Launched) { // one an address
		stop, at, err := e.extras.Cluster.Serve(c.counters(), c.samples(job))
		if err != nil {
			return fmt.Errorf("--metrics %s: %w", c.counters(), err)
		}
		defer stop()
		log("metrics at " + at)
	}
	return c.alone(ctx, e)
}

// unsaid is the end of a worker that another one says the reason of, where both have one
// launcher, which shows what all say: another one has failed, or is gone, which the first of those
// who are left says, or this one is ended before it has met the others. Where this one adds how to
// go on, it says so.
func (c *trainCmd) unsaid(ctx context.Context, w World, err error) error {
	left, _ := errors.AsType[*workers.LeftError](err)
	switch {
	case !w.Launched || err == nil:
		return err
	case left != nil && err.Error() == left.Error() &&
		(left.Err == nil && left.Why != "" || left.Err != nil && w.Rank > 0 && !c.heir):
		return &launchedError{exitFailure}
	case w.Rank > 0 && c.member == nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		return &launchedError{exitSignal(ctx)}
	}
	return err
}

// comes reports whether workers come and go, and how many there may be.
func (c *trainCmd) comes(w World) (most int, comes bool) {
	most = int(cmp.Or(c.Max, count(w.Size)))
	return most, c.Min > 0 && int(c.Min) < most
}

// elastic is how the workers of a job come and go; nil if they do not.
func (c *trainCmd) elastic(w World, job *Job) *workers.Elastic {
	most, comes := c.comes(w)
	if !comes || job.Views == nil && job.Enter == nil {
		return nil
	}
	e := &workers.Elastic{Least: int(c.Min), Most: most, Views: job.Views, Open: job.Open,
		Renew: job.Renew, Expel: job.Expel, Wait: waitForOthers, Lease: time.Duration(c.Lease),
		Job: job.ID, Saved: job.Saved}
	if w.Launched { // by whom nobody else is
		e.Wait = 0
	}
	if job.Again != nil {
		e.Again, e.Within, e.Own = job.place(job.Again), waitForOthers, c.log
	}
	if !c.outlives() {
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

// early has the first worker of those that this program has started begin to read, for all,
// while they meet.
func (c *trainCmd) early(ctx context.Context, e *env, w World) error {
	c.launched, c.follows = w.Launched, w.Launched && w.Rank > 0
	k, err := kindOf(c.Model)
	if err != nil || !c.launched || c.follows || k.words == nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	own := *c
	c.reading = begin(func() (*trainCmd, error) { return &own, k.read(ctx, e.stderr, &own) })
	return nil
}

// heed makes this a worker that shows and saves nothing.
func (c *trainCmd) heed() { c.Save, c.Samples, c.Trace, c.Profile = "", "", "", "" }

// waitForOthers is how long fewer workers than --min wait for others to come, one that was cut off
// to be let in again, and the processes of a mesh, who all do the same, for one that is connected
// and says nothing.
const waitForOthers = time.Minute

// voice is the environment of a worker: only the first shows the run and saves it. Where
// another one may be the first later, since etcd does not end with this one, each says from
// then on what the first does.
func (c *trainCmd) voice(e *env, succeeds bool) *env {
	if c.leads() {
		return e
	}
	c.saves = c.Save
	if c.heed(); !succeeds {
		return e.quiet()
	}
	c.Save = c.saves
	q := *e
	q.stdout, q.stderr = &heir{e.stdout, c.leads}, &heir{e.stderr, c.leads}
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

// leads reports whether this process shows the run and saves it.
func (c *trainCmd) leads() bool {
	if c.member == nil {
		return !c.follows
	}
	return c.member.Rank() == 0
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
	case c.member == nil && !failedOnGPU(c.Device, err):
		return err
	case !c.leads():
		dir, step = c.inherited()
	case s.Checkpoint == "":
		return err
	}
	if dir == "" {
		return err
	}
	return fmt.Errorf("%w; saved at step %d; continue with: %s", err, step,
		resumption(e, string(dir)))
}

// cutShort is the end of a worker that is asked to end, and has lost others meanwhile: as of one
// that a signal has cut short, or in order if all that it has is saved.
func (c *trainCmd) cutShort(ctx context.Context, err error, s train.Summary, e *env) error {
	if ctx.Err() == nil || !workers.NoOwnFault(err) {
		return err
	}
	stopped := &stoppedError{fmt.Sprintf("stopped after step %d: %v", s.Steps, err)}
	if c.Save == "" || !c.leads() || s.Checkpoint == "" || s.SavedStep < s.Steps {
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

// inherited is where the first worker has saved, and after which step, if it is gone and this
// is the one to say so.
func (c *trainCmd) inherited() (dir location, step int) {
	if c.heir = c.member.Succeeds(); !c.heir {
		return "", 0
	}
	last, err := train.Inspect(string(cmp.Or(c.saves, c.Resume)))
	if err != nil { // it has saved nothing, or elsewhere
		return "", 0
	}
	return location(filepath.Dir(last.Path)), last.Step
}

// scheme is how workers keep in step.
func (c *trainCmd) scheme() (workers.Scheme, error) {
	o := workers.SchemeOptions{Bandwidth: float64(c.Bandwidth), Order: c.Order, Rule: c.Rule,
		Filter: c.Filter, Every: int(c.Average), Multicast: int(c.Multicast),
		Receivers: c.Receivers, Select: int(c.Select), Delay: int(c.Delay)}
	if c.Aggregators != nil {
		n := int(*c.Aggregators)
		o.Aggregators = &n
	}
	o.Replicas, o.Divergence = int(c.Replicas), c.Divergence
	if c.Staleness != nil {
		n := int(*c.Staleness)
		o.Staleness = &n
	}
	var err error
	if o.Tiers, err = c.tiers(); err != nil {
		return workers.Scheme{}, err
	}
	s, err := workers.ParseScheme(cmp.Or(c.Sync, "ring"), o)
	if err != nil {
		return s, usagef("%w", err)
	}
	if s.Plan != nil && s.Plan.Gradients() && !slices.Contains(shallow, c.Model) {
		return s, usagef("--rule %s is for gradients, which mlr and mf send: --model %s sends "+
			"what its own optimizer has made of them", c.Rule, c.Model)
	}
	if c.Rotate > 0 && !slices.Contains(shallow, c.Model) {
		return s, usagef("--rotate-every does nothing for --model %s: its workers draw from all "+
			"data", c.Model)
	}
	if c.Replicas > 0 && slices.Contains(shallow, c.Model) {
		return s, usagef("--replicas does nothing for --model %s: when a worker is lost, the "+
			"epoch under way is done again", c.Model)
	}
	return s, c.logs(s)
}

// tiers are where the workers are, by a file that names all of them; nil if there is none.
func (c *trainCmd) tiers() (t distrib.Tiers, err error) {
	if c.Topology == "" {
		return nil, nil
	}
	f, _, err := data.OpenFile(string(c.Topology))
	if err == nil {
		defer f.Close()
		var in io.Reader
		if in, err = data.Unmarked(f); err == nil {
			t, err = distrib.ParseTiers(in)
		}
	}
	if err != nil {
		return nil, usagef("--topology %s: %w", c.Topology, err)
	}
	for i := range max(c.Local, c.Workers, c.Max) {
		if t[distrib.NodeID(i)] == "" {
			return nil, usagef("--topology %s: worker %d is not in it: each needs a line such as "+
				"'%d rack1'", c.Topology, i, i)
		}
	}
	return t, nil
}

// workersFact says who trains, nothing if it is one.
func (c *trainCmd) workersFact(bytes int64) string {
	if c.member == nil {
		return ""
	}
	about := c.member.About()
	if c.Mesh != "" && c.exchanging == 0 && c.member.Network() != nil {
		about = "a mesh, " + c.Mesh
	}
	text := fmt.Sprintf("%d, %s", c.member.Size(), about)
	if bytes > 0 {
		text += fmt.Sprintf("; up to %s of the host is for that", size(bytes))
	}
	return text
}

// place begins to keep where this worker is, for all that it logs.
func (c *trainCmd) place(e *env, w World) *slog.Logger {
	c.standing = &standing{}
	e.log = c.standing.of(e.log, cmp.Or(w.Job, c.Job), w.Rank)
	return e.log
}

// traffic is what the workers of a job exchange as it goes.
type traffic struct {
	last, now train.Exchanged
	step      time.Duration
}

// add enters what has been exchanged after a step.
func (t *traffic) add(x train.Exchanged, step time.Duration) {
	t.last, t.now, t.step = t.now, x, step
}

// facts are where the workers are, and what they exchange, in words.
func (t *traffic) facts() []string {
	rate := func(now, last int64) string {
		return size(int64(float64(now-last)/max(t.step.Seconds(), 1e-9))) + "/s"
	}
	facts := []string{fmt.Sprintf("clocks %d-%d", t.now.Slowest, t.now.Fastest),
		"up " + rate(t.now.Sent, t.last.Sent), "down " + rate(t.now.Received, t.last.Received)}
	if t.now.Slowest == t.now.Fastest {
		facts = facts[1:]
	}
	if t.now.Staleness > 0 {
		facts = append(facts, fmt.Sprintf("stale %d", t.now.Staleness))
	}
	if t.now.Saved > 0 {
		facts = append(facts, "saved "+size(t.now.Saved))
	}
	if t.now.Full > t.last.Full {
		facts = append(facts, "outbox full")
	}
	return facts
}

// samples are a worker's metrics.
func (c *trainCmd) samples(job *Job) func() []Sample {
	return func() []Sample {
		all := append(exchanges(c.member.Exchanged()), Sample{"gomem_stalls_total",
			"Reports of a wait for other workers that goes on.", true, float64(c.member.Stalls())})
		if job.Counts != nil {
			all = append(all, job.Counts()...)
		}
		return all
	}
}

// exchanges are the metrics of what a worker exchanges.
func exchanges(x train.Exchanged) []Sample {
	return []Sample{
		{"gomem_sent_bytes_total", "Bytes sent to other workers.", true, float64(x.Sent)},
		{"gomem_received_bytes_total", "Bytes received from other workers.", true,
			float64(x.Received)},
		{"gomem_filtered_bytes_total", "Bytes that were not sent.", true, float64(x.Saved)},
		{"gomem_outbox_full_total", "How often an outbox was at its bound.", true,
			float64(x.Full)},
		{"gomem_late_updates_total", "Updates that were discarded, since they came late.", true,
			float64(x.Late)},
		{"gomem_summed_updates_total", "Updates that were added to others' on their way.", true,
			float64(x.Summed)},
		{"gomem_replica_lacked_updates", "Updates that a replica lacked, at most so far.", false,
			float64(x.Lacked)},
		{"gomem_resent_updates_total", "Updates sent again to who took rows over.", true,
			float64(x.Resent)},
		{"gomem_staleness_steps", "Steps missing of another worker, the most seen.", false,
			float64(x.Staleness)},
		{"gomem_ahead_steps", "Steps ahead of the slowest worker.", false, float64(-x.Slowest)},
		{"gomem_behind_steps", "Steps behind the fastest worker.", false, float64(x.Fastest)},
		{"gomem_network_memory_bytes", "Host memory for exchanging, at most so far.", false,
			float64(x.Memory)},
	}
}

// exchanged is what workers have exchanged, in words; nothing of a run alone.
func exchanged(x *train.Exchanged) string {
	if x == nil {
		return ""
	}
	text := fmt.Sprintf("sent %s, received %s", size(x.Sent), size(x.Received))
	if x.Saved > 0 {
		text += fmt.Sprintf("; %s not sent (%.0f%%)", size(x.Saved),
			100*float64(x.Saved)/float64(x.Saved+x.Sent))
	}
	if x.Staleness > 0 {
		text += fmt.Sprintf("; %d steps apart at most", x.Staleness)
	}
	if x.Memory > 0 {
		text += fmt.Sprintf("; memory %s", size(x.Memory))
	}
	if x.Bound > 0 {
		text += fmt.Sprintf(" of at most %s", size(x.Bound))
	}
	if x.Summed > 0 {
		text += fmt.Sprintf("; %d updates added up on their way", x.Summed)
	}
	if x.Lacked > 0 {
		text += fmt.Sprintf("; replicas lacked %d updates at most", x.Lacked)
	}
	if x.Resent > 0 {
		text += fmt.Sprintf("; %d updates sent again to replicas", x.Resent)
	}
	if x.Late > 0 {
		text += fmt.Sprintf("; %d updates too late", x.Late)
	}
	if x.Full > 0 {
		text += fmt.Sprintf("; outboxes full %d times", x.Full)
	}
	return text
}

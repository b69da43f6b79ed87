package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/nn"
)

// run is a run in progress.
type run struct {
	Options
	session  *gomem.Session
	archive  archive
	course   course
	torn     bool  // the variables are between two steps
	copies   int64 // bytes copied in a training step, both ways
	times    []time.Duration
	units    int
	summary  Summary
	watch    vigil
	team     team
	records  records
	ran      bool // it has been in a group of workers
	away     bool // it was out of that, and comes again
	broken   int  // groups that broke before they had trained a step
	rated    int  // the step of the last evaluation that all workers have taken part in
	assessed int  // the step of the last one whose result this one has

	base       *Base  // of its checkpoints
	vocabulary string // of the tokenizer, as text
}

// newRun is a run that has not begun.
func newRun(o Options) *run {
	r := &run{Options: o}
	r.course.o = &r.Options
	return r
}

// Run trains a model as the options say. When ctx is done, the step that is
// running is finished and saved, and the summary says so; that is no error.
// An option that no run can have gives an *[ErrOption], diverging an
// *[ErrNonFinite], a checkpoint that cannot be read, does not fit or cannot be
// written an *[ErrCheckpoint], a budget that cannot be met a
// *gomem.ErrOutOfMemory. After an error the summary is of the steps before it.
func Run(ctx context.Context, o Options) (Summary, error) {
	if ctx == nil {
		return Summary{}, optionf("context", "it is nil")
	}
	if !o.leads() && o.elastic() == nil {
		o.Save, o.Metrics = "", ""
	}
	if err := o.Validate(); err != nil {
		return Summary{}, o.leave(err)
	}
	o.Machine = cmp.Or(o.Machine, machine(o.Session.Device))
	if p := o.Session.Precision; !p.Plain() {
		config := map[string]string{"precision": string(p)}
		maps.Copy(config, o.Config)
		o.Config = config
	}
	r := newRun(o)
	r.course.perStep, r.course.exact = o.Model.Executions(), o.Epochs > 0 && o.masks()
	r.watch = vigil{Patience: o.Patience, keeps: o.KeepBest}
	r.archive.store = store{dir: o.Save, keep: orDefault(o.Keep, 2), disk: osDisk{}}
	if o.Parallel != nil {
		r.summary.Workers = o.Parallel.Workers
	}
	defer func() {
		r.archive.place.leave()
		r.records.close()
	}()
	err := r.occupy()
	if err == nil {
		err = r.start(ctx)
	}
	if err != nil {
		return Summary{}, r.leave(err)
	}
	err = r.complete(ctx)
	err = r.rescue(err)
	r.account(err)
	if err != nil {
		_ = r.leave(err)
	}
	if err == nil && ctx.Err() == nil && !r.team.leaving && o.After != nil {
		err = o.After(ctx, r.session)
	}
	err = r.leave(cmp.Or(err, r.session.Close()))
	end := Event{Kind: End}
	if err == nil {
		end.Summary = &r.summary
	}
	r.emit(end)
	return r.summary, err
}

// rescue saves a run that ends with an error which is not its variables' fault:
// data that cannot be read, or an evaluation's output that cannot be written. Not
// where processes have parts of variables: that takes all of them; nor where others go on without
// this worker. It returns the error.
func (r *run) rescue(err error) error {
	_, diverged := errors.AsType[*ErrNonFinite](err)
	_, unsaved := errors.AsType[*ErrCheckpoint](err)
	_, replaced := errors.AsType[*ErrReplaced](err)
	if err == nil || diverged || unsaved || replaced || r.Save == "" || !r.leads() ||
		r.course.done == 0 {
		return err
	}
	if gone := r.archive.outlived(r.Parallel, r.course.done); gone != nil {
		return fmt.Errorf("%w; %w", err, gone)
	}
	if r.torn || r.archive.current(r.course.done) || divided(r.session) {
		return err
	}
	if failed := r.write(nil); failed != nil {
		return fmt.Errorf("%w; and then %w", err, failed)
	}
	return err
}

// machine names what the bits of a device depend on: of a GPU also which it is, and the
// libraries of products and convolutions.
func machine(device string) string {
	on := cmp.Or(device, gomem.CPU)
	if g, err := gomem.FindGPU(device); err == nil {
		on = fmt.Sprintf("%s %s, %s, %s,", gomem.CUDA, g.Name, g.Products, g.Convolutions)
	}
	return on + " " + kernel.InstructionSet()
}

// start makes the session and its variables. What is wrong with a checkpoint is
// found before memory is taken.
func (r *run) start(ctx context.Context) error {
	var err error
	if r.vocabulary, err = vocabulary(r.Tokenizer); err != nil {
		return err
	}
	from, err := r.resumption()
	if err != nil {
		return err
	}
	if from != nil {
		defer from.close()
		r.team.begins.from = from
	}
	if err := r.open(ctx, from != nil); err != nil {
		return err
	}
	if from != nil {
		if err := r.restore(from); err != nil {
			return cmp.Or(err, r.session.Close())
		}
	}
	for _, o := range r.Model.Objectives {
		traffic := r.session.Plan(o.Name).Traffic()
		r.copies += int64(o.Times) * (traffic.In() + traffic.Out())
	}
	if err := r.record(); err != nil {
		return cmp.Or(err, r.session.Close())
	}
	if err := r.begin(); err != nil {
		return cmp.Or(err, r.session.Close())
	}
	if from != nil {
		r.warn(from.elsewhere(r.Machine))
	}
	if err := r.assemble(ctx); err != nil {
		return cmp.Or(err, r.session.Close())
	}
	r.team.begins = beginning{}
	return nil
}

// begin takes initial values, if there are any, and says that the run has started: what
// cannot be taken is refused before anything is shown.
func (r *run) begin() error {
	show := r.Observe
	var taken []Event
	if r.Resume == "" {
		r.Observe = func(e Event) { taken = append(taken, e) }
		err := r.warm()
		if r.Observe = show; err != nil {
			return err
		}
	}
	r.emit(Event{Kind: Start, Path: r.archive.good})
	for _, e := range taken {
		r.emit(e)
	}
	return nil
}

// warm takes the values that the model brings, and then those that Options.Init has, of which it
// says what was taken.
func (r *run) warm() error {
	if r.Model.Values != nil && gomem.Computes(r.Session.Device) {
		if err := r.Model.Values(r.session.Variables(), r.session.Set); err != nil {
			return err
		}
	}
	if r.Init == "" {
		return nil
	}
	parts, e, err := initial{r.Init, r.Rename}.into(r.session, r.Model.Graph)
	if err != nil {
		return err
	}
	r.team.begins.init, r.team.begins.warm = r.Init, parts
	r.emit(e)
	r.base, err = baseOf(r.Options)
	return err
}

// resumption opens the checkpoint to resume from, nil if there is none.
func (r *run) resumption() (*opened, error) {
	if r.Resume == "" {
		return nil, nil
	}
	from, err := open(r.Resume)
	if err != nil {
		return nil, err
	}
	if err := from.matches(r.checkpoint(), r.Model.Graph); err != nil {
		from.close()
		return nil, err
	}
	r.course.goOn(from.Checkpoint)
	if from.Step >= r.course.total() {
		from.close()
		return nil, from.fail("is at step %d already, the run is to reach %d: ask for more steps",
			from.Step, r.course.total())
	}
	return from, nil
}

// open makes the session, of plans that are made once. Initial values are drawn
// once, and not at all where a checkpoint has the values.
func (r *run) open(ctx context.Context, resumed bool) error {
	planned := r.Planned
	if planned == nil {
		var err error
		if planned, err = gomem.Plan(ctx, r.Model.Graph, r.Session,
			Targets(r.Model)...); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	o := r.Session
	o.Seed, o.NoInitialize = r.Seed, resumed
	var err error
	r.session, err = gomem.Open(planned, o)
	return err
}

// restore gives the variables the values of a checkpoint.
func (r *run) restore(from *opened) error {
	r.course.done, r.rated, r.assessed = from.Step, from.Evaluated, from.Evaluated
	r.archive.saved, r.archive.good = from.Step, from.Path
	r.summary.ResumedFrom = from.Step
	r.base = from.Base
	r.watch.resume(from.Checkpoint)
	r.archive.store.spare = r.watch.step
	return from.restore(r.session)
}

// loop trains until all steps are done or ctx is.
func (r *run) loop(ctx context.Context) error {
	// the run that was resumed ended here, with its last, or a group broke
	if r.watch.behind(r.course.done, r.EvalEvery) || r.owes() {
		if err := r.assess(ctx); err != nil {
			return err
		}
	}
	for r.course.done < r.course.total() && !r.ending(ctx) {
		if err := r.train(ctx); err != nil {
			return err
		}
		if r.course.done < r.course.total() && due(r.course.done, r.EvalEvery) {
			if err := r.assess(ctx); err != nil {
				return err
			}
		}
		if r.saves() {
			if err := r.keep(ctx); err != nil {
				return err
			}
		}
		if leaves, err := r.change(ctx); leaves || err != nil {
			return err
		}
	}
	return nil
}

func due(step, every int) bool { return every > 0 && step%every == 0 }

// finish saves, and evaluates unless somebody is waiting for the end.
func (r *run) finish(ctx context.Context) error {
	if err := r.disband(ctx); err != nil {
		return err
	}
	r.summary.Interrupted = r.interrupted(ctx)
	due := r.leads() && r.Save != "" && r.course.done > 0 && !r.archive.current(r.course.done)
	if err := cmp.Or(r.saveAll(ctx, due), r.archive.unsaved); err != nil {
		return err
	}
	err := r.evaluate(ctx, true)
	if err != nil || !r.leads() || !gomem.Computes(r.Session.Device) {
		return err
	}
	r.summary.WeightsSHA256, err = weightsSHA256(r.session)
	return r.diverged(err)
}

// train is one step: every objective in turn. The step's loss is the first
// objective's; the others' losses are metrics with their names.
func (r *run) train(ctx context.Context) error {
	began := r.session.Clock()
	e := Event{Kind: Step, Metrics: map[string]float64{},
		LearningRate: float64(r.Model.Schedule.At(r.course.dealing().pace()))}
	if err := finite(r.course.done+1, "learning rate", []float64{e.LearningRate}, nil); err != nil {
		return since(r.archive.good, err)
	}
	at := moment{step: r.course.done, pace: r.course.dealing().pace()}
	for i, o := range r.Model.Objectives {
		values, units, err := r.turns(ctx, o, &at)
		if err != nil {
			return err
		}
		e.Units = units
		for k, m := range o.Metrics {
			e.Metrics[m.Name] = values[k+1]
		}
		if i == 0 {
			e.Loss = values[0]
		} else {
			e.Metrics[o.Name] = values[0]
		}
	}
	if r.Parallel != nil && r.Parallel.Between != nil {
		if err := r.Parallel.Between.Step(context.WithoutCancel(ctx), r.session); err != nil {
			return err
		}
	}
	e.StepTime = r.session.Clock() - began
	r.course.done++
	r.torn = false
	if r.Parallel != nil {
		if err := r.team.journal.mark(r.checkpoint, r.session); err != nil {
			return err
		}
		return r.report(ctx, e)
	}
	e.Step = r.course.done
	r.enter(e)
	return nil
}

// turns executes an objective as often as a step does. Loss, metrics and units are those
// of the last execution, or, where executions make an update together, of all of them:
// the means over units, and the sum.
func (r *run) turns(ctx context.Context, o nn.Objective,
	at *moment) (values []float64, units int, err error) {
	if r.course.dealing().idle() {
		return make([]float64, 1+len(o.Metrics)), 0, nil
	}
	for turn := range o.Times {
		batch, counts := r.course.dealing().batch(at.execution)
		now, n, err := r.execute(ctx, o, moment{step: at.step, pace: at.pace, execution: batch,
			turn: r.course.done*o.Times + turn, masked: !counts})
		if err != nil {
			return nil, 0, err
		}
		at.execution++
		if turn == 0 || o.Accumulate <= 1 {
			values, units = now, n
			continue
		}
		units += n
		meanWith(values, now, n, units)
	}
	return values, units, nil
}

// meanWith makes means over units those with further values, of so many units of so many in
// all.
func meanWith(means, values []float64, units, all int) {
	if units == 0 {
		return
	}
	for k, x := range values {
		means[k] += (x - means[k]) / (float64(all) / float64(units))
	}
}

// execute runs an objective on a batch of its own. It returns the loss, the
// metrics, and the number of units in the batch.
func (r *run) execute(ctx context.Context, o nn.Objective,
	at moment) (values []float64, units int, err error) {
	batch := dealt(r.Loader, at)
	if err := unread(r.Loader); err != nil {
		return nil, 0, err
	}
	out, err := r.session.Step(context.WithoutCancel(ctx), o.Name,
		feeds(r.Model, batch.Inputs, r.Seed, at))
	if failed, ok := errors.AsType[*gomem.StepError](err); !ok || !failed.Intact() {
		r.torn = true // until the other objectives have been executed too
	}
	if err != nil {
		return nil, 0, err
	}
	numbers := 1 + len(o.Metrics)
	values = scalars(out[:numbers])
	if len(o.Factors) > 0 {
		if err := r.receiver().Receive(o, out[numbers:]); err != nil {
			return nil, 0, err
		}
	}
	fault := since(r.archive.good,
		atFault(r.Model, at.step+1, values, "batch", at.execution, batch.Inputs))
	if r.Parallel != nil { // all end together, when they have heard
		r.team.fault = cmp.Or(r.team.fault, fault)
		return values, batch.Units, nil
	}
	return values, batch.Units, since(r.archive.good,
		cmp.Or(fault, finite(at.step+1, "loss", values, o.Metrics)))
}

// enter enters a step in the summary and shows it.
func (r *run) enter(e Event) {
	if len(r.times) == 0 {
		r.summary.LossFirst = e.Loss
	}
	r.summary.LossLast = e.Loss
	r.times = append(r.times, e.StepTime)
	r.units += e.Units
	usage := r.session.Usage()
	e.DeviceBytes, e.HostBytes, e.CopyBytes = usage[0].Actual, usage[1].Actual, r.copies
	e.UnitsPerSecond = rate(e.Units, e.StepTime)
	r.emit(e)
}

// account completes the summary with what was counted until the end or an error.
func (r *run) account(err error) {
	s := &r.summary
	if err != nil || r.archive.saved == r.course.done {
		s.Checkpoint = r.archive.good
	}
	s.SavedStep, s.Steps, s.BestStep = r.archive.saved, r.course.done, r.watch.step
	s.Unit = r.unit()
	s.take(r.session.Usage())
	s.took(r.times, r.units)
}

// diverged completes the error about a variable that is not finite.
func (r *run) diverged(err error) error {
	if e, ok := errors.AsType[*ErrNonFinite](err); ok {
		e.Step, e.Checkpoint = r.course.done, r.archive.good
		return e
	}
	return err
}

// record begins to write numbers, if they are wanted and this worker leads.
func (r *run) record() error {
	if !r.leads() {
		return nil
	}
	return r.records.begin(r.Metrics, gomem.Computes(r.Session.Device), r.course.done)
}

// warn shows a line, unless it is empty.
func (r *run) warn(text string) {
	if text != "" {
		r.emit(Event{Kind: Warning, Text: text})
	}
}

// emit completes an event and hands it out.
func (r *run) emit(e Event) {
	e.Step, e.Steps, e.Unit = cmp.Or(e.Step, r.course.done), r.course.total(), r.unit()
	r.warn(r.records.observe(e))
	if r.Observe != nil {
		r.Observe(e)
	}
}

package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/models"
)

// ErrNonFinite says that training has diverged: a number that must be finite
// is not.
type ErrNonFinite struct {
	Step       int     // the step after which it was noticed, from 1
	What       string  // "loss", a metric or a variable
	Value      float64 // NaN or an infinity
	Checkpoint string  // the last good checkpoint, if there is one
}

// Error is one line.
func (e *ErrNonFinite) Error() string {
	s := fmt.Sprintf("%s is %v at step %d: training has diverged; try a smaller learning rate or another seed", e.What, e.Value, e.Step)
	if e.Checkpoint != "" {
		s += "; the last good checkpoint is " + e.Checkpoint
	}
	return s
}

// run is a run in progress.
type run struct {
	Options
	session *gomem.Session
	store   store
	total   int   // steps to reach
	done    int   // steps done, those before a resumption included
	saved   int   // step of the newest checkpoint, 0 before the first
	copies  int64 // bytes copied in a training step, both ways
	times   []time.Duration
	tokens  int
	summary Summary

	vocabulary string // of the tokenizer, as text
}

// Run trains a model as the options say. When ctx is done, the step that is
// running is finished and saved, and the summary says so; that is no error.
// Diverging gives an *[ErrNonFinite], a checkpoint that cannot be read, does not
// fit or cannot be written an *[ErrCheckpoint], a budget that cannot be met a
// *gomem.ErrOutOfMemory. After an error the summary is of the steps before it.
func Run(ctx context.Context, o Options) (Summary, error) {
	if err := o.Validate(); err != nil {
		return Summary{}, err
	}
	r := &run{Options: o, total: int(o.steps()), store: store{dir: o.Save, keep: orDefault(o.Keep, 2), disk: osDisk{}}}
	if err := r.start(ctx); err != nil {
		return Summary{}, err
	}
	err := r.loop(ctx)
	if err == nil {
		err = r.finish(ctx)
	}
	r.account()
	return r.summary, cmp.Or(err, r.session.Close())
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
	}
	if r.session, err = gomem.Compile(ctx, r.Model.Graph, r.Session, Targets(r.Model)...); err != nil {
		return err
	}
	if err := r.initialize(from); err != nil {
		return cmp.Or(err, r.session.Close())
	}
	traffic := r.session.Plan("train").Traffic()
	r.copies = traffic.In() + traffic.Out()
	r.emit(Event{Kind: Start, Path: r.summary.Checkpoint})
	return nil
}

// vocabulary is a tokenizer as text, "" for none.
func vocabulary(t *data.Tokenizer) (string, error) {
	if t == nil {
		return "", nil
	}
	text, err := t.MarshalText()
	return string(text), err
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
	if from.Step >= r.total {
		from.close()
		return nil, from.fail("is at step %d already, the run is to reach %d: ask for more steps", from.Step, r.total)
	}
	return from, nil
}

// initialize gives the variables their values. The null device has none.
func (r *run) initialize(from *opened) error {
	if from == nil {
		if r.Session.Device == gomem.Null {
			return nil
		}
		return r.session.Initialize(r.Seed)
	}
	r.done, r.saved = from.Step, from.Step
	r.summary.ResumedFrom, r.summary.Checkpoint = from.Step, from.Path
	return from.restore(r.session)
}

// loop trains until all steps are done or ctx is.
func (r *run) loop(ctx context.Context) error {
	for r.done < r.total && ctx.Err() == nil {
		if err := r.train(ctx); err != nil {
			return err
		}
		if r.done < r.total && due(r.done, r.EvalEvery) {
			if err := r.evaluate(ctx); err != nil {
				return err
			}
		}
		if due(r.done, r.SaveEvery) {
			if err := r.save(); err != nil {
				return err
			}
		}
	}
	return nil
}

func due(step, every int) bool { return every > 0 && step%every == 0 }

// finish saves, and evaluates unless somebody is waiting for the end.
func (r *run) finish(ctx context.Context) error {
	r.summary.Interrupted = ctx.Err() != nil
	if r.Save != "" && r.saved != r.done {
		if err := r.save(); err != nil {
			return err
		}
	}
	if err := r.evaluate(ctx); err != nil || r.Session.Device == gomem.Null {
		return err
	}
	var err error
	r.summary.WeightsSHA256, err = weightsSHA256(r.session)
	return err
}

// train is one step.
func (r *run) train(ctx context.Context) error {
	began := time.Now()
	batch := r.Loader.Train(r.done)
	out, err := r.session.Step(context.WithoutCancel(ctx), "train", feeds(r.Model, batch, r.Seed, r.done))
	if err != nil {
		return err
	}
	took := time.Since(began)
	values := make([]float64, len(out))
	for i, t := range out {
		values[i] = scalar(t)
	}
	if err := r.finite(r.done+1, "loss", values, r.Model.TrainMetrics); err != nil {
		return err
	}
	e := Event{
		Kind: Step, Loss: values[0], Metrics: named(r.Model.TrainMetrics, values[1:]),
		LearningRate: float64(r.Model.Schedule.At(r.done)), Tokens: batch.Tokens, StepTime: took,
	}
	r.done++
	r.record(e)
	return nil
}

// record enters a step in the summary and shows it.
func (r *run) record(e Event) {
	if len(r.times) == 0 {
		r.summary.LossFirst = e.Loss
	}
	r.summary.LossLast = e.Loss
	r.times = append(r.times, e.StepTime)
	r.tokens += e.Tokens
	usage := r.session.Usage()
	e.DeviceBytes, e.HostBytes, e.CopyBytes = usage[0].Actual, usage[1].Actual, r.copies
	e.TokensPerSecond = rate(e.Tokens, e.StepTime)
	r.emit(e)
}

// evaluate averages the held-out loss and metrics over target tokens. It gives
// up, without a result, when ctx is done.
func (r *run) evaluate(ctx context.Context) error {
	batches := min(orDefault(r.EvalBatches, 8), r.Loader.HeldOutBatches())
	values := make([]float64, 1+len(r.Model.EvalMetrics))
	var tokens float64
	for i := range batches {
		if ctx.Err() != nil {
			return nil
		}
		b := r.Loader.HeldOut(i)
		out, err := r.session.Step(context.WithoutCancel(ctx), "eval", feeds(r.Model, b, r.Seed, r.done))
		if err != nil {
			return err
		}
		tokens += float64(b.Tokens)
		for k, t := range out {
			values[k] += (scalar(t) - values[k]) * float64(b.Tokens) / tokens
		}
	}
	if batches == 0 || r.Session.Device == gomem.Null {
		return nil
	}
	if err := r.finite(r.done, "held-out loss", values, r.Model.EvalMetrics); err != nil {
		return err
	}
	s := &r.summary
	s.EvalLoss, s.EvalMetrics, s.EvalBatches = values[0], named(r.Model.EvalMetrics, values[1:]), batches
	r.emit(Event{Kind: Eval, Loss: s.EvalLoss, Metrics: s.EvalMetrics})
	return nil
}

// finite refuses a loss, followed by metrics, that shows that training has
// diverged.
func (r *run) finite(step int, what string, values []float64, metrics []models.Metric) error {
	for i, x := range values {
		if i > 0 {
			what = metrics[i-1].Name
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return &ErrNonFinite{Step: step, What: what, Value: x, Checkpoint: r.summary.Checkpoint}
		}
	}
	return nil
}

// save writes a checkpoint.
func (r *run) save() error {
	path, err := r.store.save(r.checkpoint(), r.session)
	if err != nil {
		if e, ok := errors.AsType[*ErrNonFinite](err); ok {
			e.Checkpoint = r.summary.Checkpoint
		}
		return err
	}
	r.saved, r.summary.Checkpoint = r.done, path
	r.emit(Event{Kind: Save, Path: path})
	return nil
}

// emit completes an event and hands it out.
func (r *run) emit(e Event) {
	e.Step, e.Steps = r.done, r.total
	if r.Observe != nil {
		r.Observe(e)
	}
}

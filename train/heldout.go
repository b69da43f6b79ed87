package train

import (
	"context"
	"errors"
	"maps"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
)

// evaluate averages the held-out loss and metrics over units, and scores the
// outputs. It gives up, without a result, when ctx is done. last says that there
// will be no other evaluation.
func (r *run) evaluate(ctx context.Context, last bool) error {
	batches := min(orDefault(r.EvalBatches, 8), r.Loader.HeldOutBatches())
	means := make([]Mean, 1+len(r.Model.EvalMetrics))
	scorer := r.scorer(last)
	for i := range batches {
		if ctx.Err() != nil {
			return nil
		}
		b := r.Loader.HeldOut(i)
		if err := r.unread(); err != nil {
			return err
		}
		out, err := r.heldOut(ctx, b.Inputs, i)
		if err != nil {
			return unlessDone(ctx, err)
		}
		if err := r.score(ctx, scorer, b, out[len(means):], i); err != nil {
			return unlessDone(ctx, err)
		}
		for k, x := range scalars(out[:len(means)]) {
			means[k].Add(x, float64(b.Units))
		}
	}
	if batches == 0 || !gomem.Computes(r.Session.Device) {
		return nil
	}
	values := make([]float64, len(means))
	for k, m := range means {
		values[k] = m.Value()
	}
	if err := r.finite(r.done, "held-out loss", values, r.Model.EvalMetrics); err != nil {
		return err
	}
	r.summary.EvalBatches = batches
	return r.evaluated(values, scorer)
}

// evaluated enters the result of an evaluation in the summary, shows it, and asks whether
// to go on.
func (r *run) evaluated(values []float64, scorer Scorer) error {
	s := &r.summary
	s.EvalLoss, s.EvalMetrics = values[0], map[string]float64{}
	for i, m := range r.Model.EvalMetrics {
		s.EvalMetrics[m.Name] = values[i+1]
	}
	e := Event{Kind: Eval, Loss: s.EvalLoss, Metrics: s.EvalMetrics}
	if scorer != nil {
		scores, err := scorer.Metrics()
		if err != nil {
			return err
		}
		maps.Copy(s.EvalMetrics, scores)
		if sampler, ok := scorer.(Sampler); ok {
			e.Samples = sampler.Samples()
		}
	}
	r.emit(e)
	return r.judge()
}

// judge compares an evaluation with those before it. The best one's weights are kept.
func (r *run) judge() error {
	better, err := r.watch.see(r.done, r.summary.EvalLoss, r.summary.EvalMetrics)
	switch {
	case err != nil:
		return err
	case r.watch.over() && r.done < r.total && !r.summary.StoppedEarly:
		r.summary.StoppedEarly = true
		r.emit(Event{Kind: Stop, Text: r.watch.reason()})
	case better && r.Save != "":
		r.store.spare = r.done
		if r.saved != r.done || r.good == "" {
			if r.differs() { // with all others, who know of it soon
				r.team.best = true
				return nil
			}
			return r.save(nil)
		}
	}
	return nil
}

// unlessDone is an error of a run that goes on. One that is to end gives up what
// it evaluates; no variable is harmed by that.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// heldOut executes the evaluation of inputs, unless ctx is done.
func (r *run) heldOut(ctx context.Context, inputs []gomem.Tensor,
	batch int) ([]gomem.Tensor, error) {
	at := moment{step: r.done, execution: r.executions() + batch, turn: r.done}
	return r.session.Step(ctx, evaluation, feeds(r.Model, inputs, r.Seed, at))
}

// scorer is a new scorer for an evaluation, or nil.
func (r *run) scorer(last bool) Scorer {
	if r.Scorer == nil || !gomem.Computes(r.Session.Device) {
		return nil
	}
	return r.Scorer(r.done, last)
}

// score hands a held-out batch to a scorer, if there is one.
func (r *run) score(ctx context.Context, s Scorer, b data.Batch, outputs []gomem.Tensor,
	batch int) error {
	if s == nil {
		return nil
	}
	return s.Score(b, outputs, func(inputs []gomem.Tensor) ([]gomem.Tensor, error) {
		out, err := r.heldOut(ctx, inputs, batch)
		if err != nil {
			return nil, err
		}
		return out[1+len(r.Model.EvalMetrics):], nil
	})
}

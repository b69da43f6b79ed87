package train

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
)

// evaluate averages the held-out loss and metrics over units, and scores the
// outputs. It gives up, without a result, when ctx is done. last says that there
// will be no other evaluation.
func (r *run) evaluate(ctx context.Context, last bool) error {
	if r.Parallel != nil && !r.Parallel.Mesh {
		return r.divide(ctx, last)
	}
	scorer := r.scorer(last)
	var all []*tested
	for i := range r.evalBatches() {
		over, err := r.cutShort(ctx)
		if err != nil || over {
			return err
		}
		x, err := r.testBatch(r.within(ctx), scorer, i)
		if err != nil {
			return unlessDone(ctx, err)
		}
		all = append(all, &x)
	}
	return r.averaged(all, scorer)
}

// cutShort reports whether an evaluation is to end; the processes of a mesh end it together.
func (r *run) cutShort(ctx context.Context) (bool, error) {
	if !r.meshed() {
		return ctx.Err() != nil, nil
	}
	says, err := r.agree(r.within(ctx), []byte{flag(ctx.Err() != nil)})
	return slices.ContainsFunc(says, func(b []byte) bool { return slices.Contains(b, 1) }), err
}

// within is the context of a batch: one that the processes of a mesh have begun they finish.
func (r *run) within(ctx context.Context) context.Context {
	if r.meshed() {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// evalBatches is how many batches an evaluation has.
func (r *run) evalBatches() int {
	return min(orDefault(r.EvalBatches, 8), r.Loader.HeldOutBatches())
}

// tested is what came of a held-out batch.
type tested struct {
	Batch  int      `json:"batch"`
	Units  int      `json:"units"`
	Values []uint64 `json:"values"` // bits of the loss and of the metrics, which may be no numbers
	Score  []byte   `json:"score"`  // a part of a scorer's
}

// testBatch evaluates and scores a held-out batch.
func (r *run) testBatch(ctx context.Context, s Scorer, i int) (x tested, err error) {
	b := r.Loader.HeldOut(i)
	if err := r.unread(); err != nil {
		return x, err
	}
	out, err := r.heldOut(ctx, b.Inputs, i)
	if err != nil {
		return x, err
	}
	values := 1 + len(r.Model.EvalMetrics)
	if err := r.score(ctx, s, b, out[values:], i); err != nil {
		return x, err
	}
	x.Batch, x.Units = i, b.Units
	numbers := scalars(out[:values])
	for _, v := range numbers {
		x.Values = append(x.Values, math.Float64bits(v))
	}
	return x, r.atFault(r.done, numbers, "held-out batch", i, b.Inputs)
}

// averaged makes the means of what came of all batches, over units, and hands them out.
func (r *run) averaged(all []*tested, s Scorer) error {
	if len(all) == 0 || !gomem.Computes(r.Session.Device) {
		return nil
	}
	means := make([]Mean, 1+len(r.Model.EvalMetrics))
	for _, x := range all {
		for k, bits := range x.Values {
			means[k].Add(math.Float64frombits(bits), float64(x.Units))
		}
	}
	values := make([]float64, len(means))
	for k, m := range means {
		values[k] = m.Value()
	}
	if err := r.finite(r.done, "held-out loss", values, r.Model.EvalMetrics); err != nil {
		return err
	}
	r.summary.EvalBatches = len(all)
	return r.evaluated(values, s)
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
	r.assessed = r.done
	return r.judge()
}

// judge compares an evaluation with those before it. The best one's weights are kept.
func (r *run) judge() error {
	better, err := r.watch.see(r.done, r.summary.EvalLoss, r.summary.EvalMetrics)
	switch {
	case err != nil:
		return err
	case r.watch.over() && r.done < r.total() && !r.summary.StoppedEarly:
		r.summary.StoppedEarly = true
		r.emit(Event{Kind: Stop, Text: r.watch.reason()})
	case better && r.Save != "":
		r.store.spare = r.done
		if r.saved != r.done || r.good == "" {
			if r.jointly() { // with all others, who know of it soon
				r.team.best = true
				return nil
			}
			return r.save(nil)
		}
		return r.endure(r.guarded().mark(r.done))
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

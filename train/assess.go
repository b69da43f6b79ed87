package train

import (
	"context"
	"encoding/json"

	"github.com/gomem/gomem"
)

// assess evaluates, which all do together: worker 0 has the result, and tells the others
// whether to go on.
func (r *run) assess(ctx context.Context) error {
	if r.Parallel == nil {
		err := r.evaluate(ctx, false)
		r.rated = r.course.done
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.evaluate(ctx, false); err != nil {
		return err
	}
	if r.leads() {
		r.rated = r.course.done
	}
	over := []byte{flag(r.watch.over())}
	if r.elastic() != nil { // another worker may lead next
		best, err := json.Marshal(r.watch.best)
		if err != nil {
			return err
		}
		over = append(over, best...)
	}
	says, err := r.Parallel.agree(context.WithoutCancel(ctx), over)
	if err != nil {
		return err
	}
	r.rated = r.course.done
	if over = says[0]; len(over) > 0 && over[0] == 1 {
		r.team.stop, r.summary.StoppedEarly = true, true
	}
	if err := r.saveAll(ctx, r.team.best); err != nil {
		return err
	}
	r.team.best = false
	if r.elastic() == nil || r.leads() || len(over) == 0 {
		return nil
	}
	if err := json.Unmarshal(over[1:], &r.watch.best); err != nil {
		return err
	}
	r.watch.step = r.watch.best.Step
	return nil
}

// evaluate evaluates, and enters what came of it. last says that there will be no other
// evaluation.
func (r *run) evaluate(ctx context.Context, last bool) error {
	x := &exam{session: r.session, model: r.Model, loader: r.Loader, seed: r.Seed,
		batches:  min(orDefault(r.EvalBatches, 8), r.Loader.HeldOutBatches()),
		parallel: r.Parallel, computes: gomem.Computes(r.Session.Device),
		at: moment{step: r.course.done, execution: r.course.executions(), turn: r.course.done}}
	x.scorer = func() Scorer {
		if r.Scorer == nil || !x.computes {
			return nil
		}
		return r.Scorer(r.course.done, last)
	}
	out, err := x.take(ctx)
	if err != nil || out == nil {
		return since(r.archive.good, err)
	}
	return r.evaluated(out)
}

// evaluated enters the outcome of an evaluation in the summary, shows it, and asks whether
// to go on.
func (r *run) evaluated(x *outcome) error {
	s := &r.summary
	s.EvalBatches, s.EvalLoss, s.EvalMetrics = x.batches, x.loss, x.metrics
	samples, err := x.scored()
	if err != nil {
		return err
	}
	r.emit(Event{Kind: Eval, Loss: x.loss, Metrics: x.metrics, Samples: samples})
	r.assessed = r.course.done
	return r.judge()
}

// judge compares an evaluation with those before it. The best one's weights are kept.
func (r *run) judge() error {
	better, err := r.watch.see(r.course.done, r.summary.EvalLoss, r.summary.EvalMetrics)
	switch {
	case err != nil:
		return err
	case r.watch.over() && r.course.done < r.course.total() && !r.summary.StoppedEarly:
		r.summary.StoppedEarly = true
		r.emit(Event{Kind: Stop, Text: r.watch.reason()})
	case better && r.Save != "":
		r.archive.store.spare = r.course.done
		if r.archive.saved != r.course.done || r.archive.good == "" {
			if r.Parallel.jointly() { // with all others, who know of it soon
				r.team.best = true
				return nil
			}
			return r.save(nil)
		}
		done := r.course.done
		warning, err := r.archive.endure(r.archive.guarded(r.Parallel, done).mark(done))
		r.warn(warning)
		return err
	}
	return nil
}

package train

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/nn"
)

// exam is one evaluation of a session's variables as they are: from them to an outcome. It
// changes nothing.
type exam struct {
	session  *gomem.Session
	model    *nn.Model
	loader   data.Batches
	scorer   func() Scorer // a new one, or nil; it may be asked for several
	batches  int           // of the held-out ones, the first
	seed     uint64
	parallel *Parallel // who divide it; nil: this one alone
	computes bool      // the device does
	at       moment    // after which step; the batches are numbered on from its execution
}

// outcome is what came of an evaluation: means over units.
type outcome struct {
	batches int
	loss    float64
	metrics map[string]float64 // the model's, by name
	scorer  Scorer             // which has seen all outputs; nil: there is none
}

// scored adds the scorer's metrics, and gives its samples.
func (x *outcome) scored() (samples []string, err error) {
	if x.scorer == nil {
		return nil, nil
	}
	scores, err := x.scorer.Metrics()
	if err != nil {
		return nil, err
	}
	maps.Copy(x.metrics, scores)
	if sampler, ok := x.scorer.(Sampler); ok {
		samples = sampler.Samples()
	}
	return samples, nil
}

// take averages the held-out loss and metrics over units, and scores the outputs. It gives
// up, without an outcome, when ctx is done. Where workers divide it, one has it.
func (x *exam) take(ctx context.Context) (*outcome, error) {
	if x.parallel != nil && !x.parallel.Mesh {
		return x.divide(ctx)
	}
	scorer := x.scorer()
	var all []*tested
	for i := range x.batches {
		over, err := x.cutShort(ctx)
		if err != nil || over {
			return nil, err
		}
		one, err := x.testBatch(x.within(ctx), scorer, i)
		if err != nil {
			return nil, unlessDone(ctx, err)
		}
		all = append(all, &one)
	}
	return x.averaged(all, scorer)
}

// cutShort reports whether an evaluation is to end; the processes of a mesh end it together.
func (x *exam) cutShort(ctx context.Context) (bool, error) {
	if !x.parallel.meshed() {
		return ctx.Err() != nil, nil
	}
	says, err := x.parallel.agree(x.within(ctx), []byte{flag(ctx.Err() != nil)})
	return slices.ContainsFunc(says, func(b []byte) bool { return slices.Contains(b, 1) }), err
}

// within is the context of a batch: one that the processes of a mesh have begun they finish.
func (x *exam) within(ctx context.Context) context.Context {
	if x.parallel.meshed() {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// tested is what came of a held-out batch.
type tested struct {
	Batch  int      `json:"batch"`
	Units  int      `json:"units"`
	Values []uint64 `json:"values"` // bits of the loss and of the metrics, which may be no numbers
	Score  []byte   `json:"score"`  // a part of a scorer's
}

// testBatch evaluates and scores a held-out batch.
func (x *exam) testBatch(ctx context.Context, s Scorer, i int) (one tested, err error) {
	b := x.loader.HeldOut(i)
	if err := unread(x.loader); err != nil {
		return one, err
	}
	out, err := x.heldOut(ctx, b.Inputs, i)
	if err != nil {
		return one, err
	}
	values := 1 + len(x.model.EvalMetrics)
	if err := x.score(ctx, s, b, out[values:], i); err != nil {
		return one, err
	}
	one.Batch, one.Units = i, b.Units
	numbers := scalars(out[:values])
	for _, v := range numbers {
		one.Values = append(one.Values, math.Float64bits(v))
	}
	return one, atFault(x.model, x.at.step, numbers, "held-out batch", i, b.Inputs)
}

// unread is why a batch could not be read, if it could not.
func unread(b data.Batches) error {
	if f, ok := b.(data.Fallible); ok {
		return f.Err()
	}
	return nil
}

// averaged makes the means of what came of all batches, over units.
func (x *exam) averaged(all []*tested, s Scorer) (*outcome, error) {
	if len(all) == 0 || !x.computes {
		return nil, nil
	}
	means := make([]Mean, 1+len(x.model.EvalMetrics))
	for _, one := range all {
		for k, bits := range one.Values {
			means[k].Add(math.Float64frombits(bits), float64(one.Units))
		}
	}
	values := make([]float64, len(means))
	for k, m := range means {
		values[k] = m.Value()
	}
	if err := finite(x.at.step, "held-out loss", values, x.model.EvalMetrics); err != nil {
		return nil, err
	}
	out := &outcome{batches: len(all), loss: values[0], metrics: map[string]float64{}, scorer: s}
	for i, m := range x.model.EvalMetrics {
		out.metrics[m.Name] = values[i+1]
	}
	return out, nil
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
func (x *exam) heldOut(ctx context.Context, inputs []gomem.Tensor,
	batch int) ([]gomem.Tensor, error) {
	at := x.at
	at.execution += batch
	return x.session.Step(ctx, evaluation, feeds(x.model, inputs, x.seed, at))
}

// score hands a held-out batch to a scorer, if there is one.
func (x *exam) score(ctx context.Context, s Scorer, b data.Batch, outputs []gomem.Tensor,
	batch int) error {
	if s == nil {
		return nil
	}
	return s.Score(b, outputs, func(inputs []gomem.Tensor) ([]gomem.Tensor, error) {
		out, err := x.heldOut(ctx, inputs, batch)
		if err != nil {
			return nil, err
		}
		return out[1+len(x.model.EvalMetrics):], nil
	})
}

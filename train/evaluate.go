package train

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/nn"
)

// EvalOptions describe the evaluation of a checkpoint. Model, Executions, Loader,
// and From or Public are needed.
type EvalOptions struct {
	Model      *nn.Model      // the evaluation of a model
	Executions int            // of the trained model, see [nn.Model.Executions]
	Loader     data.Batches   // whose held-out batches are evaluated
	From       string         // the checkpoint: a file, or a directory for its latest
	Public     *Public        // a public checkpoint in place of From; nil: none
	Session    gomem.Options  // how to run
	Planned    *gomem.Planned // of EvalTarget(Model) under Session; nil: Evaluate plans
	Batches    int            // at most; 0: all
	Scorer     func() Scorer  // of the outputs; may be nil
}

// Evaluated is what came of an evaluation.
type Evaluated struct {
	Loss    float64            // of held-out data, the mean over units
	Metrics map[string]float64 // the model's and the scorer's, by name
	Batches int
	Units   int           // tokens, images or utterances, without padding
	Time    time.Duration // of the batches
	Usage   []gomem.Usage // of memory
}

// EvalTarget is what an evaluation computes.
func EvalTarget(m *nn.Model) gomem.Target {
	return gomem.Evaluation(append(fetches(m.EvalLoss, m.EvalMetrics), m.EvalOutputs...)...)
}

// Evaluate computes the metrics that an evaluation in the run of a checkpoint would
// have given after its last step: of the same batches, they are the same to the
// bit. Nothing of training is in memory. An option that cannot be is an
// *[ErrOption], trouble with the checkpoint an *[ErrCheckpoint], a loss that is not
// finite an *[ErrNonFinite]. A done ctx ends it with ctx's error.
func Evaluate(ctx context.Context, o EvalOptions) (Evaluated, error) {
	c, err := o.validate()
	if err != nil {
		return Evaluated{}, err
	}
	s, err := o.open(ctx)
	if err != nil {
		return Evaluated{}, err
	}
	x := &exam{session: s, model: o.Model, loader: &counting{Batches: o.Loader},
		seed: c.Seed, computes: true,
		batches: min(cmp.Or(o.Batches, math.MaxInt), o.Loader.HeldOutBatches()),
		scorer:  func() Scorer { return nil },
		at: moment{step: c.Step, execution: cmp.Or(c.Executions, c.Step*o.Executions),
			turn: c.Step}}
	if o.Scorer != nil {
		x.scorer = o.Scorer
	}
	e, err := x.timed(ctx)
	return e, cmp.Or(since(c.Path, err), s.Close())
}

// validate reads the checkpoint, and reports what no evaluation can have.
func (o EvalOptions) validate() (Checkpoint, error) {
	switch {
	case o.Model == nil || o.Loader == nil:
		return Checkpoint{}, optionf("model", "an evaluation needs a model and a loader")
	case !gomem.Computes(o.Session.Device):
		return Checkpoint{}, optionf("device", "%s computes nothing", o.Session.Device)
	case o.Executions < 1 || o.Batches < 0:
		return Checkpoint{}, optionf("executions", "%d a step, %d batches", o.Executions, o.Batches)
	case o.Loader.HeldOutBatches() == 0:
		return Checkpoint{}, optionf("loader", "it has nothing that is held out")
	}
	if o.Public != nil {
		return Checkpoint{Path: o.Public.Path}, nil
	}
	return Inspect(o.From)
}

// open makes the session, with the checkpoint's variables.
func (o EvalOptions) open(ctx context.Context) (*gomem.Session, error) {
	planned, err := o.Planned, error(nil)
	if planned == nil {
		planned, err = gomem.Plan(ctx, o.Model.Graph, o.Session, EvalTarget(o.Model))
	}
	if err != nil {
		return nil, err
	}
	session := o.Session
	session.NoInitialize = true
	s, err := gomem.Open(planned, session)
	if err != nil {
		return nil, err
	}
	if err := o.load(s); err != nil {
		return nil, cmp.Or(err, s.Close())
	}
	return s, nil
}

// load gives a session's variables the checkpoint's values.
func (o EvalOptions) load(s *gomem.Session) error {
	if o.Public != nil {
		return o.Public.Load(s, s.Variables())
	}
	return Load(o.From, s, s.Variables())
}

// timed takes an evaluation without a run around it.
func (x *exam) timed(ctx context.Context) (Evaluated, error) {
	began := x.session.Clock()
	out, err := x.take(ctx)
	if err = cmp.Or(err, ctx.Err()); err != nil || out == nil {
		return Evaluated{}, err
	}
	if _, err := out.scored(); err != nil {
		return Evaluated{}, err
	}
	return Evaluated{Loss: out.loss, Metrics: out.metrics, Batches: out.batches,
		Units: x.loader.(*counting).units, Time: x.session.Clock() - began,
		Usage: x.session.Usage()}, nil
}

// counting are batches that are counted as they are made, one after the other.
type counting struct {
	data.Batches
	units int
}

// HeldOut makes a batch.
func (c *counting) HeldOut(i int) data.Batch {
	b := c.Batches.HeldOut(i)
	c.units += b.Units
	return b
}

// Err is why a file could not be read, if one could not.
func (c *counting) Err() error {
	if f, ok := c.Batches.(data.Fallible); ok {
		return f.Err()
	}
	return nil
}

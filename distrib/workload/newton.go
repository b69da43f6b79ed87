package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
)

// Newton is [MLR] by a quasi-Newton method, over all weights as one vector of n numbers. In each
// clock, which is an epoch, every worker evaluates its samples where all workers are, and adds its
// part of the gradient and of the loss to a row that all then read: n numbers and a few, never the
// n² of the matrix W. From the same bits all make the same step, the same two vectors of W's
// update, and so the same W. The scheme must bring all workers the same bits of a clock before the
// next: parameter servers in step, "bsp".
//
// Steps are halved until the loss falls enough (Armijo). Rate, Decay, Clocks and Pushes are not
// used; Epochs counts evaluations.
type Newton struct {
	*MLR
	Form Secant
}

// maxNewton bounds the weights, of whose square W is.
const maxNewton = 1 << 12

// Behind the gradient, a row has the loss, errors, and how many samples were counted.
const (
	newtonLoss = iota
	newtonErrors
	newtonCount
	newtonMore
)

// Check reports what is wrong with the task.
func (n Newton) Check() error {
	if err := n.MLR.Check(); err != nil {
		return err
	}
	if k := n.weights(); k > maxNewton {
		return fmt.Errorf("mlr: %d weights, whose square %s keeps: want %d or fewer", k, n.Form,
			maxNewton)
	}
	if cols := int64(n.weights() + newtonMore); int64(n.Epochs+1)*cols > maxWeights {
		return fmt.Errorf("mlr: %d epochs by %s, of which each keeps %d numbers: want %d or fewer",
			n.Epochs, n.Form, cols, maxWeights/cols-1)
	}
	if n.Rotate > 0 {
		return errors.New("mlr: samples that rotate, of whom all workers have the gradient")
	}
	return nil
}

func (n Newton) weights() int { return n.Train.Classes * n.Train.Features }

// Run is a worker's part.
func (n Newton) Run(ctx context.Context, s distrib.Synchronizer, w Worker) error {
	if err := errors.Join(n.Check(), w.check()); err != nil {
		return err
	}
	if w.From != nil || w.Between != nil {
		return fmt.Errorf("mlr: by %s, workers neither come nor go, and nothing is resumed", n.Form)
	}
	cols := n.weights() + newtonMore
	r := &newtonRun{Newton: n, s: s, w: w, own: n.Train.Shard(w.Rank, w.Of),
		table: &distrib.Param{Name: "mlr/slope", Rows: n.Epochs + 1, Cols: cols,
			Data: make([]float32, (n.Epochs+1)*cols)},
		descent: descent{form: n.Form, trial: make([]float64, n.weights())}}
	if err := s.Attach(r.table); err != nil {
		return err
	}
	for epoch := range n.Epochs + 1 {
		if err := r.evaluate(ctx, epoch); err != nil {
			return err
		}
	}
	return nil
}

type newtonRun struct {
	Newton
	s     distrib.Synchronizer
	w     Worker
	own   *Samples
	table *distrib.Param // a row an epoch
	descent
}

// evaluate has all workers' samples evaluated where they are, and goes on from there.
func (r *newtonRun) evaluate(ctx context.Context, epoch int) error {
	ref := distrib.Ref{Row: int32(epoch), N: 1}
	if err := r.s.Push(ctx, ref, r.part()); err != nil {
		return err
	}
	if err := r.w.compute(ctx, 1); err != nil {
		return err
	}
	clock, err := r.s.Tick(ctx)
	if err != nil {
		return err
	}
	if _, err := r.s.Pull(ctx, ref); err != nil {
		return err
	}
	row := rowOf(r.table.Data, r.table.Cols, ref.Row)
	slope := make([]float64, r.weights())
	for i := range slope {
		slope[i] = float64(row[i])
	}
	more := row[r.weights():]
	r.tell(Progress{Worker: r.w.Rank, Epoch: epoch, Clock: clock, At: time.Now(),
		Loss: float64(more[newtonLoss]), Errors: int(more[newtonErrors] + 0.5),
		Count: int(more[newtonCount] + 0.5)})
	r.descent.told(float64(more[newtonLoss]), slope)
	return nil
}

// part is this worker's of a row.
func (r *newtonRun) part() distrib.Dense {
	n := r.own.Features
	slope, g := make([]float64, r.weights()), make([]float64, r.own.Classes)
	for i := range r.own.Len() {
		index, value := r.own.at(i)
		gradient(r.trial, n, index, value, r.own.label[i], g)
		addOuter(slope, n, g, index, value)
	}
	row := make(distrib.Dense, r.table.Cols)
	for i, x := range slope {
		row[i] = float32(x)
	}
	loss, wrong := score(r.own, r.trial)
	more := row[len(slope):]
	more[newtonLoss], more[newtonErrors] = float32(loss), float32(wrong)
	more[newtonCount] = float32(r.own.Len())
	return row
}

// tell reports what all have come to: every worker knows.
func (r *newtonRun) tell(p Progress) {
	if r.Test != nil && r.w.Rank == 0 {
		_, p.TestErrors = score(r.Test, r.trial)
		p.TestCount = r.Test.Len()
	}
	r.w.report(p)
	if r.w.Rank == 0 && r.w.Total != nil {
		r.w.Total(p)
	}
}

// descent is a quasi-Newton search for the minimum of a function, a trial at a time.
type descent struct {
	form  Secant
	trial []float64 // where the function is to be evaluated next

	at, slope []float64 // the best so far; nil: none is known
	loss      float64
	along     []float64 // from there
	length    float64   // of the step on trial, in these
	w         []float64 // nil: no pair of vectors is known
}

// told takes what the function and its gradient are on trial, and chooses the next.
func (d *descent) told(loss float64, slope []float64) {
	const (
		enough   = 1e-4    // of the fall that the slope promises
		rounding = 1 << 20 // of what the loss is known to
	)
	promised := float64(enough * d.length * inner(d.slope, d.along))
	falls := d.at == nil || loss <= d.loss+promised+float64(math.Abs(d.loss)/rounding)
	switch {
	case falls:
		if d.at != nil {
			d.learn(slope)
		}
		d.at, d.loss, d.slope = d.trial, loss, slope
		d.turn()
	case d.length < 1e-9: // W is of no use
		d.w = nil
		d.turn()
	default:
		d.length /= 2
	}
	d.trial = slices.Clone(d.at)
	for i, p := range d.along {
		d.trial[i] += float64(d.length * p)
	}
}

// learn updates W by the step from the best so far to the trial, whose gradient it is given.
func (d *descent) learn(slope []float64) {
	s, y := slices.Clone(d.trial), slices.Clone(slope)
	for i := range s {
		s[i] -= d.at[i]
		y[i] -= d.slope[i]
	}
	w := d.w
	if w == nil && inner(y, s) > 0 {
		w = d.form.First(s, y)
	}
	if g, ok := d.form.Vectors(w, s, y); ok {
		g.AddTo(w)
		d.w = w
	}
}

// turn chooses where to go from the best so far: where W says, or down the slope by a length of
// one at most.
func (d *descent) turn() {
	d.length = 1
	if d.w != nil {
		if p, ok := d.form.Direction(d.w, d.slope); ok {
			d.along = p
			return
		}
		d.w = nil
	}
	d.along = scaledBy(d.slope, -1)
	d.length = min(1, 1/math.Sqrt(max(inner(d.slope, d.slope), 1e-300)))
}

package train

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Patience says when to give a run up that no longer improves. The zero value is never to.
type Patience struct {
	Evaluations int     // in a row without a better one, after which a run ends; 0: never
	Least       float64 // by how much a better one is better, at least
	Metric      string  // what is watched: a metric's name, or "" for the held-out loss
	Larger      bool    // a larger number is the better one
}

// Validate reports what no run can have.
func (p Patience) Validate() error {
	switch {
	case p.Evaluations < 0:
		return fmt.Errorf("%d evaluations: give a positive number, or 0 for no end",
			p.Evaluations)
	case !(p.Least >= 0) || math.IsInf(p.Least, 0):
		return fmt.Errorf("an improvement of %v at least: give a number from 0", p.Least)
	case p.Evaluations == 0 && p != Patience{}:
		return errors.New("after how many evaluations? give their number")
	}
	return nil
}

// validatePatience demands evaluations of a run that is to end by them, or to keep the best,
// and that there is something to evaluate.
func (o Options) validatePatience() error {
	p, option := o.Patience, "patience"
	if o.KeepBest {
		p.Evaluations = max(p.Evaluations, 1) // what is watched may be given, too
	}
	if err := p.Validate(); err != nil {
		return &ErrOption{Option: option, Err: err}
	}
	if o.Patience.Evaluations == 0 {
		option = "keeping the best"
	}
	switch {
	case p.Evaluations == 0:
		return nil
	case o.KeepBest && o.Save == "" && o.leads():
		return optionf("keeping the best", "no directory to save to is given")
	case o.EvalEvery == 0:
		return optionf(option, "there are no evaluations on the way: give the steps between them")
	case o.Loader.HeldOutBatches() == 0:
		return optionf(option, "there is nothing held out to evaluate: hold some of the data out")
	}
	return nil
}

// Better reports whether a number is an improvement over the best so far.
func (p Patience) Better(x, best float64) bool {
	if p.Larger {
		return x > best+p.Least
	}
	return x < best-p.Least
}

// Best is the best evaluation so far, and the last one. Its zero value is before the first
// one; every evaluation is told it by See.
type Best struct {
	Value float64 `json:"value"`
	Step  int     `json:"step"`  // after which it was
	Since int     `json:"since"` // evaluations after it
	Last  int     `json:"last"`  // the step of the last evaluation
}

// See enters what came of the evaluation after a step, and reports whether it is the best
// so far.
func (b *Best) See(p Patience, step int, x float64) bool {
	first := b.Last == 0
	b.Last = step
	if first || p.Better(x, b.Value) {
		b.Value, b.Step, b.Since = x, step, 0
		return true
	}
	b.Since++
	return false
}

// vigil is the patience of a run with what it has seen.
type vigil struct {
	Patience
	keeps bool // the best, also of a run that no evaluation ends
	best  Best
	step  int // of the best, 0 before it
}

// see enters an evaluation. A metric that is not there is the options' fault.
func (w *vigil) see(step int, loss float64, metrics map[string]float64) (better bool, err error) {
	if !w.on() || step == 0 || step == w.best.Last {
		return false, nil // the last evaluation of a run may be its second after a step
	}
	if w.Metric != "" {
		x, ok := metrics[w.Metric]
		if !ok {
			there := append([]string{"the loss"}, slices.Sorted(maps.Keys(metrics))...)
			return false, optionf("patience", "no metric %q: watch %s", w.Metric,
				strings.Join(there, " or "))
		}
		loss = x
	}
	better = w.best.See(w.Patience, step, loss)
	w.step = w.best.Step
	return better, nil
}

// on reports whether evaluations are compared.
func (w *vigil) on() bool { return w.Evaluations > 0 || w.keeps }

// over reports whether the patience is at its end.
func (w *vigil) over() bool { return w.Evaluations > 0 && w.best.Since >= w.Evaluations }

// reason is why the run ends.
func (w *vigil) reason() string {
	name := w.Metric
	if name == "" {
		name = "held-out loss"
	}
	return fmt.Sprintf("ends early: %s is no better than %.4f at step %d since %d evaluations",
		name, w.best.Value, w.best.Step, w.best.Since)
}

// state is what a checkpoint keeps.
func (w *vigil) state() *Best {
	if !w.on() {
		return nil
	}
	best := w.best
	return &best
}

// resume goes on from a checkpoint's.
func (w *vigil) resume(c Checkpoint) {
	if w.on() && c.Best != nil {
		w.best, w.step = *c.Best, c.Best.Step
	}
}

// behind reports whether the evaluation that was due after a step has not been seen.
func (w *vigil) behind(step, every int) bool {
	return w.on() && step > 0 && due(step, every) && w.best.Last < step
}

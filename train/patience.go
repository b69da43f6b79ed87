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

// validate demands evaluations, too.
func (p Patience) validate(evalEvery int) error {
	if p.Evaluations > 0 && evalEvery == 0 {
		return errors.New("there are no evaluations on the way: give the steps between them")
	}
	return p.Validate()
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
	best Best
	step int // of the best, 0 before it
}

// see enters an evaluation. A metric that is not there is the options' fault.
func (w *vigil) see(step int, loss float64, metrics map[string]float64) (better bool, err error) {
	if w.Evaluations == 0 || step == 0 || step == w.best.Last {
		return false, nil // the last evaluation of a run may be its second after a step
	}
	if w.Metric != "" {
		x, ok := metrics[w.Metric]
		if !ok {
			return false, optionf("patience", "no metric %q: watch the loss, or %s", w.Metric,
				strings.Join(slices.Sorted(maps.Keys(metrics)), ", "))
		}
		loss = x
	}
	better = w.best.See(w.Patience, step, loss)
	w.step = w.best.Step
	return better, nil
}

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
	if w.Evaluations == 0 {
		return nil
	}
	best := w.best
	return &best
}

// resume goes on from a checkpoint's.
func (w *vigil) resume(c Checkpoint) {
	if w.Evaluations > 0 && c.Best != nil {
		w.best, w.step = *c.Best, c.Best.Step
	}
}

// behind reports whether the evaluation that was due after a step has not been seen.
func (w *vigil) behind(step, every int) bool {
	return w.Evaluations > 0 && step > 0 && due(step, every) && w.best.Last < step
}

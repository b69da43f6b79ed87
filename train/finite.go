package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// ErrNonFinite says that a number that must be finite is not: training has diverged, or the
// data have such a number.
type ErrNonFinite struct {
	Step int // the step after which it was noticed, from 1
	// What is "loss", a metric, "learning rate", the first such variable, or, of data, the
	// input and the element, "input x[batch 3, 17] of batch 12".
	What       string
	Data       bool    // it is in the data
	Value      float64 // NaN or an infinity
	Checkpoint string  // the last good checkpoint, if there is one
}

// Error is one line.
func (e *ErrNonFinite) Error() string {
	why := "training has diverged; try a smaller learning rate or another seed"
	if e.Data {
		why = "the data are at fault, not the training; mend that example, or leave it out"
	}
	s := fmt.Sprintf("%s is %v at step %d: %s", e.What, e.Value, e.Step, why)
	if e.Checkpoint != "" {
		s += "; the last good checkpoint is " + e.Checkpoint
	}
	return s
}

// finite refuses a loss, followed by metrics, that shows that training has
// diverged.
func finite(step int, what string, values []float64, metrics []nn.Metric) error {
	for i, x := range values {
		if i > 0 {
			what = metrics[i-1].Name
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return &ErrNonFinite{Step: step, What: what, Value: x}
		}
	}
	return nil
}

// since completes an error about a number that is not finite by the last good checkpoint.
func since(good string, err error) error {
	if e, ok := errors.AsType[*ErrNonFinite](err); ok {
		e.Checkpoint = good
	}
	return err
}

// finiteVariable refuses values that must not replace a good checkpoint.
func finiteVariable(name string, t gomem.Tensor) error {
	if x, at := nonFinite(t); at >= 0 {
		return &ErrNonFinite{What: "variable " + name, Value: x}
	}
	return nil
}

// atFault is the first element of a batch that is not finite, if what came of it, after a
// step, is not; nil if the batch is not at fault. kind is what such a batch is called.
func atFault(m *nn.Model, step int, values []float64, kind string, batch int,
	inputs []gomem.Tensor) error {
	if !slices.ContainsFunc(values, func(x float64) bool { return x-x != 0 }) {
		return nil
	}
	for i, t := range inputs {
		if x, at := nonFinite(t); at >= 0 {
			what := fmt.Sprintf("input %s%s of %s %d", m.Data[i].Node.Name,
				element(t.Type, at), kind, batch)
			return &ErrNonFinite{Step: step, What: what, Data: true, Value: x}
		}
	}
	return nil
}

// element is the place of an element, with the names of axes: "[batch 3, 17]".
func element(t graph.Type, at int) string {
	places := make([]string, len(t.Shape))
	for i := len(t.Shape) - 1; i >= 0; i-- {
		d := t.Shape[i]
		places[i] = strings.TrimSpace(fmt.Sprintf("%s %d", d.Name, at%d.Size))
		at /= d.Size
	}
	return "[" + strings.Join(places, ", ") + "]"
}

// nonFinite is the first element that is NaN or infinite, and where it is, -1 if there is none.
func nonFinite(t gomem.Tensor) (x float64, at int) {
	switch t.Type.DType {
	case graph.F32:
		for i, x := range t.F32() {
			if d := x - x; d != 0 { // NaN for NaN and for both infinities
				return float64(x), i
			}
		}
	case graph.F64:
		for i, x := range t.F64() {
			if d := x - x; d != 0 {
				return x, i
			}
		}
	case graph.BF16:
		return nonFiniteHalf(t.U16(), 0x7f80)
	case graph.F16:
		return nonFiniteHalf(t.U16(), 0x7c00)
	}
	return 0, -1
}

// nonFiniteHalf is nonFinite for elements of 16 bits with the exponent that
// NaN and infinities have.
func nonFiniteHalf(words []uint16, exponent uint16) (x float64, at int) {
	for i, w := range words {
		switch magnitude := w &^ 0x8000; {
		case magnitude > exponent:
			return math.NaN(), i
		case magnitude == exponent:
			return math.Inf(1 - 2*int(w>>15)), i
		}
	}
	return 0, -1
}
